"""The frame of a kernel: entry point, thread team, splitting of an iteration space over threads."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.source import KernelSource


def kernel_source(
    unit: Unit,
    root: Scope,
    symbol: str,
    *,
    parallel: bool,
    scratch_bytes: int = 0,
    shared_bytes: int = 0,
) -> KernelSource:
    """The unit with the function `root` as the body of entry point `symbol`."""
    body = "\n".join("  " + line if line[:1] != "#" else line for line in root.text)
    unit.function(
        f"static int {symbol}_body(const gaf_kernel_args *args, gaf_i64 tid, gaf_i64 nt) {{\n"
        f"  int status = 0;\n  (void)tid; (void)nt;\n{body}\n  return status;\n}}"
    )
    team = entry_point(unit, symbol, parallel=parallel)
    return KernelSource(
        symbol,
        ((f"{symbol}.cpp", unit.text()),),
        scratch_bytes=scratch_bytes,
        shared_bytes=shared_bytes,
        team=team,
    )


def entry_point(unit: Unit, symbol: str, *, parallel: bool) -> str | None:
    """The entry point `symbol`: it calls `symbol_body(args, tid, nt)`, in a team if `parallel`.

    Returns the name of the function that a team of the caller's calls (`KernelSource.team`).
    """
    if not parallel:
        unit.function(_SERIAL.replace("SYMBOL", symbol))
        return None
    unit.helper("gaf_omp", OPENMP)
    unit.function(_TEAM.replace("SYMBOL", symbol))
    return f"{symbol}_team"


OPENMP = """\
#ifdef _OPENMP
extern "C" int omp_get_thread_num(void) noexcept;
extern "C" int omp_get_num_threads(void) noexcept;
#endif"""

HIDDEN = '__attribute__((visibility("hidden")))'
"""Of functions that only the plan's own driver calls."""

_TEAM = f"""\
extern "C" {HIDDEN}
int SYMBOL_team(const gaf_kernel_args *args, gaf_i64 tid, gaf_i64 nt) {{
  return SYMBOL_body(args, tid, nt);
}}
extern "C" int SYMBOL(const gaf_kernel_args *args) {{
#ifdef _OPENMP
  if (args->n_threads > 1) {{
    int status = 0;
#pragma omp parallel num_threads(args->n_threads) reduction(| : status)
    status |= SYMBOL_team(args, omp_get_thread_num(), omp_get_num_threads());
    return status;
  }}
#endif
  return SYMBOL_team(args, 0, 1);
}}"""

_SERIAL = """\
extern "C" int SYMBOL(const gaf_kernel_args *args) { return SYMBOL_body(args, 0, 1); }"""


@dataclass(frozen=True, slots=True)
class Part:
    """One factor of a parallel iteration space: an axis, or blocks of one."""

    axis: str
    count: str  # C expression
    step: int = 1  # elements of the axis per step


def split_over_threads(scope: Scope, parts: list[Part], stem: str = "t") -> Scope:
    """Opens the loop over this thread's share of the product of `parts`; axes are bound in it.

    Consecutive steps go to one thread. A part with `step > 1` is bound to the first element of its
    block.
    """
    total = " * ".join(f"(gaf_i64)({p.count})" for p in parts) or "1"
    scope.add(f"const gaf_i64 {stem}n = {total};")
    loop = scope.open(
        f"for (gaf_i64 {stem} = {stem}n * tid / nt; {stem} < {stem}n * (tid + 1) / nt; {stem}++) {{"
    )
    loop.axes.update(unravelled(loop, parts, stem, stem))
    return loop


def unravelled(scope: Scope, parts: list[Part], flat: str, stem: str) -> dict[str, Binding]:
    """The place along each part of step `flat` of their product; names begin with `stem`."""
    found: dict[str, Binding] = {}
    rest = flat
    for position, part in reversed(list(enumerate(parts))):
        name = f"{stem}{position}"
        here = f"{rest} % ({part.count})" if position else rest
        scaled = f"({here}) * {part.step}" if part.step != 1 else here
        scope.add(f"const gaf_i64 {name} = {scaled};")
        found[part.axis] = Binding(name)
        if position:
            rest = f"({rest}) / ({part.count})" if rest == flat else f"{rest} / ({part.count})"
            rest = f"({rest})"
    return found

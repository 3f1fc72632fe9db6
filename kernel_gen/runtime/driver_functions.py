"""The steps of a plan's driver as functions, which a compiler can lay out for each kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernel_gen.runtime.driver_step import TEAM_SIGNATURE, Place, Step
from kernel_gen.runtime.regions import Region

_POINTERS = {
    Place.VALUE: "call->values[{}]",
    Place.ARENA: "(char *)call->arena + {}ull",
    Place.PACKED: "plan->block + {}ull",
    Place.CONSTANT: "(void *)plan->constants[{}]",
}


def run_by_functions(
    steps: Mapping[int, Step], segments: Sequence[Sequence[Region] | None], arena_bytes: int
) -> list[str]:
    """`gaf_run` and what it calls. `steps` are the kernels' by position; None is a segment of the
    framework's."""
    compiled = {i: regions for i, regions in enumerate(segments) if regions is not None}
    return [
        *(_step(number, step, arena_bytes) for number, step in steps.items()),
        *(text for i, regions in compiled.items() for text in _segment(i, regions)),
        _run(compiled),
    ]


def _step(number: int, step: Step, arena_bytes: int) -> str:
    pointers = ",\n".join(f"      {_POINTERS[place].format(at)}" for place, at in step.operands)
    call = f"{step.team}(&args, tid, nt)" if step.team else f"{step.entry}(&args)"
    first = "" if step.team else "  if (tid) return 0;\n"
    return (
        f"static int gaf_step_{number}({TEAM_SIGNATURE}) {{\n"
        f"  (void)plan, (void)call, (void)tid, (void)nt;\n{first}"
        f"  void *const operands[] = {{\n{pointers}}};\n"
        "  const gaf_kernel_args args = {sizeof(gaf_kernel_args), operands,\n"
        f"      (char *)call->arena + {arena_bytes}ull, call->dims, call->n_threads,"
        " call->stream};\n"
        f"  return {call};\n}}\n"
    )


def _segment(number: int, regions: Sequence[Region]) -> list[str]:
    found: list[str] = []
    parts: list[str] = []
    for region in regions:
        if region.team:
            found.append(_share(number, region))
            parts.append(f"gaf_in_team(gaf_share_{number}, plan, call)")
        else:
            parts += [f"gaf_step_{turn.kernel}(plan, call, 0, 1)" for turn in region.turns]
    status = " ||\n      ".join(parts)
    result = f"{status} ? GAF_KERNEL_FAILED : GAF_OK" if parts else "GAF_OK"
    head = f"static int gaf_segment_{number}(const gaf_plan *plan, const gaf_call *call) {{"
    return [*found, f"{head}\n  (void)plan, (void)call;\n  return {result};\n}}\n"]


def _share(number: int, region: Region) -> str:
    """One thread's part of a segment's region."""
    lines = [f"static int gaf_share_{number}({TEAM_SIGNATURE}) {{", "  int status = 0;"]
    for turn in region.turns:
        lines += ["  GAF_BARRIER"] if turn.waits else []
        lines.append(f"  status |= gaf_step_{turn.kernel}(plan, call, tid, nt);")
    return "\n".join([*lines, "  return status;", "}", ""])


def _run(compiled: Mapping[int, Sequence[Region]]) -> str:
    cases = "".join(f"    case {i}: return gaf_segment_{i}(plan, call);\n" for i in compiled)
    return _RUN.format(cases=cases)


_RUN = """\
int gaf_run(const gaf_plan *plan, const gaf_call *call) {{
  if (!plan || !call || call->size < sizeof(gaf_call) || call->n_threads < 1)
    return GAF_BAD_ARGUMENT;
  switch (call->segment) {{
{cases}    default: return GAF_BAD_ARGUMENT;
  }}
}}
"""

"""What the templates for reductions share: refusals, the choice of axes, lanes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernel_gen.codegen.cpu.reductions.crossing import crossable
from kernel_gen.codegen.cpu.reductions.keep import POLICIES, Kept, kept_values
from kernel_gen.codegen.cpu.reductions.staging import StagedPhase, StagedPlan, staged_plan
from kernel_gen.codegen.cpu.vectors.types import Lanes, pick_lanes
from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, FlatStore, flatten
from kernel_gen.codegen.flat.moments import has_moments, one_pass
from kernel_gen.codegen.flat.simplify import simplify
from kernel_gen.errors import Refusal
from kernel_gen.ir.loopnest import Contract, LoopNest, Reduce
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import Sym
from kernel_gen.schedule.schedule import Choice, Schedule
from kernel_gen.schedule.words import choice

_KEPT_LIMIT_BYTES = 4 << 20  # scratch of one thread for kept values
_FEW_OUTPUTS = 3  # each of which may be stored past the cache alone
_SMALL_ELEMS = 1 << 14  # a few microseconds of elementwise work, what a thread team costs
_PASSES: tuple[Choice, ...] = (1, 2)
AHEAD = (0, 1, 2, 4)
"""Choices of the parameter "ahead": blocks of rows."""


def prepared(
    nest: LoopNest, *, cross: bool = False, passes: Choice = 2
) -> tuple[FlatNest, StagedPlan]:
    """The simplified nest and its phases; with `cross`, columns are reduced while rows are read.
    `passes` over the data of a variance: the mean first, or both together."""
    flat = simplify(flatten(nest))
    if passes == 1:
        flat = one_pass(flat)
    return flat, staged_plan(flat, crossable(flat) if cross else frozenset())


def pass_choices(nest: LoopNest) -> tuple[Choice, ...]:
    """Choices of the parameter "passes"; none where there is no variance."""
    return _PASSES if has_moments(simplify(flatten(nest))) else ()


def first_passes(staged: StagedPhase, target: Target, beside: int) -> Choice:
    """The first guess of the parameter "passes": one where the rows `beside` each other leave the
    cache between the mean and the deviations from it."""
    if not is_static(staged.nest, staged.phase.inner):
        return _PASSES[0]
    inner = frozenset(staged.phase.inner)
    live = staged.nest.statement_axes()
    loads = [n for n, s in enumerate(staged.nest.statements) if isinstance(s, FlatLoad)]
    elems = math.prod(static_extents(staged.nest, staged.phase.inner))
    nbytes = sum(4 * elems * beside for n in loads if inner <= live[n])
    return _PASSES[0] if nbytes > target.l2_bytes else _PASSES[1]


def passes_of(schedule: Schedule) -> Choice:
    """Decision "passes" of a schedule; two where there is no variance."""
    return choice(schedule, "passes") if schedule.find("passes") else _PASSES[1]


def refuse_rows(nest: LoopNest) -> Refusal | None:
    """Why a nest is not one phase of plain reductions."""
    if any(isinstance(s, Contract) for s in nest.statements):
        return Refusal("has-contraction", "the nest holds a matrix product")
    if not any(isinstance(s, Reduce) for s in nest.statements):
        return Refusal("no-reduction", "the nest reduces nothing")
    _, plan = prepared(nest)
    if len(plan.phases) > 1:
        inner = " then ".join(str(p.phase.inner) for p in plan.phases)
        return Refusal("mixed-reductions", f"the nest needs several passes: over {inner}")
    return None


def refuse_symbols(nest: LoopNest) -> Refusal | None:
    """Why intermediate results have no known size."""
    for axis in nest.axes:
        if isinstance(axis.extent, Sym):
            return Refusal("symbolic-scratch", f"axis {axis.name}: extent {axis.extent.name}")
    return None


def by_contiguity(accesses: Sequence[FlatLoad | FlatStore], axes: tuple[str, ...]) -> list[str]:
    """`axes`, those that most accesses walk with stride one first; later axes win ties."""

    def score(axis: str) -> tuple[int, int]:
        ones = sum(a.at.coeff(axis).const == 1 for a in accesses)
        return ones, axes.index(axis)

    return sorted(axes, key=score, reverse=True)


def lanes_for(staged: StagedPhase, target: Target, axis: str | None) -> Lanes:
    """Vector shape of a phase along `axis`."""
    nest = staged.nest
    extent = nest.extent(axis) if axis is not None else None
    used = [s.dtype for s in nest.statements]
    return pick_lanes(used, target, extent if isinstance(extent, int) else None)


def stream_choices(nest: FlatNest) -> tuple[Choice, ...]:
    """Which outputs are stored past the cache: 0 none, 1 all, 2 + k only the k-th of a few."""
    outputs = len({s.buffer for s in nest.stores})
    return (0, 1, *range(2, 2 + outputs)) if 1 < outputs <= _FEW_OUTPUTS else (0, 1)


def streamed(nest: FlatNest, stream: Choice) -> frozenset[int]:
    """The buffers of a choice of `stream_choices`."""
    outputs = sorted({s.buffer for s in nest.stores})
    if stream in (0, 1):
        return frozenset(outputs if stream else ())
    return frozenset([outputs[int(stream) - 2]])


def first_ahead(nest: FlatNest, target: Target) -> int:
    """The first guess of the parameter "ahead": operands beyond the second-level cache."""
    return AHEAD[1] if _known_bytes(nest) > target.l2_bytes else 0


def first_stream(nest: FlatNest, target: Target) -> int:
    """The first guess of the parameter "stream": outputs of what no cache holds leave past it."""
    return int(_known_bytes(nest) > target.l3_bytes)


def _known_bytes(nest: FlatNest) -> int:
    """Bytes of all buffers of known shapes."""
    kinds = [b.type for b in nest.buffers]
    return sum(k.nbytes for k in kinds if all(isinstance(d, int) for d in k.shape))


def first_threads(nest: FlatNest) -> str:
    """The first guess of the parameter "threads": one for work shorter than starting a team."""
    extents = [a.extent for a in nest.axes]
    known = [e for e in extents if isinstance(e, int)]
    small = len(known) == len(extents) and math.prod(known) < _SMALL_ELEMS
    return "one" if small else "all"


def kept_in(staged: StagedPhase, policy: str, axis: str | None) -> tuple[Kept, ...]:
    """Values kept over stages; in a row only those that vary along the vector axis."""
    if not is_static(staged.nest, staged.phase.inner):
        return ()
    live = staged.nest.statement_axes()
    kept = kept_values(staged.nest, staged.phase, policy)
    outside = axis is None or axis in staged.phase.outer
    return tuple(k for k in kept if outside or axis in live[k.statement])


def refuse_kept(staged: StagedPhase, kept: tuple[Kept, ...], units: int) -> Refusal | None:
    """Why the kept values of `units` rows are too many for a thread's scratch."""
    nbytes = len(kept) * 8 * units * math.prod(static_extents(staged.nest, staged.phase.inner))
    if kept and nbytes > _KEPT_LIMIT_BYTES:
        return Refusal("row-too-long", f"kept values of a row take {nbytes} bytes")
    return None


def policies(phases: tuple[StagedPhase, ...]) -> tuple[Choice, ...]:
    """The keep policies that differ."""
    seen: dict[tuple[tuple[Kept, ...], ...], str] = {}
    for policy in POLICIES:
        kept = tuple(kept_values(p.nest, p.phase, policy) for p in phases)
        static = all(is_static(p.nest, p.phase.inner) for p in phases)
        if static or not any(kept):
            seen.setdefault(kept, policy)
    return tuple(seen.values())


def unrolls(staged: StagedPhase) -> tuple[Choice, ...]:
    """Vectors side by side; few where the body is long, for the compiler's sake."""
    size = len(staged.nest.statements)
    return (1, 2, 4) if size <= 60 else (1, 2) if size <= 120 else (1,)


def static_extents(nest: FlatNest, axes: tuple[str, ...]) -> list[int]:
    """Known extents among those of `axes`."""
    extents = [nest.extent(a) for a in axes]
    return [e for e in extents if isinstance(e, int)]


def is_static(nest: FlatNest, axes: tuple[str, ...]) -> bool:
    return all(isinstance(nest.extent(a), int) for a in axes)

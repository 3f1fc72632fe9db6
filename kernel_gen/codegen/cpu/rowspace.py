"""What the templates for reductions share: refusals, the choice of axes, lanes."""

from __future__ import annotations

import math

from kernel_gen.codegen.cpu.linear import FlatNest, flatten
from kernel_gen.codegen.cpu.simplify import simplify
from kernel_gen.codegen.cpu.staging import StagedPhase, StagedPlan, staged_plan
from kernel_gen.codegen.cpu.vectypes import Lanes, pick_lanes
from kernel_gen.errors import Refusal
from kernel_gen.ir.loopnest import Contract, LoopNest, Reduce
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import Sym

_SMALL_ELEMS = 1 << 14  # a few microseconds of elementwise work, what a thread team costs


def prepared(nest: LoopNest) -> tuple[FlatNest, StagedPlan]:
    """The simplified nest and its phases."""
    flat = simplify(flatten(nest))
    return flat, staged_plan(flat)


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


def by_contiguity(nest: FlatNest, axes: tuple[str, ...]) -> list[str]:
    """`axes`, those that most accesses walk with stride one first; later axes win ties."""

    def score(axis: str) -> tuple[int, int]:
        ones = sum(a.at.coeff(axis).const == 1 for a in nest.accesses())
        return ones, axes.index(axis)

    return sorted(axes, key=score, reverse=True)


def lanes_for(staged: StagedPhase, target: Target, axis: str | None) -> Lanes:
    """Vector shape of a phase along `axis`."""
    nest = staged.nest
    extent = nest.extent(axis) if axis is not None else None
    used = [s.dtype for s in nest.statements]
    return pick_lanes(used, target, extent if isinstance(extent, int) else None)


def first_threads(nest: FlatNest) -> str:
    """The first guess of the parameter "threads": one for work shorter than starting a team."""
    extents = [a.extent for a in nest.axes]
    known = [e for e in extents if isinstance(e, int)]
    small = len(known) == len(extents) and math.prod(known) < _SMALL_ELEMS
    return "one" if small else "all"


def is_static(nest: FlatNest, axes: tuple[str, ...]) -> bool:
    return all(isinstance(nest.extent(a), int) for a in axes)

"""Cycles of a nest's statements where vectors run along one of its axes, and how many vectors a
tile's columns take."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable

from cost_models.op_costs import CONTIGUOUS_LOAD, GATHER_LOAD_PER_ELEMENT, vector_cycles
from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.tiling import Tiling
from kernel_gen.ir.loopnest import Axis, Compute, Guard, IndexValue, Load, Reduce, Store

STORE = 1.0  # one store a cycle (Agner Fog, Instruction tables, Zen 4; the same on Intel)
LOOP = 1.0  # estimate: a vector's share of addresses, counters and branches
_MASKED = 2.0  # estimate: a mask from bounds, and a masked access
_BRANCH = 1.0  # estimate: a bound that holds for all of a vector or none of it


def unit_axis(axes: tuple[Axis, ...]) -> str:
    """The name of the axis along which vectors run; one that no access knows if there is none."""
    return axes[-1].name if axes else ""


def stride(access: Load | Store, axis: str) -> int:
    """Elements from one point of an axis to its next; 0 where the access does not move."""
    return access.index[-1].coeff(axis) if access.index else 0


def cycles_per_vector(problem: Problem, positions: Iterable[int], axis: str, lanes: int) -> float:
    """Of the statements at `positions` that live on `axis`; the others are computed outside of the
    loop along it."""
    lives = problem.nest.statement_axes()
    total = 0.0
    for position in positions:
        statement = problem.nest.statements[position]
        living = axis in lives[position]
        if isinstance(statement, Load):
            total += access_cycles(statement, axis, lanes)
        elif isinstance(statement, Compute) and living:
            total += vector_cycles(statement.op, statement.dtype, lanes)
        elif isinstance(statement, IndexValue | Reduce):
            total += 0.5
    return total


def access_cycles(access: Load | Store, axis: str, lanes: int) -> float:
    """Of one vector's load or store: contiguous, one element for all lanes, or one by one."""
    step = stride(access, axis)
    guards = sum(_guard_cycles(guard, axis) for guard in access.guards)
    if step in (0, 1):
        once = CONTIGUOUS_LOAD if isinstance(access, Load) else STORE
        return guards + (once if step else CONTIGUOUS_LOAD)
    if step == 2 and isinstance(access, Load):
        return guards + 2 * CONTIGUOUS_LOAD + 1.0  # two loads and a shuffle
    return guards + lanes * GATHER_LOAD_PER_ELEMENT


def _guard_cycles(guard: Guard, axis: str) -> float:
    return _MASKED if axis in guard.index.axes() else _BRANCH


def vectors_of_columns(problem: Problem, tiling: Tiling) -> float:
    """Vectors that one row's columns take where they are walked tile by tile: tiles end at the end
    of the innermost column axis, or, joined, break into runs there."""
    if not problem.cols or not problem.n:
        return 1.0
    if not tiling.joined:
        full, tail = divmod(tiling.slab_cols(problem), tiling.nr)
        return tiling.slabs(problem) * (full * tiling.nv + math.ceil(tail / tiling.lanes))
    tile = _vectors_of_runs(tiling.nr, problem.inner_cols, tiling.lanes)
    return tiling.col_tiles(problem) * tile


@functools.lru_cache(maxsize=1024)
def _vectors_of_runs(columns: int, inner: int, lanes: int) -> float:
    """Vectors of a tile of joined columns, which ends a run at each multiple of `inner`: the mean
    over the places where tiles begin."""
    begins = range(0, inner, math.gcd(columns, inner))
    total = 0
    for first in begins:
        head = min(columns, inner - first)
        full, rest = divmod(columns - head, inner)
        total += math.ceil(head / lanes) + full * math.ceil(inner / lanes) + math.ceil(rest / lanes)
    return total / len(begins)


def vectors_along(axes: tuple[Axis, ...], lanes: int) -> float:
    """Vectors of one walk through all of the axes, the last of them innermost."""
    outer = math.prod(extent(axis) for axis in axes[:-1])
    return outer * math.ceil(extent(axes[-1]) / lanes) if axes else 1.0


def epilogue_cycles(problem: Problem, tiling: Tiling) -> float:
    """Cycles of the epilogue of all sums, and of their stores: once for a tile, or where whole rows
    are finished once more for each of their reductions."""
    axis = unit_axis(problem.cols)
    own = cycles_per_vector(problem, problem.after, axis, tiling.lanes) + LOOP
    own += CONTIGUOUS_LOAD * problem.sections
    own += sum(access_cycles(store, axis, tiling.lanes) for store in problem.nest.stores)
    after = (problem.nest.statements[position] for position in problem.after)
    stages = 1 + sum(isinstance(statement, Reduce) for statement in after)
    return problem.b * problem.m * vectors_of_columns(problem, tiling) * own * stages

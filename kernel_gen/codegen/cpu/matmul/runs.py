"""A left operand whose rows are read in place, in runs.

A run is one round of the depth's innermost axis, along which a row lies evenly in memory:

    x[n, c, oh + kh - 1, ow + kw - 1], channels innermost    runs (kh, kw), each along c
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.axes import elems, extent
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.ir.index import FloorDiv, Index, Mod
from kernel_gen.ir.loopnest import Guard, Load

POINTER_BYTES = 8
_LEAST_STEPS = 8  # of a run: fewer cost more to begin than to pack
_MOST_ZEROS = 1 << 14  # elements


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs begin at `buffer[offset]` where all `guards` hold; their elements are `step` apart."""

    buffer: int
    offset: Index
    step: int
    guards: tuple[Guard, ...]


def left_runs(problem: Problem) -> Runs | None:
    """The left operand's runs; None if its rows do not lie evenly along the innermost depth."""
    load = problem.nest.statements[problem.product.lhs]
    if not isinstance(load, Load) or not problem.depth or not problem.rows:
        return None
    last = problem.depth[-1]
    if len(load.index) != 1 or not _is_plain(problem, load) or extent(last) < _LEAST_STEPS:
        return None
    (index,) = load.index
    if any(last.name in guard.index.axes() for guard in load.guards) or _bends(index, last.name):
        return None
    begin = index.substitute({last.name: Index()})
    runs = Runs(load.buffer, begin, index.coeff(last.name), load.guards)
    return runs if not runs.guards or zeros(problem, runs) <= _MOST_ZEROS else None


def _is_plain(problem: Problem, load: Load) -> bool:
    """Whether elements are multiplied as they are stored, and are 0 outside the guards."""
    kept = problem.nest.buffers[load.buffer].type.dtype
    same = load.dtype is problem.product.dtype and kept is load.dtype
    indices = (*load.index, *(guard.index for guard in load.guards))
    return same and load.fill == 0 and not any(index.statements() for index in indices)


def _bends(index: Index, axis: str) -> bool:
    """Whether the index is no linear function of `axis`."""
    return any(isinstance(t, FloorDiv | Mod) and axis in t.index.axes() for t, _ in index.terms)


def runs_of(problem: Problem) -> int:
    """Runs of one row."""
    return elems(problem.depth[:-1])


def zeros(problem: Problem, runs: Runs) -> int:
    """Elements from the first to the last of a run."""
    return (extent(problem.depth[-1]) - 1) * abs(runs.step) + 1

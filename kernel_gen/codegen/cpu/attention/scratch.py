"""How many bytes of scratch an attention kernel needs, and for what."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.attention.problem import Problem
from kernel_gen.codegen.cpu.attention.tiling import Operand, Tiling

_ALIGN = 64


@dataclass(frozen=True, slots=True)
class Scratch:
    """Elements of each thread's parts in this order, and of the part of one unit of split keys
    that all threads share: results, largest scores and sums of a block of rows."""

    query: int
    scores: int
    tops: int
    totals: int
    sums: int
    key: int
    value: int
    unit: int

    @property
    def own(self) -> int:
        parts = (self.query, self.scores, self.tops, self.totals, self.sums, self.key, self.value)
        return sum(parts)


def scratch(problem: Problem, tiling: Tiling) -> Scratch:
    """Parts in elements, multiples of 64 bytes."""
    rows = -(-tiling.rows // tiling.mr) * tiling.mr
    step = _ALIGN // problem.dtype.bytes

    def whole(elems: int) -> int:
        return -(-elems // step) * step

    key = value = 0
    if tiling.key is not Operand.DOT:
        key = tiling.panels(problem) * tiling.nr * tiling.depth(problem)
    if tiling.value is not Operand.PLACE:
        columns = -(-problem.e // tiling.lanes) * tiling.lanes
        value = tiling.along_keys(problem.t) * columns
    sums = whole(rows * tiling.padded(problem.e))
    return Scratch(
        query=whole(rows * tiling.padded(tiling.depth(problem))),
        scores=whole(rows * tiling.padded(tiling.keys)),
        tops=whole(rows),
        totals=whole(rows),
        sums=sums,
        key=whole(key),
        value=whole(value),
        unit=sums + 2 * whole(rows) if tiling.splits > 1 else 0,
    )


def shared_elems(problem: Problem, tiling: Tiling) -> int:
    """Elements that threads share: one unit for each part of the keys of each block of rows."""
    units = problem.b * tiling.blocks(problem) * tiling.splits
    return units * scratch(problem, tiling).unit

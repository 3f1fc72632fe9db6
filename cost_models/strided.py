"""What the walk of a pointwise schedule costs beside that of the most contiguous axis.

Vectors along an axis that an access does not follow element by element take their elements one by
one, and move whole cache lines for them unless the lines are still there when the neighbours' turn
comes. Tiles that are transposed in registers touch whole lines on both sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cost_models.machine import Machine
from cost_models.op_costs import GATHER_LOAD_PER_ELEMENT
from kernel_gen.codegen.cpu.transposed import transposable
from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, FlatStore, flatten
from kernel_gen.codegen.flat.simplify import simplify
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Schedule
from kernel_gen.schedule.words import choice

_LINE_BYTES = 64
_SHUFFLES = 1.0  # cycles each: a tile of n vectors is transposed in n · log2 n
_SAME_SET_BYTES = 4096  # strides that are multiples of it fall into one set of the first level


@dataclass(frozen=True, slots=True)
class StridedCost:
    """What accesses against the vectors' axis add: cycles of one core, bytes that move."""

    cycles: float
    nbytes: float


def strided_cost(
    nest: LoopNest, schedule: Schedule, target: Target, machine: Machine
) -> StridedCost:
    """Of a schedule of the pointwise template."""
    return _Walk(simplify(flatten(nest)), schedule, target, machine).cost()


class _Walk:
    def __init__(
        self, flat: FlatNest, schedule: Schedule, target: Target, machine: Machine
    ) -> None:
        self._flat, self._target, self._machine = flat, target, machine
        self._axis, across = str(choice(schedule, "axis")), str(choice(schedule, "across"))
        self._block = int(choice(schedule, "block"))
        turned = transposable(flat, across, self._axis) if across else ()
        self._turned = [flat.statements[number] for number in turned]

    def cost(self) -> StridedCost:
        found = [self._of(access) for access in self._flat.accesses() if self._axis]
        return StridedCost(sum(a.cycles for a in found), sum(a.nbytes for a in found))

    def _of(self, access: FlatLoad | FlatStore) -> StridedCost:
        stride = access.at.coeff(self._axis).const
        moves = self._axis in access.at.axes()
        if not moves or (stride == 1 and access.at.is_affine_in(self._axis)):
            return StridedCost(0.0, 0.0)
        points = math.prod(map(self._extent, access.at.axes()))
        elem_bytes = self._flat.buffers[access.buffer].type.dtype.bytes
        if access in self._turned:
            lanes = max(self._target.vector_bytes // elem_bytes, 2)
            return StridedCost(_SHUFFLES * math.log2(lanes) * points / lanes, 0.0)
        lost = self._loses_lines(None if stride is None else stride * elem_bytes)
        again = points * (_LINE_BYTES - elem_bytes) if lost else 0.0
        return StridedCost(GATHER_LOAD_PER_ELEMENT * points, again)

    def _loses_lines(self, stride_bytes: int | None) -> bool:
        """Whether a block's lines are gone before their next elements are taken."""
        if stride_bytes is None or stride_bytes < _LINE_BYTES:
            return False  # nothing is known of a step that holds symbols
        lines = min(self._block, self._extent(self._axis))
        in_one_set = stride_bytes % _SAME_SET_BYTES == 0
        held = self._target.l1_bytes // (2 * _LINE_BYTES)
        return lines > (held // 32 if in_one_set else held)

    def _extent(self, axis: str) -> int:
        extent = self._flat.extent(axis)
        return extent if isinstance(extent, int) else self._machine.symbolic_extent

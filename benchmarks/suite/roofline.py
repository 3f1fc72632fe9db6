"""Where each kernel of a plan stands: operations and bytes from its nest, time from its plan."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernel_gen.errors import InvalidInput
from kernel_gen.ir.loopnest import Compute, Contract, Load, LoopNest, Reduce, Statement
from kernel_gen.runtime.plan import Kernel, Plan


@dataclass(frozen=True, slots=True)
class KernelPoint:
    """One kernel. `operations` are floating-point or integer ones (a multiply-add counts two),
    `nbytes` each operand once; `median_us` is None where only the whole plan was timed."""

    ops: tuple[str, ...]
    template: str
    operations: int
    nbytes: int
    median_us: float | None

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.operations / self.nbytes if self.nbytes else 0.0


def kernel_points(plan: Plan) -> tuple[KernelPoint, ...]:
    """All kernels of a plan, in order."""
    return tuple(_point(kernel) for kernel in plan.kernels)


def _point(kernel: Kernel) -> KernelPoint:
    measured = kernel.measurement.median_us if kernel.measurement else None
    return KernelPoint(
        kernel.ops,
        kernel.schedule.template,
        nest_operations(kernel.nest),
        nest_bytes(kernel.nest),
        measured,
    )


def _extents(nest: LoopNest) -> dict[str, int]:
    found: dict[str, int] = {}
    for axis in nest.axes:
        if not isinstance(axis.extent, int):
            raise InvalidInput(f"axis {axis.name} has no fixed extent")
        found[axis.name] = axis.extent
    return found


def nest_operations(nest: LoopNest) -> int:
    """Operations of a nest: one per computed or reduced point, two per multiply-add."""
    extents = _extents(nest)
    live = nest.statement_axes()

    def points(axes: tuple[str, ...]) -> int:
        return math.prod(extents[name] for name in axes)

    def count(position: int, statement: Statement) -> int:
        match statement:
            case Compute(op="const") | Compute(op="cast"):
                return 0
            case Compute():
                return points(live[position])
            case Reduce(arg=arg):
                return points(live[arg])
            case Contract(axes=axes):
                return 2 * points(tuple(dict.fromkeys((*live[position], *axes))))
        return 0

    return sum(count(position, statement) for position, statement in enumerate(nest.statements))


def nest_bytes(nest: LoopNest) -> int:
    """Bytes of a nest: each operand once; of a table that is read at given positions, what is read
    where that is less."""
    extents = _extents(nest)
    live = nest.statement_axes()
    gathered: dict[int, int] = {}
    for position, statement in enumerate(nest.statements):
        if isinstance(statement, Load) and any(i.statements() for i in statement.index):
            read = math.prod(extents[name] for name in live[position])
            gathered[statement.buffer] = gathered.get(statement.buffer, 0) + read
    total = 0
    for number, buffer in enumerate(nest.buffers):
        elems = min(buffer.type.elems, gathered.get(number, buffer.type.elems))
        total += elems * buffer.type.dtype.bytes
    return total

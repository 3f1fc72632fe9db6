"""Where each kernel of a plan stands: operations and bytes from its nest, time from its plan."""

from __future__ import annotations

from dataclasses import dataclass

from cost_models.roofline import nest_bytes, nest_operations
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

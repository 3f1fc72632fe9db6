"""What a nest computes: references in float64, and the elements that hang on a boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from kernel_gen.executor.execute import execute
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Buffer, BufferRole, LoopNest
from tuner.checks.boundary import with_ambiguity
from tuner.checks.compare import tolerance

Array = NDArray[Any]


def reference(
    nest: LoopNest, inputs: Sequence[Array], strict: bool
) -> tuple[list[Array], list[Array | None]]:
    """Reference outputs and their masks of ambiguous elements (None: there are none).

    Integers and bools in their own type. Floats in float64; `strict`: in their own type, with the
    nest's explicit roundings.
    """
    subject = nest if strict else with_wide_outputs(nest)
    marked, masks = with_ambiguity(subject, _boundary_tolerance(nest))
    results = execute(marked, inputs, precision="f32" if strict else "f64")
    count = sum(buffer.role is BufferRole.OUTPUT for buffer in nest.buffers)
    extra = iter(results[count:])
    return results[:count], [None if mask is None else next(extra) for mask in masks]


def _boundary_tolerance(nest: LoopNest) -> float:
    floats = [i for i, b in enumerate(nest.buffers) if b.type.dtype.is_float]
    return max((tolerance(nest, i, 1.0).absolute for i in floats), default=1e-5)


def with_wide_outputs(nest: LoopNest) -> LoopNest:
    """The nest with float outputs stored as float64, so that no reference is rounded."""
    return replace(nest, buffers=tuple(_wide(buffer) for buffer in nest.buffers))


def _wide(buffer: Buffer) -> Buffer:
    if buffer.role is not BufferRole.OUTPUT or not buffer.type.dtype.is_float:
        return buffer
    return replace(buffer, type=replace(buffer.type, dtype=DType.F64))

"""Emitter: short words for writing expansions on top of GraphBuilder."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.call import shape_attr
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.types import Shape, TensorType


@dataclass(frozen=True, slots=True)
class Emitter:
    """Emits primitives; values are those of the builder."""

    builder: GraphBuilder

    def type(self, value: int) -> TensorType:
        return self.builder.type_of(value)

    def op(self, op: str, *values: int, **attributes: object) -> int:
        return self.builder.apply(op, values, attributes)

    def cast(self, value: int, dtype: DType) -> int:
        """The value in `dtype`; nothing is emitted where it has that dtype already."""
        if self.type(value).dtype is dtype:
            return value
        return self.op("cast", value, dtype=dtype)

    def widen(self, value: int) -> int:
        """The value in the compute type of its dtype."""
        return self.cast(value, self.type(value).dtype.compute)

    def scalar(self, number: float, like: int) -> int:
        """A 0-d constant of the dtype of `like`."""
        dtype = self.type(like).dtype
        value = float(number) if dtype.is_float else number
        return self.op("full", shape=(), dtype=dtype, value=value)

    def with_scalar(self, op: str, value: int, number: float) -> int:
        """`op(value, number)`."""
        return self.op(op, value, self.scalar(number, value))

    def reshape(self, value: int, shape: Shape) -> int:
        """The value in another shape; nothing is emitted where it has that shape already."""
        if self.type(value).shape == shape:
            return value
        return self.op("reshape", value, shape=shape_attr(shape))

    def sum(self, value: int, dims: tuple[int, ...], *, keepdim: bool = True) -> int:
        return self.op("sum", value, dims=dims, keepdim=keepdim)

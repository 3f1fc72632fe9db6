"""Symbolic extents: torch's symbols under canonical names s0, s1, …, with their ranges."""

from __future__ import annotations

from typing import Any

import torch

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend.dtypes import from_torch
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.types import Dim, Shape, Sym, TensorType

_LARGEST_EXTENT = 2**48 - 1


class Symbols:
    """Gives symbols their names in order of first appearance and declares them to a builder."""

    def __init__(self, builder: GraphBuilder, ranges: dict[Any, Any]) -> None:
        self._builder = builder
        self._ranges = ranges
        self._names: dict[str, Sym] = {}

    def dim(self, extent: int | torch.SymInt) -> Dim:
        """An extent of the IR; raises UnsupportedModel for expressions such as s0 + 1."""
        if not isinstance(extent, torch.SymInt):
            return int(extent)
        expression = extent.node.expr
        if expression.is_Integer:
            return int(expression)
        if not expression.is_Symbol:
            raise UnsupportedModel(
                f"extent {expression} is an expression of symbols; only plain symbols can be "
                "captured: use static shapes"
            )
        found = self._names.get(str(expression))
        return found if found is not None else self._declare(expression, extent)

    def _declare(self, expression: Any, extent: torch.SymInt) -> Sym:
        if not extent.node.has_hint():
            raise UnsupportedModel(
                f"extent {expression} depends on the data (a mask, nonzero, item); "
                "leave this part of the model in eager mode"
            )
        hint = int(extent.node.hint)
        low, high = 0, _LARGEST_EXTENT
        known = self._ranges.get(expression)
        if known is not None:
            low = max(low, int(known.lower))
            high = int(known.upper) if known.upper.is_Integer else high
        symbol = Sym(f"s{len(self._names)}")
        self._builder.symbol(
            symbol.name, min(low, hint), max(min(high, _LARGEST_EXTENT), hint), hint
        )
        self._names[str(expression)] = symbol
        return symbol

    def shape(self, tensor: torch.Tensor) -> Shape:
        return tuple(self.dim(extent) for extent in tensor.shape)

    def type(self, tensor: torch.Tensor) -> TensorType:
        """Element type and shape, without strides; of a complex tensor those of its pairs."""
        if tensor.is_complex():
            return TensorType(from_torch(tensor.dtype.to_real()), (*self.shape(tensor), 2))
        return TensorType(from_torch(tensor.dtype), self.shape(tensor))

    def boundary_type(self, tensor: torch.Tensor) -> TensorType:
        """The type with strides in elements, or None for them where contiguous."""
        plain = self.type(tensor)
        if tensor.is_contiguous():
            return plain
        strides = tensor.stride()
        if any(isinstance(stride, torch.SymInt) for stride in strides):
            raise UnsupportedModel(
                "a tensor of symbolic shape is not contiguous; pass it contiguous, or capture "
                "with static shapes"
            )
        return TensorType(plain.dtype, plain.shape, tuple(int(stride) for stride in strides))


def is_dense(type: TensorType) -> bool:
    """Whether strides are a permutation of contiguous ones: no gaps, nothing twice."""
    step = 1
    pairs = zip(type.element_strides, type.shape, strict=True)
    for stride, extent in sorted((s, e) for s, e in pairs if isinstance(e, int) and e != 1):
        if stride != step or not isinstance(extent, int):
            return False
        step *= extent
    return True

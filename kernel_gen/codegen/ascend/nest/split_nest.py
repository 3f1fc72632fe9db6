"""A nest with one product in its three parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernel_gen.codegen.ascend.nest.product_axes import ProductAxes
from kernel_gen.codegen.ascend.nest.product_bias import Bias
from kernel_gen.codegen.ascend.nest.shape import Shaped
from kernel_gen.codegen.flat.linear import FlatNest, Linear
from kernel_gen.ir.loopnest import Buffer


@dataclass(frozen=True, slots=True)
class SplitNest:
    """`prologue` and `epilogue` are nests without products, None where nothing is to do. Their
    extra buffers follow the nest's own: `left`/`right` are buffers of the operands, `out` that of
    the result; `lhs`, `rhs` and `result` say where their elements lie. `bias` is what the cube unit
    adds to each row."""

    shape: Shaped
    axes: ProductAxes
    buffers: tuple[Buffer, ...]
    prologue: FlatNest | None
    epilogue: FlatNest | None
    left: int
    right: int
    out: int
    lhs: Linear
    rhs: Linear
    result: Linear
    relu: bool
    bias: Bias | None = None


def lies_along_rows(axes: ProductAxes, result: Linear) -> bool:
    """Whether neighbours in memory are elements of one column, as of a convolution's channels."""
    if axes.m is None or axes.n is None:
        return False
    return result.coeff(axes.m).const == 1 and result.coeff(axes.n).const != 1


def turned(parts: SplitNest) -> SplitNest:
    """The same product with its operands, and so rows and columns of the result, exchanged."""
    axes = ProductAxes(parts.axes.batch, parts.axes.n, parts.axes.m, parts.axes.k)
    return replace(
        parts, axes=axes, left=parts.right, right=parts.left, lhs=parts.rhs, rhs=parts.lhs
    )

"""Which product a nest holds, and what its axes are to it."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.flat.linear import FlatNest
from kernel_gen.errors import Refusal
from kernel_gen.ir.loopnest import Contract


@dataclass(frozen=True, slots=True)
class ProductAxes:
    """Roles of a product's axes: of both operands, of one each, summed."""

    batch: tuple[str, ...]
    m: str | None
    n: str | None
    k: str


def contraction(nest: FlatNest) -> int | Refusal:
    """The position of the only product of a nest."""
    found = [i for i, s in enumerate(nest.statements) if isinstance(s, Contract)]
    if not found:
        return Refusal("no-product", "the nest multiplies no matrices")
    if len(found) > 1:
        return Refusal("products-chained", "a kernel for the NPU holds one matrix product")
    return found[0]


def product_axes(nest: FlatNest, at: int) -> ProductAxes | Refusal:
    """Roles of the axes; more than one of an operand's own count as batch, the innermost stays."""
    c = nest.statements[at]
    assert isinstance(c, Contract)
    live = nest.statement_axes()
    left, right = live[c.lhs], live[c.rhs]
    if len(c.axes) != 1 or c.axes[0] not in left & right:
        return Refusal("operand-layout", f"the product sums over {c.axes}")
    k = c.axes[0]
    order = [a.name for a in nest.axes]
    own_left = [a for a in order if a in left - right]
    own_right = [a for a in order if a in right - left]
    batch = [a for a in order if a in left & right and a != k] + own_left[:-1] + own_right[:-1]
    return ProductAxes(
        tuple(a for a in order if a in batch),
        own_left[-1] if own_left else None,
        own_right[-1] if own_right else None,
        k,
    )

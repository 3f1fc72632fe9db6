"""A product's bias, as the cube unit's bias table takes it: one number for each column.

c[i, j] = Σ a[i, k] · b[k, j]; s = c + bias[j]   ->   the product starts from bias[j] and is s
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.ascend.nest.product_axes import ProductAxes
from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, Linear, flat_operands
from kernel_gen.codegen.flat.phases import store_operands
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import AxisTerm
from kernel_gen.ir.loopnest import Compute

_HELD = (DType.F16, DType.F32)
"""Types on the way from L1 to the bias table: halves become floats, bf16 has no such way."""


@dataclass(frozen=True, slots=True)
class Bias:
    """`buffer` holds it, `at` says where; statement `total` is the sum of product and bias."""

    buffer: int
    at: Linear
    total: int


def bias_of(nest: FlatNest, product: int, axes: ProductAxes) -> Bias | None:
    """The bias that all users of the product at `product` see added; None where there is none that
    the table takes."""
    live = nest.statement_axes()
    users = [n for n, s in enumerate(nest.statements) if product in flat_operands(s)]
    stored = any(product in store_operands(s) for s in nest.stores)
    if len(users) != 1 or stored or axes.n is None:
        return None
    total = nest.statements[users[0]]
    if not isinstance(total, Compute) or total.op != "add" or total.dtype is not DType.F32:
        return None
    other = [n for n in total.args if n != product]
    if len(other) != 1 or live[users[0]] != live[product]:
        return None
    load = nest.statements[other[0]]
    if not isinstance(load, FlatLoad) or load.guards or load.at.statements():
        return None
    plain = all(isinstance(term, AxisTerm) for term, _ in load.at.terms)
    along = load.at.coeff(axes.n).const == 1 and load.at.axes() <= {axes.n, *axes.batch}
    held = nest.buffers[load.buffer].type.dtype in _HELD
    return Bias(load.buffer, load.at, users[0]) if plain and along and held else None

"""Matrix products, linear layers and attention."""

from __future__ import annotations

import math

from kernel_gen.frontend.lower.core import (
    Args,
    Lowering,
    NotLowered,
    Number,
    Result,
    Val,
    extent,
    lowers,
)
from kernel_gen.frontend.lower.elementwise import add_scaled, binary, scaled
from kernel_gen.ir.dtype import DType


def _need_float(c: Lowering, value: Val) -> None:
    if not value.dtype.is_float:
        raise NotLowered(f"{c.name} on {value.dtype}", decompose=False)


@lowers("linear")
def linear(c: Lowering, a: Args) -> Result:
    value, weight, bias = a["input"], a["weight"], a["bias"]
    _need_float(c, value)
    if weight.rank != 2:
        raise NotLowered(f"{c.name} with a weight of rank {weight.rank}")
    operands = [value, weight] if bias is None else [value, weight, bias]
    return c.op("linear", *operands)


def matmul(c: Lowering, left: Val, right: Val) -> Val:
    """torch.matmul: vectors become matrices, and their extra dimension goes away again."""
    _need_float(c, left)
    shape = c.out_type.shape
    if left.rank == 1:
        left = c.reshape(left, (1, *left.shape))
    if right.rank == 1:
        right = c.reshape(right, (*right.shape, 1))
    return c.reshape(c.op("matmul", left, right), shape)


@lowers("matmul mm bmm mv dot inner vdot linalg_matmul")
def any_matmul(c: Lowering, a: Args) -> Result:
    right = next(a[name] for name in ("other", "mat2", "vec", "tensor") if name in a)
    left: Val = a["input"] if "input" in a and "self" not in a else a["self"]
    if c.name.startswith("aten.inner") and (left.rank == 0 or right.rank != 1):
        raise NotLowered(f"{c.name} of ranks {left.rank} and {right.rank}")
    if "out_dtype" in a:
        raise NotLowered(f"{c.name} with an output type", decompose=False)
    return matmul(c, left, right)


@lowers("addmm addbmm baddbmm addmv")
def addmm(c: Lowering, a: Args) -> Result:
    """beta · self + alpha · (left @ right); with a bias row this is a linear layer."""
    added: Val = a["self"]
    left, right = _factors(a)
    if "out_dtype" in a:
        raise NotLowered(f"{c.name} with an output type", decompose=False)
    if c.name.startswith("aten.addbmm"):
        raise NotLowered(c.name)
    _need_float(c, left)
    if a["beta"] == 1 and a["alpha"] == 1 and _is_bias(added, left, right):
        return c.op("linear", left, c.swap(right, 0, 1), added)
    product = scaled(c, matmul(c, left, right), a["alpha"], left.dtype)
    if a["beta"] == 0:  # torch ignores `self` then, NaN or not
        return _as_val(product)
    return add_scaled(c, "add", product, added, a["beta"], left.dtype)


def _factors(a: Args) -> tuple[Val, Val]:
    for left, right in (("mat1", "mat2"), ("batch1", "batch2"), ("mat", "vec")):
        if left in a:
            return a[left], a[right]
    raise NotLowered("no factors")


def _is_bias(added: Val, left: Val, right: Val) -> bool:
    return left.rank == 2 and right.rank == 2 and added.shape == (right.shape[1],)


def _as_val(value: Val | Number) -> Val:
    if not isinstance(value, Val):
        raise NotLowered("a number where a tensor is needed")
    return value


@lowers("outer ger")
def outer(c: Lowering, a: Args) -> Result:
    left, right = a["self"], a["vec2"]
    column = c.reshape(left, (*left.shape, 1))
    return binary(c, "mul", column, right, c.out_type.dtype)


@lowers("scaled_dot_product_attention")
def attention(c: Lowering, a: Args) -> Result:
    q, k, v, mask = a["query"], a["key"], a["value"], a["attn_mask"]
    if a["dropout_p"] > 0:
        raise NotLowered(f"{c.name} with dropout", code="random", decompose=False)
    if a["enable_gqa"]:
        k, v = _repeat_heads(c, q, k), _repeat_heads(c, q, v)
    if mask is not None and mask.dtype not in (DType.BOOL, q.dtype):
        raise NotLowered(f"{c.name}: a mask of {mask.dtype}", decompose=False)
    scale = a["scale"]
    if scale is None:
        scale = 1.0 / math.sqrt(max(extent(c, q, q.rank - 1), 1))
    operands = [q, k, v] if mask is None else [q, k, v, mask]
    return c.op(
        "attention",
        *operands,
        scale=float(scale),
        causal=bool(a["is_causal"]),
        mask=mask is not None,
    )


def _repeat_heads(c: Lowering, q: Val, shared: Val) -> Val:
    """Grouped-query attention: each key head serves several query heads in a row.

    (B, G, S, D) -> (B, G, 1, S, D) -> (B, G, H / G, S, D) -> (B, H, S, D)
    """
    heads, groups = extent(c, q, q.rank - 3), extent(c, shared, shared.rank - 3)
    if heads == groups:
        return shared
    lead, tail = shared.shape[:-2], shared.shape[-2:]
    wide = c.expand(c.reshape(shared, (*lead, 1, *tail)), (*lead, heads // groups, *tail))
    return c.reshape(wide, (*lead[:-1], heads, *tail))

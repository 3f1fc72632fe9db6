"""Reductions and the statistics built on them."""

from __future__ import annotations

import math
from functools import partial

from kernel_gen.frontend.dtypes import from_torch
from kernel_gen.frontend.lower.core import (
    Args,
    Lowering,
    NotLowered,
    Result,
    Val,
    axes,
    axis,
    extent,
    lowers,
)
from kernel_gen.ir.dtype import DType

_LARGEST_TOPK = 8


def reduce(
    c: Lowering, op: str, value: Val, dims: tuple[int, ...], keepdim: bool, **attrs: int | float
) -> Val:
    """A reduction over resolved dims; 0-d tensors are reduced as one element."""
    if value.rank == 0:
        one = c.op(op, c.reshape(value, (1,)), dims=(0,), keepdim=False, **attrs)
        return c.reshape(one, ())
    return c.op(op, value, dims=dims, keepdim=keepdim, **attrs)


def _dims(a: Args) -> tuple[int, ...]:
    return axes(a.get("dim"), a["self"].rank)


def _accumulating(op: str, c: Lowering, a: Args) -> Result:
    """sum, prod, mean: the operand is cast to the result's type first (ints to i64)."""
    value = c.cast(a["self"], c.out_type.dtype)
    return reduce(c, op, value, _dims(a), bool(a.get("keepdim")))


for _name in ("sum", "prod", "mean"):
    lowers(_name)(partial(_accumulating, _name))


def _extreme(op: str, c: Lowering, a: Args) -> Result:
    dims = a.get("dim")
    return reduce(c, op, a["self"], axes(dims, a["self"].rank), bool(a.get("keepdim")))


lowers("amax max.default")(partial(_extreme, "amax"))
lowers("amin min.default")(partial(_extreme, "amin"))


def _extreme_with_position(op: str, c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    if value.dtype is DType.BOOL:
        raise NotLowered(f"{c.name}: position of an extreme bool", decompose=False)
    dims, keepdim = axes(a["dim"], value.rank), bool(a["keepdim"])
    return [
        reduce(c, f"{prefix}{op}", value, dims, keepdim) if used else None
        for prefix, used in zip(("a", "arg"), c.used, strict=True)
    ]


lowers("max.dim")(partial(_extreme_with_position, "max"))
lowers("min.dim")(partial(_extreme_with_position, "min"))


@lowers("aminmax")
def aminmax(c: Lowering, a: Args) -> Result:
    return [
        reduce(c, op, a["self"], _dims(a), bool(a["keepdim"])) if used else None
        for op, used in zip(("amin", "amax"), c.used, strict=True)
    ]


def _position(op: str, c: Lowering, a: Args) -> Result:
    return reduce(c, op, a["self"], _dims(a), bool(a["keepdim"]))


lowers("argmax")(partial(_position, "argmax"))
lowers("argmin")(partial(_position, "argmin"))


def _truth(op: str, c: Lowering, a: Args) -> Result:
    found = reduce(c, op, c.cast(a["self"], DType.BOOL), _dims(a), bool(a.get("keepdim")))
    return c.cast(found, c.out_type.dtype)  # torch gives u8 for u8


lowers("any")(partial(_truth, "any"))
lowers("all")(partial(_truth, "all"))


def _correction(a: Args) -> float:
    if "unbiased" in a:
        return 1.0 if a["unbiased"] else 0.0
    return 1.0 if a["correction"] is None else float(a["correction"])


def _spread(c: Lowering, op: str, a: Args) -> Val:
    return reduce(c, op, a["self"], _dims(a), bool(a.get("keepdim")), correction=_correction(a))


lowers("var")(lambda c, a: _spread(c, "var", a))
lowers("std")(lambda c, a: _spread(c, "std", a))


def _spread_and_mean(op: str, c: Lowering, a: Args) -> Result:
    mean = reduce(c, "mean", a["self"], _dims(a), bool(a.get("keepdim")))
    return [_spread(c, op, a), mean]


lowers("var_mean")(partial(_spread_and_mean, "var"))
lowers("std_mean")(partial(_spread_and_mean, "std"))


@lowers("topk")
def topk(c: Lowering, a: Args) -> Result:
    """Of a few elements; more are faster found by a sort, which is the library's."""
    value, k = a["self"], a["k"]
    if value.rank == 0 or not 1 <= k <= _LARGEST_TOPK or not (a["largest"] and a["sorted"]):
        sentence = f"{c.name} has a form for the 1 to {_LARGEST_TOPK} largest of an axis, in order"
        raise NotLowered(sentence, decompose=False)
    dim = axis(a["dim"], value.rank)
    extent(c, value, dim)
    return [
        c.op(op, value, dim=dim, k=k) if used else None
        for op, used in zip(("topk", "argtopk"), c.used, strict=True)
    ]


@lowers("linalg_vector_norm")
def vector_norm(c: Lowering, a: Args) -> Result:
    return _norm(c, a["self"], a["ord"], _dims(a), bool(a["keepdim"]))


@lowers("linalg_norm.default")
def linalg_norm(c: Lowering, a: Args) -> Result:
    """Of all elements without an order; of vectors along one dimension; else a matrix norm."""
    value: Val = a["self"]
    order, dims = a["ord"], a["dim"]
    if order is not None and (len(dims) if dims else value.rank) != 1:
        raise NotLowered(f"{c.name} of matrices by order {order}")
    return _norm(c, value, 2 if order is None else order, _dims(a), bool(a["keepdim"]))


@lowers("linalg_matrix_norm.str_ord linalg_norm.ord_str")
def frobenius_norm(c: Lowering, a: Args) -> Result:
    if a["ord"] != "fro":
        raise NotLowered(f"{c.name} of order {a['ord']}")
    return _norm(c, a["self"], 2, _dims(a), bool(a["keepdim"]))


@lowers("norm")
def norm(c: Lowering, a: Args) -> Result:
    order = 2 if a["p"] is None else a["p"]
    return _norm(c, a["self"], order, _dims(a), bool(a.get("keepdim")))


def _norm(c: Lowering, value: Val, order: float, dims: tuple[int, ...], keepdim: bool) -> Val:
    """Vector norms; narrow floats are squared and summed in fp32, as torch does."""
    if not value.dtype.is_float:
        raise NotLowered(f"{c.name} of {value.dtype}")
    wide = c.cast(value, value.dtype.compute)
    if order == 2:
        total = reduce(c, "sum", c.op("square", wide), dims, keepdim)
        return c.cast(c.op("sqrt", total), c.out_type.dtype)
    if order == 1:
        return c.cast(reduce(c, "sum", c.op("abs", wide), dims, keepdim), c.out_type.dtype)
    if order in (math.inf, -math.inf):
        op = "amax" if order > 0 else "amin"
        return c.cast(reduce(c, op, c.op("abs", wide), dims, keepdim), c.out_type.dtype)
    raise NotLowered(f"{c.name} of order {order}")


@lowers("softmax log_softmax _softmax _log_softmax special_softmax special_log_softmax")
def softmax(c: Lowering, a: Args) -> Result:
    value = c.cast(a["self"], c.out_type.dtype)
    op = "log_softmax" if "log_softmax" in c.name else "softmax"
    if value.rank == 0:
        return c.reshape(c.op(op, c.reshape(value, (1,)), dim=0), ())
    return c.op(op, value, dim=a["dim"] % value.rank)


@lowers("count_nonzero.dim_IntList count_nonzero")
def count_nonzero(c: Lowering, a: Args) -> Result:
    truth = c.cast(c.cast(a["self"], DType.BOOL), DType.I64)
    return reduce(c, "sum", truth, _dims(a), keepdim=False)


@lowers("numel")
def numel(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    count = math.prod(extent(c, value, dim) for dim in range(value.rank))
    return c.number(count, from_torch(a["dtype"]) if "dtype" in a else DType.I64)

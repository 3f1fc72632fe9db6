"""Normalisations kept whole."""

from __future__ import annotations

import math

import torch

from kernel_gen.frontend.dtypes import to_torch
from kernel_gen.frontend.lower.core import (
    Args,
    Lowering,
    NotLowered,
    Result,
    Val,
    extent,
    lowers,
)


def _optional(*operands: Val | None) -> list[Val]:
    return [operand for operand in operands if operand is not None]


def _only_first(c: Lowering, first: Val) -> Result:
    """Operators that also give statistics: those are not made here."""
    if any(c.used[1:]):
        raise NotLowered(f"{c.name}: its statistics are used")
    return [first, *(None for _ in c.used[1:])]


@lowers("layer_norm native_layer_norm")
def layer_norm(c: Lowering, a: Args) -> Result:
    value, weight, bias = a["input"], a["weight"], a["bias"]
    found = c.op(
        "layer_norm",
        *_optional(value, weight, bias),
        axes=len(a["normalized_shape"]),
        eps=float(a["eps"]),
        weight=weight is not None,
        bias=bias is not None,
    )
    if len(c.used) == 1:
        return found
    return [found, *_row_statistics(c, value, len(a["normalized_shape"]), float(a["eps"]))]


def _row_statistics(c: Lowering, value: Val, axes: int, eps: float) -> list[Val | None]:
    """Mean and 1 / sqrt(variance + eps) of the last `axes` dims, kept as ones, where used."""
    wide = c.cast(value, value.dtype.compute)
    dims = tuple(range(value.rank - axes, value.rank))
    held = c.out[1].dtype if c.out[1] is not None else wide.dtype
    mean, inverse = None, None
    if c.used[1]:
        mean = c.cast(c.op("mean", wide, dims=dims, keepdim=True), held)
    if c.used[2]:
        variance = c.op("var", wide, dims=dims, keepdim=True, correction=0.0)
        shifted = c.op("add", variance, c.number(eps, wide.dtype))
        inverse = c.cast(c.op("rsqrt", shifted), held)
    return [mean, inverse]


@lowers("rms_norm _fused_rms_norm")
def rms_norm(c: Lowering, a: Args) -> Result:
    value, weight, eps = a["input"], a["weight"], a["eps"]
    if eps is None:
        # Narrow floats are normalised in fp32, with its epsilon.
        eps = torch.finfo(to_torch(value.dtype.compute)).eps
    found = c.op(
        "rms_norm",
        *_optional(value, weight),
        axes=len(a["normalized_shape"]),
        eps=float(eps),
        weight=weight is not None,
    )
    return found if len(c.used) == 1 else _only_first(c, found)


@lowers("group_norm native_group_norm")
def group_norm(c: Lowering, a: Args) -> Result:
    value, weight, bias = a["input"], a["weight"], a["bias"]
    found = c.op(
        "group_norm",
        *_optional(value, weight, bias),
        groups=a["num_groups"] if "num_groups" in a else a["group"],
        eps=float(a["eps"]),
        weight=weight is not None,
        bias=bias is not None,
    )
    if not any(c.used[1:]):
        return found if len(c.used) == 1 else _only_first(c, found)
    count = math.prod(extent(c, value, d) for d in range(value.rank)) // (a["N"] * a["group"])
    rows = c.reshape(value, (a["N"], a["group"], count))
    statistics = _row_statistics(c, rows, 1, float(a["eps"]))
    shape = (a["N"], a["group"])
    return [found, *(None if s is None else c.reshape(s, shape) for s in statistics)]


@lowers("batch_norm _native_batch_norm_legit_no_training native_batch_norm")
def batch_norm(c: Lowering, a: Args) -> Result:
    mean, var = a["running_mean"], a["running_var"]
    if mean is None or var is None:
        mean, var = _batch_statistics(c, a["input"])
    elif a.get("training"):
        raise NotLowered(f"{c.name} writes to its running statistics")
    found = _batch_norm(c, a, mean, var)
    return found if len(c.used) == 1 else _only_first(c, found)


@lowers("_native_batch_norm_legit.no_stats")
def batch_norm_alone(c: Lowering, a: Args) -> Result:
    return _only_first(c, _batch_norm(c, a, *_batch_statistics(c, a["input"])))


@lowers("_native_batch_norm_legit_functional")
def batch_norm_in_training(c: Lowering, a: Args) -> Result:
    """By the batch's statistics, with what they make of the running ones."""
    value: Val = a["input"]
    if not a["training"] or any(c.used[1:3]):
        raise NotLowered(f"{c.name}: its statistics are used")
    mean, var = _batch_statistics(c, value)
    normed = _batch_norm(c, a, mean, var)
    count = math.prod(extent(c, value, dim) for dim in _all_but_channels(value))
    unbiased = count / (count - 1) if count > 1 else math.nan
    free = c.op("mul", var, c.number(unbiased, var.dtype))
    followed = [
        _followed(c, a["running_mean"], mean, a["momentum"]),
        _followed(c, a["running_var"], free, a["momentum"]),
    ]
    held = [
        value if type is None else c.cast(value, type.dtype)
        for value, type in zip(followed, c.out[3:], strict=True)
    ]
    return [normed, None, None, *held]


def _batch_norm(c: Lowering, a: Args, mean: Val, var: Val) -> Val:
    weight, bias = a["weight"], a["bias"]
    return c.op(
        "batch_norm",
        *_optional(a["input"], mean, var, weight, bias),
        eps=float(a["eps"]),
        weight=weight is not None,
        bias=bias is not None,
    )


def _all_but_channels(value: Val) -> tuple[int, ...]:
    return tuple(dim for dim in range(value.rank) if dim != 1)


def _batch_statistics(c: Lowering, value: Val) -> tuple[Val, Val]:
    """Mean and variance of each channel over a whole batch, of shape (C,)."""
    wide, dims = c.cast(value, value.dtype.compute), _all_but_channels(value)
    mean = c.op("mean", wide, dims=dims, keepdim=False)
    return mean, c.op("var", wide, dims=dims, keepdim=False, correction=0.0)


def _followed(c: Lowering, running: Val, found: Val, momentum: float) -> Val:
    """running · (1 - momentum) + found · momentum"""
    kept = c.op("mul", c.cast(running, found.dtype), c.number(1 - momentum, found.dtype))
    taken = c.op("mul", found, c.number(momentum, found.dtype))
    return c.op("add", kept, taken)

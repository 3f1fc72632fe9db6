"""Normalisations kept whole."""

from __future__ import annotations

import torch

from kernel_gen.frontend.dtypes import to_torch
from kernel_gen.frontend.lower.core import Args, Lowering, NotLowered, Result, Val, lowers


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
    return found if len(c.used) == 1 else _only_first(c, found)


@lowers("batch_norm _native_batch_norm_legit_no_training native_batch_norm")
def batch_norm(c: Lowering, a: Args) -> Result:
    value, mean, var = a["input"], a["running_mean"], a["running_var"]
    if a.get("training") or mean is None or var is None:
        raise NotLowered(f"{c.name} takes its statistics from the batch")
    weight, bias = a["weight"], a["bias"]
    found = c.op(
        "batch_norm",
        *_optional(value, mean, var, weight, bias),
        eps=float(a["eps"]),
        weight=weight is not None,
        bias=bias is not None,
    )
    return found if len(c.used) == 1 else _only_first(c, found)

"""Activation functions, bounds, and dropout, which eval mode turns off."""

from __future__ import annotations

from functools import partial

from kernel_gen.frontend.dtypes import fits, rounded
from kernel_gen.frontend.lower.core import (
    Args,
    Lowering,
    NotLowered,
    Number,
    Result,
    Val,
    lowers,
)
from kernel_gen.frontend.lower.elementwise import binary
from kernel_gen.ir.dtype import DType


def _clamp(c: Lowering, value: Val, low: Number | None, high: Number | None) -> Val:
    dtype = c.out_type.dtype
    value = c.cast(value, dtype)
    low, high = (None if b is None else _bound(c, b, dtype) for b in (low, high))
    return c.op("clamp", value, low=low, high=high)


def _bound(c: Lowering, bound: Number, dtype: DType) -> Number:
    if not fits(bound, dtype):
        raise NotLowered(f"{c.name}: bound {bound} is out of range for {dtype}")
    return rounded(bound, dtype) if dtype.is_float else int(bound)


@lowers("clamp clip clamp_min clamp_max")
def clamp(c: Lowering, a: Args) -> Result:
    low, high = a.get("min"), a.get("max")
    if not isinstance(low, Val) and not isinstance(high, Val):
        return _clamp(c, a["self"], low, high)
    dtype = c.out_type.dtype
    value = c.cast(a["self"], dtype)
    if low is not None:
        value = binary(c, "maximum", value, low, dtype)
    return value if high is None else binary(c, "minimum", value, high, dtype)


@lowers("hardtanh")
def hardtanh(c: Lowering, a: Args) -> Result:
    return _clamp(c, a["self"], a["min_val"], a["max_val"])


def _activation(op: str, c: Lowering, a: Args) -> Result:
    return c.op(op, a["self"])


for _name in ("silu", "hardswish", "hardsigmoid", "relu6", "mish"):
    lowers(_name)(partial(_activation, _name))
lowers("log_sigmoid")(partial(_activation, "logsigmoid"))


@lowers("gelu")
def gelu(c: Lowering, a: Args) -> Result:
    return c.op("gelu", a["self"], approximate=a["approximate"])


@lowers("softplus")
def softplus(c: Lowering, a: Args) -> Result:
    if (a["beta"], a["threshold"]) != (1, 20):
        raise NotLowered(f"{c.name}: beta {a['beta']}, threshold {a['threshold']}")
    return c.op("softplus", a["self"])


@lowers("leaky_relu")
def leaky_relu(c: Lowering, a: Args) -> Result:
    return c.op("leaky_relu", a["self"], slope=float(a["negative_slope"]))


@lowers("elu")
def elu(c: Lowering, a: Args) -> Result:
    if a["input_scale"] != 1:
        raise NotLowered(f"{c.name}: input scale {a['input_scale']}")
    return c.op("elu", a["self"], alpha=float(a["alpha"]), scale=float(a["scale"]))


@lowers("selu")
def selu(c: Lowering, a: Args) -> Result:
    # Klambauer et al., Self-Normalizing Neural Networks (2017), equation 2.
    return c.op("elu", a["self"], alpha=1.6732632423543772848, scale=1.0507009873554804934)


@lowers("dropout feature_dropout alpha_dropout feature_alpha_dropout")
def dropout(c: Lowering, a: Args) -> Result:
    if a["train"] and a["p"] != 0:
        sentence = f"{c.name} draws random numbers in training"
        raise NotLowered(sentence, code="random", decompose=False)
    value: Val = a["input"]
    return value

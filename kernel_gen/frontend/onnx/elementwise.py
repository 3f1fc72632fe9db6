"""Elementwise operators, casts and selections."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import torch
import torch.nn.functional as F
from torch import Tensor

from kernel_gen.frontend.onnx.dtypes import torch_dtype
from kernel_gen.frontend.onnx.values import Call, rule

_UNARY: dict[str, Callable[[Tensor], Tensor]] = {
    "Abs": torch.abs,
    "Acos": torch.acos,
    "Acosh": torch.acosh,
    "Asin": torch.asin,
    "Asinh": torch.asinh,
    "Atan": torch.atan,
    "Atanh": torch.atanh,
    "BitwiseNot": torch.bitwise_not,
    "Ceil": torch.ceil,
    "Cos": torch.cos,
    "Cosh": torch.cosh,
    "Erf": torch.erf,
    "Exp": torch.exp,
    "Floor": torch.floor,
    "HardSwish": F.hardswish,
    "Identity": lambda x: x,
    "IsNaN": torch.isnan,
    "Log": torch.log,
    "Mish": F.mish,
    "Neg": torch.neg,
    "Not": torch.logical_not,
    "Reciprocal": torch.reciprocal,
    "Relu": F.relu,
    "Round": torch.round,
    "Sigmoid": torch.sigmoid,
    "Sign": torch.sign,
    "Sin": torch.sin,
    "Sinh": torch.sinh,
    "Softplus": lambda x: F.softplus(x, threshold=math.inf),
    "Softsign": F.softsign,
    "Sqrt": torch.sqrt,
    "Tan": torch.tan,
    "Tanh": torch.tanh,
}
_BINARY: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Add": torch.add,
    "And": torch.logical_and,
    "BitwiseAnd": torch.bitwise_and,
    "BitwiseOr": torch.bitwise_or,
    "BitwiseXor": torch.bitwise_xor,
    "Equal": torch.eq,
    "Greater": torch.gt,
    "GreaterOrEqual": torch.ge,
    "Less": torch.lt,
    "LessOrEqual": torch.le,
    "Mul": torch.mul,
    "Or": torch.logical_or,
    "Sub": torch.sub,
    "Xor": torch.logical_xor,
}
_FOLDED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "Max": torch.maximum,
    "Min": torch.minimum,
    "Sum": torch.add,
}


@rule(*_UNARY)
def unary(call: Call) -> Tensor:
    return _UNARY[call.op](call.tensor(0))


@rule(*_BINARY)
def binary(call: Call) -> Tensor:
    return _BINARY[call.op](call.tensor(0), call.tensor(1))


@rule(*_FOLDED)
def folded(call: Call) -> Tensor:
    return reduce(_FOLDED[call.op], call.tensors())


@rule("Mean")
def mean(call: Call) -> Tensor:
    return reduce(torch.add, call.tensors()) / len(call)


@rule("Div")
def div(call: Call) -> Tensor:
    """Integers are divided towards zero."""
    left, right = call.tensor(0), call.tensor(1)
    return torch.div(left, right, rounding_mode=None if left.is_floating_point() else "trunc")


@rule("Mod")
def mod(call: Call) -> Tensor:
    left, right = call.tensor(0), call.tensor(1)
    return torch.fmod(left, right) if call.attr("fmod", 0) else torch.remainder(left, right)


@rule("Pow")
def power(call: Call) -> Tensor:
    """The result has the type of the base, whatever the exponent's is."""
    base, exponent = call.tensor(0), call.tensor(1)
    return torch.pow(base, exponent).to(base.dtype)


@rule("BitShift")
def bit_shift(call: Call) -> Tensor:
    left = call.attr("direction", b"") == b"LEFT"
    value, by = call.tensor(0), call.tensor(1)
    return torch.bitwise_left_shift(value, by) if left else torch.bitwise_right_shift(value, by)


@rule("Cast", "CastLike")
def cast(call: Call) -> Tensor:
    value = call.tensor(0)
    if call.op == "CastLike":
        return value.to(call.tensor(1).dtype)
    return value.to(torch_dtype(call.attr("to"), "the result of a Cast"))


@rule("Clip")
def clip(call: Call) -> Tensor:
    """Bounds below opset 11 are attributes; an upper bound below the lower one wins."""
    value = call.tensor(0)
    low, high = call.optional(1), call.optional(2)
    if low is not None:
        value = torch.maximum(value, low.to(value.dtype))
    return value if high is None else torch.minimum(value, high.to(value.dtype))


@rule("Where")
def where(call: Call) -> Tensor:
    return torch.where(call.tensor(0), call.tensor(1), call.tensor(2))


@rule("PRelu")
def prelu(call: Call) -> Tensor:
    value, slope = call.tensor(0), call.tensor(1)
    return torch.where(value < 0, value * slope, value)


@rule("IsInf")
def is_inf(call: Call) -> Tensor:
    value = call.tensor(0)
    found = torch.zeros_like(value, dtype=torch.bool)
    if call.attr("detect_positive", 1):
        found = found | (value == math.inf)
    return found | (value == -math.inf) if call.attr("detect_negative", 1) else found


@rule("Gelu")
def gelu(call: Call) -> Tensor:
    tanh = call.attr("approximate", b"none") == b"tanh"
    return F.gelu(call.tensor(0), approximate="tanh" if tanh else "none")


@rule("LeakyRelu")
def leaky_relu(call: Call) -> Tensor:
    return F.leaky_relu(call.tensor(0), call.attr("alpha", 0.01))


@rule("Elu")
def elu(call: Call) -> Tensor:
    return F.elu(call.tensor(0), call.attr("alpha", 1.0))


@rule("Celu")
def celu(call: Call) -> Tensor:
    return F.celu(call.tensor(0), call.attr("alpha", 1.0))


@rule("Selu")
def selu(call: Call) -> Tensor:
    value = call.tensor(0)
    alpha = call.attr("alpha", 1.6732631921768188)
    return F.elu(value, alpha) * float(call.attr("gamma", 1.0507010221481323))


@rule("HardSigmoid")
def hard_sigmoid(call: Call) -> Tensor:
    return torch.clamp(call.tensor(0) * call.attr("alpha", 0.2) + call.attr("beta", 0.5), 0, 1)


@rule("ThresholdedRelu")
def thresholded_relu(call: Call) -> Tensor:
    value = call.tensor(0)
    return torch.where(value > call.attr("alpha", 1.0), value, torch.zeros_like(value))


@rule("Shrink")
def shrink(call: Call) -> Tensor:
    value, lambd, bias = call.tensor(0), call.attr("lambd", 0.5), call.attr("bias", 0.0)
    zero = torch.zeros_like(value)
    above = torch.where(value > lambd, (value - bias).to(value.dtype), zero)
    return torch.where(value < -lambd, (value + bias).to(value.dtype), above)


@rule("Swish")
def swish(call: Call) -> Tensor:
    value = call.tensor(0)
    return value * torch.sigmoid(call.attr("alpha", 1.0) * value)


@rule("Dropout")
def dropout(call: Call) -> list[Tensor | None]:
    """Inference: the input itself, and a mask of ones where one is asked for."""
    value = call.tensor(0)
    if call.has(2) and bool(call.known(2, "training mode").item()):
        ratio = float(call.known(1, "ratio").item()) if call.has(1) else 0.5
        if ratio > 0:
            raise call.refuse("training mode draws random numbers; export the model in eval mode")
    mask = torch.ones_like(value, dtype=torch.bool)
    return [value, mask] if call.outputs > 1 else [value]

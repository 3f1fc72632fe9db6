"""Expansions of elementwise composites. NaN passes through each of them, as in eager."""

from __future__ import annotations

import math
from collections.abc import Callable

from kernel_gen.ir.call import Call
from kernel_gen.ir.emitter import Emitter

Formula = Callable[[Emitter, Call, int], int]
_SOFTPLUS_LINEAR = 20.0  # torch's threshold: softplus(x) is x above it


def _gelu(e: Emitter, call: Call, x: int) -> int:
    """x/2 · (1 + erf(x/√2)), or its approximation by tanh (Hendrycks and Gimpel, 2016)."""
    half = e.with_scalar("mul", x, 0.5)
    if call.attrs["approximate"] == "none":
        inner = e.op("erf", e.with_scalar("mul", x, math.sqrt(0.5)))
    else:
        cube = e.op("mul", e.op("mul", x, x), x)
        poly = e.op("add", x, e.with_scalar("mul", cube, 0.044715))
        inner = e.op("tanh", e.with_scalar("mul", poly, math.sqrt(2.0 / math.pi)))
    return e.op("mul", half, e.with_scalar("add", inner, 1.0))


def _silu(e: Emitter, call: Call, x: int) -> int:
    return e.op("mul", x, e.op("sigmoid", x))


def _between(e: Emitter, x: int, low: float | None, high: float | None) -> int:
    """max(x, low), then min(…, high): a low bound above the high one gives the high one."""
    if low is not None:
        x = e.with_scalar("maximum", x, low)
    if high is not None:
        x = e.with_scalar("minimum", x, high)
    return x


def _relu6(e: Emitter, call: Call, x: int) -> int:
    return _between(e, x, 0.0, 6.0)


def _hardsigmoid(e: Emitter, call: Call, x: int) -> int:
    return e.with_scalar("div", _between(e, e.with_scalar("add", x, 3.0), 0.0, 6.0), 6.0)


def _hardswish(e: Emitter, call: Call, x: int) -> int:
    gate = _between(e, e.with_scalar("add", x, 3.0), 0.0, 6.0)
    return e.with_scalar("div", e.op("mul", x, gate), 6.0)


def _softplus(e: Emitter, call: Call, x: int) -> int:
    """log(1 + exp x), x itself above the threshold."""
    curve = e.op("log1p", e.op("exp", x))
    return e.op("where", e.with_scalar("gt", x, _SOFTPLUS_LINEAR), x, curve)


def _mish(e: Emitter, call: Call, x: int) -> int:
    return e.op("mul", x, e.op("tanh", e.op("log1p", e.op("exp", x))))


def _logsigmoid(e: Emitter, call: Call, x: int) -> int:
    """min(x, 0) - log(1 + exp(-|x|)), which does not overflow."""
    tail = e.op("log1p", e.op("exp", e.op("neg", e.op("abs", x))))
    return e.op("sub", e.with_scalar("minimum", x, 0.0), tail)


def _leaky_relu(e: Emitter, call: Call, x: int) -> int:
    scaled = e.with_scalar("mul", x, call.number("slope"))
    return e.op("where", e.with_scalar("gt", x, 0.0), x, scaled)


def _elu(e: Emitter, call: Call, x: int) -> int:
    """scale · x above 0, scale · alpha · (exp x - 1) below."""
    scale = call.number("scale")
    below = e.with_scalar("mul", e.op("expm1", x), call.number("alpha") * scale)
    above = e.with_scalar("mul", x, scale) if scale != 1 else x
    return e.op("where", e.with_scalar("gt", x, 0.0), above, below)


def _square(e: Emitter, call: Call, x: int) -> int:
    return e.op("mul", x, x)


def _clamp(e: Emitter, call: Call, x: int) -> int:
    bounds = [None if call.attrs[key] is None else call.number(key) for key in ("low", "high")]
    return _between(e, x, *bounds)


def _rounded_once(formula: Formula) -> Callable[[Emitter, Call, tuple[int, ...]], int]:
    """Widen, apply, round to the operand's dtype."""

    def expansion(e: Emitter, call: Call, operands: tuple[int, ...]) -> int:
        return e.cast(formula(e, call, e.widen(operands[0])), call.x.dtype)

    return expansion


ACTIVATIONS = {
    name: _rounded_once(formula)
    for name, formula in {
        "gelu": _gelu,
        "silu": _silu,
        "relu6": _relu6,
        "hardsigmoid": _hardsigmoid,
        "hardswish": _hardswish,
        "softplus": _softplus,
        "mish": _mish,
        "logsigmoid": _logsigmoid,
        "leaky_relu": _leaky_relu,
        "elu": _elu,
        "square": _square,
        "clamp": _clamp,
    }.items()
}

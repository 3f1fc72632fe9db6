"""NumPy functions of the elementwise primitives, on held arrays (floats in float64)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kernel_gen.ir.arrays import Array
from kernel_gen.ir.erf import erf

Function = Callable[..., Array]


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f"


def _kept_integer(function: Function) -> Function:
    """floor and its kin leave integers alone."""
    return lambda x: function(x) if _is_float(x) else x


def _scalarwise(function: Callable[[float], float]) -> Function:
    """A function of Python's math module over an array, for those that NumPy lacks."""

    def apply(x: Array) -> Array:
        flat = x.reshape(-1).tolist()
        return np.fromiter(map(function, flat), np.float64, len(flat)).reshape(x.shape)

    return apply


def _sign(x: Array) -> Array:
    """-1, 0 or 1; 0 for NaN, as torch."""
    return np.asarray((x > 0).astype(x.dtype) - (x < 0).astype(x.dtype))


def _sigmoid(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))


def _relu(x: Array) -> Array:
    return np.asarray(np.maximum(x, x.dtype.type(0)))


ELEMENTWISE: dict[str, Function] = {
    "abs": np.abs,
    "neg": np.negative,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "reciprocal": lambda x: 1.0 / x,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "erf": erf,
    "erfc": _scalarwise(math.erfc),
    "sigmoid": _sigmoid,
    "relu": _relu,
    "sign": _sign,
    "floor": _kept_integer(np.floor),
    "ceil": _kept_integer(np.ceil),
    "round": _kept_integer(np.rint),
    "trunc": _kept_integer(np.trunc),
    "logical_not": np.logical_not,
    "bitwise_not": np.invert,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floor_div": np.floor_divide,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "pow": np.power,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "where": np.where,
}

"""NumPy meaning of the elementwise ops of a nest, in the operands' own type."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.errors import InvalidGraph

Array = NDArray[Any]


def apply_op(op: str, args: Sequence[Array]) -> Array:
    """`op` on broadcast operands; raises InvalidGraph for an unknown op."""
    function = _OPS.get(op)
    if function is None:
        raise InvalidGraph(f"op {op} has no meaning inside a nest")
    return np.asarray(function(*args))


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Element by element: NumPy lacks the error functions."""
    wide = np.vectorize(function, otypes=[np.float64])

    def apply(x: Array) -> Array:
        return np.asarray(wide(x)).astype(x.dtype)

    return apply


_SAME = (
    "abs exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh sign floor ceil "
    "trunc logical_not isnan isinf isfinite add maximum minimum copysign remainder fmod "
    "bitwise_and bitwise_or bitwise_xor logical_and logical_or logical_xor where"
)
_OTHER: Mapping[str, Callable[..., Any]] = {
    "neg": np.negative,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floor_div": np.floor_divide,
    "pow": np.power,
    "atan2": np.arctan2,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "rsqrt": lambda x: np.reciprocal(np.sqrt(x)),
    "reciprocal": np.reciprocal,
    "erf": _each(math.erf),
    "erfc": _each(math.erfc),
    "sigmoid": lambda x: np.reciprocal(1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "round": np.rint,
    "bitwise_not": np.invert,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_OPS = MappingProxyType({**{name: getattr(np, name) for name in _SAME.split()}, **_OTHER})

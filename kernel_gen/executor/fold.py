"""Reductions of arrays as loop nests name them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.errors import InvalidGraph

Array = NDArray[Any]


def fold(op: str, value: Array, dtype: np.dtype[np.generic]) -> Array:
    """The last dimension reduced; sums, products and positions are held in `dtype`."""
    match op:
        case "sum":
            return np.asarray(value.sum(-1, dtype=dtype))
        case "prod":
            return np.asarray(value.prod(-1, dtype=dtype))
        case "any":
            return np.asarray(value.any(-1))
        case "all":
            return np.asarray(value.all(-1))
        case "amax":
            return np.asarray(value.max(-1, initial=_extreme(value.dtype, -1)))
        case "amin":
            return np.asarray(value.min(-1, initial=_extreme(value.dtype, 1)))
        case "argmax" | "argmin":
            return np.asarray(getattr(np, op)(value, -1)).astype(dtype)
    raise InvalidGraph(f"reduction {op} is unknown")


def _extreme(dtype: np.dtype[np.generic], sign: int) -> float | int | bool:
    """The largest (sign 1) or smallest value of a type."""
    if dtype.kind == "b":
        return sign > 0
    if dtype.kind in "iu":
        info = np.iinfo(dtype.name)
        return int(info.max if sign > 0 else info.min)
    return sign * float("inf")

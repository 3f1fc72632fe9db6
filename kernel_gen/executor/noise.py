"""Rounding errors put in on purpose, to see how far they go: Monte Carlo arithmetic (D. S. Parker,
*Monte Carlo Arithmetic*, UCLA CSD-970002, 1997).

Every result that a kernel would round is moved up or down by an ulp, and every term of a sum by as
much as sums in another order may err: half an ulp of its size for each step of a random walk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.ir.dtype import DType

Array = NDArray[Any]

_SIGNS = 65_537  # drawn, then repeated; prime, so that rows differ
_STEP = 4099  # from one statement's signs to the next one's
# Ops whose float results are exact, or exact but for a step that rounding may move.
_EXACT = frozenset(
    ("abs", "neg", "relu", "sign", "floor", "ceil", "round", "trunc", "floor_div", "remainder",
     "fmod", "maximum", "minimum", "copysign", "where", "cast", "const")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Noise:
    """Errors of one draw; equal draws move equal statements alike."""

    seed: int

    def on_result(self, op: str, value: Array, dtype: DType, position: int) -> Array:
        """The result of an elementwise op of statement `position`."""
        if op in _EXACT or not dtype.is_float:
            return value
        return self._moved(value, _epsilon(dtype), position)

    def on_terms(self, value: Array, dtype: DType, position: int, count: int) -> Array:
        """What statement `position` sums up, `count` terms at a time."""
        if not dtype.is_float:
            return value
        return self._moved(value, _epsilon(dtype) * max(1.0, 0.25 * math.sqrt(count)), position)

    def _moved(self, value: Array, share: float, position: int) -> Array:
        signs, first = _signs(self.seed), position * _STEP % _SIGNS
        own = signs[first : first + value.size]
        if own.size < value.size:
            own = np.resize(signs[first : first + _SIGNS], value.size)
        return np.asarray(value * (1 + share * own.reshape(value.shape)))


def _epsilon(dtype: DType) -> float:
    return 2.0**-52 if dtype is DType.F64 else 2.0**-23


@lru_cache(maxsize=8)
def _signs(seed: int) -> NDArray[np.float64]:
    """Twice over, so that most values meet a part of them."""
    return np.tile(np.random.default_rng(seed).choice(np.array([-1.0, 1.0]), _SIGNS), 2)

"""erf on arrays in float64: Taylor polynomials about the points of a grid.

The derivatives are erf⁽ⁿ⁺¹⁾(x) = 2/√π · (−1)ⁿ Hₙ(x) · e^(−x²) with Hermite polynomials Hₙ
(Abramowitz & Stegun 7.1.19). With steps of 1/32 nine terms leave an error below 1e-21.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

_STEPS = 32  # grid points per unit
_LIMIT = 6.0  # erf is ±1 in float64 beyond
_TERMS = 9

Floats = NDArray[np.float64]


def erf(x: Floats) -> Floats:
    """The error function, elementwise, accurate to about an ulp. NaN stays NaN."""
    clipped = np.clip(np.abs(x), 0.0, _LIMIT)
    place = np.rint(np.nan_to_num(clipped) * _STEPS).astype(np.intp)
    offset = clipped - place / _STEPS
    coefficients = _coefficients()
    total = coefficients[-1][place]
    for row in coefficients[-2::-1]:
        total = total * offset + row[place]
    return np.asarray(np.copysign(total, x))


@cache
def _coefficients() -> Floats:
    """(terms, grid points): Taylor coefficients about each point."""
    grid = np.arange(int(_LIMIT * _STEPS) + 1) / _STEPS
    rows = [np.array([math.erf(point) for point in grid])]
    before, hermite = np.zeros_like(grid), np.ones_like(grid)
    scale = 2 / math.sqrt(math.pi) * np.exp(-grid * grid)
    for n in range(_TERMS - 1):
        rows.append((-1) ** n * hermite * scale / math.factorial(n + 1))
        before, hermite = hermite, 2 * grid * hermite - 2 * n * before
    return np.stack(rows)

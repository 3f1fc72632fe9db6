"""Derives the polynomial coefficients of kernel_gen/codegen/cpu/vectors/math_f32.py.

    python -m tests.codegen.vecmath_fit

Each fit is a weighted minimax approximation by Lawson's iteration (reweighted least squares on a
dense Chebyshev grid, Lawson 1961), in 80-bit arithmetic. Coefficients are rounded to fp32 one by
one, lowest power first, and the rest is fitted again, so that later ones absorb the rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath
import numpy as np

Real = np.longdouble
_GRID = 600
_ROW_GRID = 120  # of one row of a table


def lawson(
    basis: np.ndarray, target: np.ndarray, weight: np.ndarray, rounds: int = 60
) -> np.ndarray:
    """Coefficients that nearly minimise max |weight · (basis · c - target)|."""
    share = np.ones(len(target))
    best, best_error = None, np.inf
    for _ in range(rounds):
        scale = (np.sqrt(share) * weight).astype(np.float64)
        left = (basis * scale[:, None]).astype(np.float64)
        norms = np.linalg.norm(left, axis=0)
        c, *_ = np.linalg.lstsq(left / norms, (target * scale).astype(np.float64), rcond=None)
        c = c / norms
        # one step of refinement in extended precision
        rest = (target - basis @ c.astype(Real)) * scale
        d, *_ = np.linalg.lstsq(left / norms, rest.astype(np.float64), rcond=None)
        c = c.astype(Real) + d / norms
        error = np.abs((basis @ c - target) * weight).astype(np.float64)
        if error.max() < best_error:
            best, best_error = c, error.max()
        share = share * (error / error.max() + 1e-3)
        share /= share.sum()
    assert best is not None
    return best


def fit(
    function: Callable[[mpmath.mpf], mpmath.mpf],
    low: float,
    high: float,
    powers: Sequence[int],
    weight: Callable[[mpmath.mpf], mpmath.mpf],
    grid: int = _GRID,
) -> tuple[list[np.float32], float]:
    """fp32 coefficients of the powers, lowest first, and the largest weighted error."""
    mpmath.mp.prec = 120
    angles = np.cos(np.pi * (np.arange(grid) + 0.5) / grid)
    points = [mpmath.mpf(low) + (mpmath.mpf(high) - low) * (float(a) + 1) / 2 for a in angles]
    x = np.array([Real(mpmath.nstr(p, 30)) for p in points])
    target = np.array([Real(mpmath.nstr(function(p), 30)) for p in points])
    w = np.array([Real(mpmath.nstr(abs(weight(p)), 30)) for p in points])
    basis = np.stack([x**k for k in powers], axis=1)
    fixed: list[np.float32] = []
    for k in range(len(powers)):
        c = lawson(basis[:, k:], target - basis[:, :k] @ np.array(fixed, Real), w)
        fixed.append(np.float32(c[0]))
    error = np.abs((basis @ np.array(fixed, Real) - target) * w).max()
    return fixed, float(error)


def quotients(
    function: Callable[[mpmath.mpf], mpmath.mpf], rows: int, width: float, degree: int
) -> list[list[np.float32]]:
    """Rows of coefficients of function(a) / a = P(a - row · width), by powers, lowest first."""
    found = []
    for row in range(rows):
        middle = row * width

        def quotient(d: mpmath.mpf, middle: float = middle) -> mpmath.mpf:
            a = middle + d
            return function(a) / a if abs(a) > 1e-9 else mpmath.diff(function, 0)

        def weight(
            d: mpmath.mpf, value: Callable[[mpmath.mpf], mpmath.mpf] = quotient
        ) -> mpmath.mpf:
            return 1 / value(d)

        half = width / 2 * 1.0001
        found.append(fit(quotient, -half, half, range(degree + 1), weight, _ROW_GRID)[0])
    return [list(column) for column in zip(*found, strict=True)]


def show(name: str, found: tuple[list[np.float32], float]) -> None:
    coefficients, error = found
    print(f"{name}: weighted error 2^{np.log2(error):.1f}")
    print("   ", ", ".join(repr(float(c)) for c in coefficients))


def show_table(name: str, columns: Sequence[Sequence[np.float32 | float]]) -> None:
    print(name)
    for column in columns:
        print("   ", ", ".join(repr(float(c)) for c in column))


def main() -> None:
    e = mpmath.e
    ln2 = mpmath.log(2)
    roots = [mpmath.mpf(2) ** (mpmath.mpf(row) / 16) for row in range(16)]
    rounded = [np.float32(float(root)) for root in roots]
    show_table("ROOTS: 2^(row / 16)", [rounded])
    rest = [(root / float(near) - 1) for root, near in zip(roots, rounded, strict=True)]
    show_table(
        "ROOTS_REST: what rounding took from them", [[float(np.float32(float(r))) for r in rest]]
    )
    small = float(ln2) / 32 * 1.002
    show(
        "EXP_16TH: e^r = 1 + r + r^2 P(r), |r| < ln 2 / 32",
        fit(lambda r: (e**r - 1 - r) / r**2, -small, small, range(2), lambda r: r**2 / e**r),
    )
    show_table("ERF: erf(a) / a by rows of 1/4", quotients(mpmath.erf, 16, 1 / 4, 5))
    show_table("TANH: tanh(a) / a by rows of 19/64", quotients(mpmath.tanh, 32, 19 / 64, 5))
    half = float(ln2) / 2 * 1.002
    show(
        "EXP: e^r = 1 + r + r^2 P(r)",
        fit(lambda r: (e**r - 1 - r) / r**2, -half, half, range(5), lambda r: r**2 / e**r),
    )
    show(
        "EXPM1: e^r - 1 = r + r^2 P(r)",
        fit(
            lambda r: (mpmath.expm1(r) - r) / r**2,
            -half,
            half,
            range(5),
            lambda r: r**2 / mpmath.expm1(r),
        ),
    )
    show(
        "LOG: log(1+f) = f - f^2/2 + f^3 P(f)",
        fit(
            lambda f: (mpmath.log1p(f) - f + f * f / 2) / f**3,
            2**-0.5 - 1,
            2**0.5 - 1,
            range(8),
            lambda f: f**3 / mpmath.log1p(f),
        ),
    )
    show(
        "TANH: tanh(x) = x + x^3 P(x^2), |x| < 0.6",
        fit(
            lambda s: (mpmath.tanh(mpmath.sqrt(s)) / mpmath.sqrt(s) - 1) / s,
            1e-9,
            0.6**2,
            range(5),
            lambda s: s * mpmath.sqrt(s) / mpmath.tanh(mpmath.sqrt(s)),
        ),
    )
    show(
        "ERF: erf(x) = 1 - e^-Q(x), Q(x) = x + x P(x), 0 < x < 3.95",
        fit(
            lambda x: -mpmath.log(mpmath.erfc(x)) / x - 1,
            1e-6,
            3.95,
            range(9),
            lambda x: x * mpmath.erfc(x) / mpmath.erf(x),
        ),
    )
    show(
        "SIN: sin(r) = r + r^3 P(r^2), |r| < pi/4",
        fit(
            lambda s: (mpmath.sin(mpmath.sqrt(s)) / mpmath.sqrt(s) - 1) / s,
            1e-9,
            float(mpmath.pi / 4) ** 2 * 1.001,
            range(4),
            lambda s: s * mpmath.sqrt(s) / mpmath.sin(mpmath.sqrt(s)),
        ),
    )
    show(
        "COS: cos(r) = 1 - r^2/2 + r^4 P(r^2), |r| < pi/4",
        fit(
            lambda s: (mpmath.cos(mpmath.sqrt(s)) - 1 + s / 2) / s**2,
            1e-4,
            float(mpmath.pi / 4) ** 2 * 1.001,
            range(4),
            lambda s: s**2 / mpmath.cos(mpmath.sqrt(s)),
        ),
    )


if __name__ == "__main__":
    main()

"""Is a kernel's output right? Comparison with a float64 reference, within stated tolerances.

An output element passes if it equals the reference (NaN with NaN, an infinity with the same one),
or if it lies within

    |reference| · relative + scale · absolute

where `relative` is the rounding of the output type plus the rounding of the arithmetic over the
longest reduction, `absolute` is the latter alone and `scale` the size of the values the result was
computed from. Discrete outputs (integers, bools) must be equal. Elements that hang on a comparison
or rounding whose operands float64 puts within tolerance of the boundary are *ambiguous*
(`tuner.checks.boundary`) and exempt.

The growth with √n of a sum's error is the usual random-walk model (Higham, *Accuracy and Stability
of Numerical Algorithms*, §2.8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.ir.arrays import dtype_of
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Compute, Contract, Load, LoopNest, Reduce
from kernel_gen.ir.types import Dim

Array = NDArray[Any]

_EPSILON = {
    DType.F64: 2.0**-52,
    DType.F32: 2.0**-23,
    DType.F16: 2.0**-10,
    DType.BF16: 2.0**-7,
}
_LARGEST = {
    DType.F64: 1.7976931348623157e308,
    DType.F32: 3.4028234663852886e38,
    DType.F16: 65504.0,
    DType.BF16: 3.3895313892515355e38,
}
_ARITHMETIC = 24.0  # ulp of the compute type that a chain of elementwise ops may cost
_SCALE_SAMPLE = 20_011  # elements that `value_scale` looks at
_CHUNK = 1 << 16  # elements compared at a time: stays in the cache


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Allowed |actual - reference| = |reference|·relative + absolute, absolute in value units."""

    relative: float
    absolute: float

    def divided_by(self, factor: float) -> Tolerance:
        """The same tolerance, `factor` times tighter."""
        return Tolerance(self.relative / factor, self.absolute / factor)


def reduction_length(nest: LoopNest) -> int:
    """Elements that the longest chain of reductions of the nest sums up (1 without any)."""
    longest = 1
    for statement in nest.statements:
        if isinstance(statement, Reduce | Contract):
            length = math.prod(known_extent(nest.axis(name).extent) for name in statement.axes)
            longest = max(longest, length)
    return longest


def known_extent(dim: Dim) -> int:
    """The extent, 1 where it is symbolic."""
    return dim if isinstance(dim, int) else 1


def tolerance(
    nest: LoopNest,
    buffer: int,
    scale: float,
    strict: bool = False,
    narrow_products: bool = False,
) -> Tolerance:
    """What output `buffer` may deviate from the reference, whose values are of size `scale`; flags
    as in `NestCheck`."""
    dtype = nest.buffers[buffer].type.dtype
    if not dtype.is_float:
        return Tolerance(0.0, 0.0)
    arithmetic = _ARITHMETIC * _EPSILON[dtype.compute] * math.sqrt(reduction_length(nest))
    narrow = _product_rounding(nest) if narrow_products else 0.0
    inner = arithmetic + 2 * max(_inner_rounding(nest, strict), narrow)
    return Tolerance(_EPSILON[dtype] + inner, inner * scale)


def _inner_rounding(nest: LoopNest, strict: bool) -> float:
    """Coarsest rounding that the nest prescribes for an intermediate value (0: none)."""
    casts = {
        s.dtype
        for s in nest.statements
        if s.dtype.is_float and (strict or (isinstance(s, Compute) and s.op == "cast"))
    }
    return max((_EPSILON[dtype] for dtype in casts), default=0.0)


def _product_rounding(nest: LoopNest) -> float:
    """Rounding of computed operands of products to the coarsest type of the nest's tensors; 0 where
    all operands are read as they are."""
    computed = any(
        not isinstance(nest.statements[operand], Load)
        for statement in nest.statements
        if isinstance(statement, Contract)
        for operand in (statement.lhs, statement.rhs)
    )
    types = {b.type.dtype for b in nest.buffers if b.type.dtype.is_float} if computed else set()
    return max((_EPSILON[dtype] for dtype in types if dtype.bytes == 2), default=0.0)


def program_tolerance(dtype: DType, scale: float) -> Tolerance:
    """What results of a whole program may differ between two orders of rounding: 2⁻¹³ for fp32
    (1.2e-4 of the size of the values), the same number of roundings for the other types."""
    eps = _EPSILON[dtype]
    share = 1024 * eps if eps < 1e-5 else 16 * eps
    return Tolerance(share, share * scale)


def value_scale(values: Array) -> float:
    """Typical size of the finite values (0 if there is none): 1.5 times the median magnitude, the
    standard deviation of normal values. The median is blind to rare large ones."""
    flat = values.reshape(-1)
    sample = flat[:: max(1, flat.size // _SCALE_SAMPLE)].astype(np.float64)
    magnitudes = np.abs(sample[np.isfinite(sample)])
    # A median of zero (after a relu, say) tells nothing: the other half does.
    nonzero = magnitudes[magnitudes > 0]
    return 1.5 * float(np.median(nonzero)) if nonzero.size else 0.0


def mismatch(
    actual: Array, reference: Array, allowed: Tolerance, ambiguous: Array | None = None
) -> str | None:
    """None if `actual` is right, else a sentence on the worst element.

    All arrays have one shape; `reference` holds float64 or float32 for floats, the output's own
    type otherwise; `ambiguous` is a bool mask of elements that are exempt.
    """
    flat, expected = actual.reshape(-1), reference.reshape(-1)
    bad = differing(flat, expected, allowed)
    if ambiguous is not None:
        bad &= ~ambiguous.reshape(-1)
    wrong = int(np.count_nonzero(bad))
    if not wrong:
        return None
    first = int(np.argmax(bad))
    place = tuple(int(i) for i in np.unravel_index(first, actual.shape))
    return (
        f"{wrong} of {flat.size} elements differ; first at {place}: {flat[first]!s} instead of"
        f" {expected[first]!s} (allowed {_allowed_at(expected[first], allowed):.3g})"
    )


def _allowed_at(value: Any, allowed: Tolerance) -> float:
    magnitude = abs(float(value))
    return allowed.absolute + allowed.relative * (magnitude if math.isfinite(magnitude) else 0.0)


def differing(actual: Array, expected: Array, allowed: Tolerance) -> NDArray[np.bool_]:
    """The elements of `actual` that are wrong (arrays as in `mismatch`, of any one shape)."""
    if not (allowed.relative or allowed.absolute):
        return np.asarray(actual != expected, dtype=np.bool_)
    flat, other = actual.reshape(-1), expected.reshape(-1)
    bad = np.empty(flat.size, np.bool_)
    for start in range(0, flat.size, _CHUNK):  # temporaries stay in a cache
        part = slice(start, start + _CHUNK)
        bad[part] = _differing(flat[part], other[part], allowed)
    return bad.reshape(actual.shape)


def _differing(actual: Array, expected: Array, allowed: Tolerance) -> NDArray[np.bool_]:
    wide = actual.astype(expected.dtype, copy=False)
    with np.errstate(all="ignore"):
        limit = np.abs(expected) * allowed.relative + allowed.absolute
        # An infinite reference would allow everything: such elements must be equal.
        bad = ~((np.abs(wide - expected) <= limit) & np.isfinite(limit))
    if bad.any():
        bad &= ~_equal_or_overflown(wide, expected, actual.dtype)
    return np.asarray(bad, dtype=np.bool_)


def _equal_or_overflown(actual: Array, expected: Array, dtype: Any) -> NDArray[np.bool_]:
    """Equal specials; and infinities where the reference is beyond the output type's range."""
    equal = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    largest = _largest(dtype)
    overflown = np.isinf(actual) & (np.abs(expected) > largest) & ((actual > 0) == (expected > 0))
    return np.asarray(equal | overflown, dtype=np.bool_)


def _largest(dtype: Any) -> float:
    """Values beyond this may round to infinity in `dtype` (an ulp below its largest number)."""
    kind = dtype_of(np.empty(0, dtype))
    return _LARGEST[kind] * (1 - 4 * _EPSILON[kind])

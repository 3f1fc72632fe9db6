"""How the reference evaluator holds values, and how it rounds them.

Floats are held as float64, integers and bools in their own type.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernel_gen.ir.arrays import Array, numpy_dtype
from kernel_gen.ir.dtype import DType

_TINY = float(np.finfo(np.float32).smallest_normal)
_LARGEST = float(np.finfo(np.float32).max)
_PIECE = 1 << 16  # elements


def held(array: Array, dtype: DType) -> Array:
    """An array of storage type as the evaluator holds it."""
    return array.astype(np.float64) if dtype.is_float else array


def stored(array: Array, dtype: DType) -> Array:
    """A held array in its storage type (narrow floats are rounded by way of float32)."""
    if dtype in (DType.F16, DType.BF16):
        array = array.astype(np.float32)
    return array.astype(numpy_dtype(dtype))


def rounded(array: Array, dtype: DType) -> Array:
    """A held array rounded to what `dtype` can represent."""
    if not dtype.is_float:
        return array
    return array if dtype is DType.F64 else stored(array, dtype).astype(np.float64)


def ranged(array: Array, dtype: DType) -> Array:
    """A held array with float64's precision but the range of the compute type of `dtype`.

    Kernels compute in float32, where exp(100) is inf and 1 / exp(200) is 0; without this the
    reference would go on with 2.7e43.
    """
    if dtype.compute is not DType.F32:
        return array
    wide: NDArray[np.float64] = array.astype(np.float64, copy=False)
    if _fits(wide):
        return wide
    narrow = wide.astype(np.float32).astype(np.float64)
    within = np.isfinite(narrow) & (np.abs(narrow) >= _TINY)
    return np.where(within, wide, narrow)


def _fits(wide: NDArray[np.float64]) -> bool:
    """Whether no value is finite and beyond fp32's range, or less than its least normal number but
    not zero. Piece by piece: large temporaries cost page faults."""
    flat = wide.ravel(order="K")  # a view of a dense array, however its axes are permuted
    for begin in range(0, flat.size, _PIECE):
        sizes = np.abs(flat[begin : begin + _PIECE])
        if sizes.min() >= _TINY and sizes.max() <= _LARGEST:
            continue  # most arrays; NaN goes on
        if sizes[sizes < _TINY].any() or np.isfinite(sizes[sizes > _LARGEST]).any():
            return False
    return True


def flushed(array: Array) -> Array:
    """The array with zeros in place of fp32's subnormal numbers, which have few bits left."""
    return np.where(np.abs(array) < _TINY, array * 0, array)


def cast_held(array: Array, source: DType, target: DType) -> Array:
    """Conversion as torch does it: truncation to integers, wrapping, `!= 0` for bool."""
    if target is DType.BOOL:
        return np.asarray(array != 0)
    if target.is_float:
        if source.is_float:
            return rounded(array, target)
        return array.astype(numpy_dtype(target.compute)).astype(numpy_dtype(target)).astype("f8")
    if source.is_float and target.bytes < 4:
        array = array.astype(np.int32)
    return array.astype(numpy_dtype(target))

"""NumPy's side of element types. bfloat16 is `ml_dtypes.bfloat16`."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Constant
from kernel_gen.ir.types import TensorType, static_shape

Array = NDArray[Any]  # the element type is a value here (DType), not known to mypy

_NUMPY: dict[DType, np.dtype[np.generic]] = {
    DType.F64: np.dtype(np.float64),
    DType.F32: np.dtype(np.float32),
    DType.F16: np.dtype(np.float16),
    DType.BF16: np.dtype(ml_dtypes.bfloat16),
    DType.I64: np.dtype(np.int64),
    DType.I32: np.dtype(np.int32),
    DType.I16: np.dtype(np.int16),
    DType.I8: np.dtype(np.int8),
    DType.U8: np.dtype(np.uint8),
    DType.BOOL: np.dtype(np.bool_),
}
_FROM_NUMPY = {numpy: dtype for dtype, numpy in _NUMPY.items()}


def numpy_dtype(dtype: DType) -> np.dtype[np.generic]:
    """The NumPy dtype of a storage type."""
    return _NUMPY[dtype]


def dtype_of(array: Array) -> DType:
    """The storage type of an array; raises InvalidGraph for types that graphs do not hold."""
    found = _FROM_NUMPY.get(array.dtype.newbyteorder("="))
    if found is None:
        raise InvalidGraph(f"arrays of {array.dtype} have no place in a graph")
    return found


def array_bytes(array: Array) -> bytes:
    """Row-major little-endian bytes (bfloat16 exists in the machine's order only)."""
    ordered = np.ascontiguousarray(array)
    if ordered.dtype.kind in "fiu" and ordered.dtype.itemsize > 1:
        ordered = ordered.astype(ordered.dtype.newbyteorder("<"), copy=False)
    return ordered.tobytes()


def constant_array(constant: Constant, type: TensorType) -> Array:
    """The contents of a constant of the given (static) type, read-only."""
    dtype = numpy_dtype(type.dtype)
    return np.frombuffer(constant.data, dtype).reshape(static_shape(type.shape))

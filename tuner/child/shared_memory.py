"""Arrays in anonymous shared memory that one process fills and others map.

The memory is a memfd: it has no name in any file system and disappears with its last holder, so a
killed process leaves nothing behind.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.dtype import DType

Array = NDArray[Any]
_ALIGN = 4096  # each array starts on a page


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """One array inside a block: `offset` in bytes from its start, `strides` in bytes."""

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    @property
    def elems(self) -> int:
        """Elements from the first to the last one, gaps included."""
        return span(self.shape, tuple(step // self.dtype.bytes for step in self.strides))

    @property
    def nbytes(self) -> int:
        return self.elems * self.dtype.bytes


@dataclass(frozen=True, slots=True)
class BlockSpec:
    """Layout of a block of arrays; `nbytes` is its whole size, at least one page."""

    arrays: tuple[ArraySpec, ...]
    nbytes: int


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements from the first to the last one of such a tensor, gaps included; 0 if it is empty."""
    if 0 in shape:
        return 0
    steps = zip(shape, strides, strict=True)
    return 1 + sum((extent - 1) * stride for extent, stride in steps)


def layout(arrays: Sequence[tuple[DType, Array]]) -> BlockSpec:
    """Place arrays like these, in their strides, one after another, page aligned."""
    placed: list[ArraySpec] = []
    end = 0
    for dtype, array in arrays:
        strides = tuple(step // array.itemsize * dtype.bytes for step in array.strides)
        spec = ArraySpec(dtype, array.shape, strides, end)
        placed.append(spec)
        end += -(-max(spec.nbytes, 1) // _ALIGN) * _ALIGN
    return BlockSpec(tuple(placed), max(end, _ALIGN))


def create(spec: BlockSpec) -> int:
    """A memfd large enough for the block, zero-filled; the caller closes it."""
    handle = os.memfd_create("gaf-block", os.MFD_CLOEXEC)
    os.ftruncate(handle, spec.nbytes)
    return handle


def map_arrays(handle: int, spec: BlockSpec, writable: bool) -> list[Array]:
    """The block's arrays as views of one mapping. Writing to a read-only one is a SIGSEGV in
    native code and a ValueError in NumPy."""
    access = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
    memory = mmap.mmap(handle, spec.nbytes, mmap.MAP_SHARED, access)
    return [
        np.lib.stride_tricks.as_strided(
            np.frombuffer(
                memory, dtype=numpy_dtype(array.dtype), count=array.elems, offset=array.offset
            ),
            array.shape,
            array.strides,
        )
        for array in spec.arrays
    ]

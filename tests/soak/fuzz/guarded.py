"""Arrays with a page beside them that nobody may touch: a kernel that reads past its input dies."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

from kernel_gen.ir.arrays import Array

_LIBC = ctypes.CDLL(None, use_errno=True)
_PROT_NONE = 0


def guarded(array: Array, *, at_end: bool) -> Array:
    """A copy in the same layout that ends where the forbidden page begins, or begins where one
    ends."""
    span = _span(array) * array.itemsize
    pages = -(-max(span, 1) // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    guard = pages * mmap.PAGESIZE if at_end else 0
    if _LIBC.mprotect(ctypes.c_void_p(address + guard), mmap.PAGESIZE, _PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect")
    first = guard - span if at_end else mmap.PAGESIZE
    body = np.frombuffer(memory, np.uint8, span, first).view(array.dtype)
    made = np.lib.stride_tricks.as_strided(body, array.shape, array.strides)
    if array.size:
        np.copyto(made, array)
    return made


def _span(array: Array) -> int:
    """Elements from the first in memory to the last; strides are not negative."""
    if not array.size:
        return 0
    steps = zip(array.shape, array.strides, strict=True)
    return 1 + sum((n - 1) * stride for n, stride in steps) // array.itemsize

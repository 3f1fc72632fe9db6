"""A few elements of a tensor, to be compared before each call: writes through `.data`, NumPy and
to inference tensors are counted by nobody."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import torch

# By the size of an element in bytes. Of larger ones the first eight bytes are read.
_KINDS = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}
# Both ends and two positions that common strides and paddings do not hit together.
_PLACES = (0.0, 0.382, 0.618, 1.0)

value = attrgetter("value")


def cells(tensor: torch.Tensor) -> list[Any]:
    """Bits of elements of `tensor` as ctypes integers over its memory; none where it has no memory
    of this process. Read them only while its `data_ptr` is what it was."""
    if not tensor.is_cpu or tensor.layout is not torch.strided or tensor.numel() == 0:
        return []
    begin = tensor.data_ptr()
    if begin == 0:  # a wrapper around other tensors
        return []
    size = tensor.element_size()
    kind = _KINDS.get(size, ctypes.c_uint64)
    last = tensor.numel() - 1
    offsets = {_offset(round(place * last), tensor.shape, tensor.stride()) for place in _PLACES}
    return [kind.from_address(begin + size * offset) for offset in sorted(offsets)]


def _offset(position: int, shape: Sequence[int], strides: Sequence[int]) -> int:
    """Of the element at `position` in row-major order, in elements of the storage."""
    found = 0
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        position, index = divmod(position, extent)
        found += index * stride
    return found

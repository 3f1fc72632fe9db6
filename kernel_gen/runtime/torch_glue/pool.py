"""Recycled output buffers: memory goes back to the pool when its storage dies, not before.

A fresh output costs page faults whenever the allocator has given memory back. The pool keeps a
tensor over each buffer and hands out others over the same storage. A buffer is free when nothing
but the pool refers to the storage any more. That needs two counts:

* C++ references to the storage: tensors, views, `.detach()`, `.numpy()`, DLPack,
  what autograd saved;
* Python references to the storage object: it is one object, kept alive by torch itself, so that
  holding `tensor.untyped_storage()` adds no C++ reference.

The first count is private to torch (its CUDA-graph trees rely on it too). Where it does not behave
as described, nothing is recycled.
"""

from __future__ import annotations

import sys
from collections import deque
from functools import cache

import torch

from kernel_gen.frontend.dtypes import to_torch
from kernel_gen.ir.types import TensorType, static_shape
from kernel_gen.runtime.hugepages import advise


class _Buffer:
    """One buffer, and the counts that it has while nobody uses it."""

    __slots__ = ("address", "base", "idle_refs", "idle_uses", "place", "storage")

    def __init__(self, base: torch.Tensor) -> None:
        self.base = base
        self.storage = base.untyped_storage()
        self.address = base.data_ptr()
        self.place = self.storage._cdata
        self.idle_uses = torch._C._storage_Use_Count(self.place)
        self.idle_refs = sys.getrefcount(self.storage)

    def is_idle(self) -> bool:
        return (
            torch._C._storage_Use_Count(self.place) == self.idle_uses
            and sys.getrefcount(self.storage) == self.idle_refs
        )

    def is_whole(self) -> bool:
        """False if a user has moved or resized the storage; such a buffer is never used again."""
        return self.base.data_ptr() == self.address


@cache
def recycling_works() -> bool:
    """Whether this torch counts references as the pool expects."""
    if not hasattr(torch._C, "_storage_Use_Count"):
        return False
    buffer = _Buffer(torch.empty(4, device="cpu"))
    states = [buffer.is_idle()]
    tensor: torch.Tensor | None = buffer.base.data
    states.append(not buffer.is_idle())
    storage = tensor.untyped_storage() if tensor is not None else None
    tensor = None
    states.append(not buffer.is_idle())
    del storage
    states.append(buffer.is_idle())
    return all(states)


class OutputPool:
    """Tensors of one type, over recycled memory. Safe for any number of threads.

    `per_call` tensors are taken in one call of a plan. Results of two calls may be alive at once
    (the caller's old ones are replaced by the new), and two more to spare; what is alive beyond
    that is left to torch's allocator.
    """

    def __init__(self, type_: TensorType, per_call: int = 1) -> None:
        self._shape = static_shape(type_.shape)
        self._strides = type_.element_strides
        self._dtype = to_torch(type_.dtype)
        self._recycles = recycling_works() and type_.elems > 0
        # Taking an element off is atomic, so no two threads look at one buffer at a time.
        self._buffers: deque[_Buffer] = deque(maxlen=2 * per_call + 2)

    def take(self) -> torch.Tensor:
        """A tensor of undefined content that shares memory with no tensor alive."""
        buffers = self._buffers
        for _ in range(len(buffers)):
            try:
                buffer = buffers.pop()
            except IndexError:  # other threads hold them
                break
            if not buffer.is_idle():
                buffers.appendleft(buffer)
            elif buffer.is_whole():
                tensor = buffer.base.data
                buffers.append(buffer)
                return tensor
        return self._fresh()

    def _fresh(self) -> torch.Tensor:
        with torch.inference_mode(False):  # an inference tensor could never enter autograd
            base = torch.empty_strided(self._shape, self._strides, dtype=self._dtype, device="cpu")
        if not self._recycles:
            return base
        advise(base.data_ptr(), base.untyped_storage().nbytes())
        buffer = _Buffer(base)
        tensor = base.data
        self._buffers.append(buffer)
        return tensor

"""Output buffers of a candidate under test: poisoned before each run, fenced on both sides."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.types import TensorType, static_shape

Array = NDArray[Any]

_FENCE_BYTES = 4096
_FENCE = 0xC3
_POISON_FLOAT = 0xFF  # NaN in every float type
_POISON_OTHER = 0xA5  # neither a likely integer nor a bool


class OutputBuffer:
    """One dense output of type `tensor_type`; `array` is what the kernel writes, in its strides."""

    def __init__(self, tensor_type: TensorType) -> None:
        nbytes = tensor_type.nbytes
        memory = np.full(nbytes + 2 * _FENCE_BYTES + 64, _FENCE, dtype=np.uint8)
        start = _FENCE_BYTES + (-(memory.ctypes.data + _FENCE_BYTES)) % 64
        self._before = memory[:start]
        self._bytes = memory[start : start + nbytes]
        self._after = memory[start + nbytes :]
        self._poison = _POISON_FLOAT if tensor_type.dtype.is_float else _POISON_OTHER
        values = self._bytes.view(numpy_dtype(tensor_type.dtype))
        self.array: Array = np.lib.stride_tricks.as_strided(
            values,
            static_shape(tensor_type.shape),
            tuple(values.itemsize * stride for stride in tensor_type.element_strides),
        )

    def poison(self) -> None:
        """Overwrite the contents, so that an element never written shows, and mend the fences that
        another candidate broke."""
        self._bytes.fill(self._poison)
        self._before.fill(_FENCE)
        self._after.fill(_FENCE)

    @property
    def comparable(self) -> Array:
        """The contents as numbers that compare bit for bit where they are discrete: a bool of
        value 2 is wrong."""
        return self.array.view(np.uint8) if self.array.dtype == np.bool_ else self.array

    def overrun(self) -> str | None:
        """A sentence if something was written outside the buffer."""
        if (self._before != _FENCE).any():
            return "bytes before the output were overwritten"
        if (self._after != _FENCE).any():
            return "bytes after the output were overwritten"
        return None

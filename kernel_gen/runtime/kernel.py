"""A built kernel, loaded: packed constants, scratch memory, calls with NumPy operands."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernel_gen.codegen.source import KernelSource, Pack
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.ir.loopnest import BufferRole, LoopNest

Array = NDArray[np.generic]
_ALIGNMENT = 64


class KernelArgs(ctypes.Structure):
    """`gaf_kernel_args` of the kernel ABI."""

    _fields_ = (
        ("size", ctypes.c_ulonglong),
        ("operands", ctypes.POINTER(ctypes.c_void_p)),
        ("scratch", ctypes.c_void_p),
        ("dims", ctypes.POINTER(ctypes.c_longlong)),
        ("n_threads", ctypes.c_int),
        ("stream", ctypes.c_void_p),
    )


def aligned_bytes(nbytes: int) -> NDArray[np.uint8]:
    """Uninitialised bytes that start at a multiple of 64."""
    raw = np.empty(nbytes + _ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + nbytes]


def bytes_at(address: int, nbytes: int) -> NDArray[np.uint8]:
    """Memory that somebody else owns, as an array."""
    if not nbytes:
        return np.empty(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))


class Call:
    """Arguments of one call, with everything they point to kept alive."""

    def __init__(self, keep: list[Array], scratch: NDArray[np.uint8], dims: Sequence[int],
                 n_threads: int) -> None:  # fmt: skip
        self._keep = keep
        self.scratch = scratch
        self._pointers = (ctypes.c_void_p * max(len(keep), 1))(*(a.ctypes.data for a in keep))
        self._dims = (ctypes.c_longlong * max(len(dims), 1))(*dims)
        self.args = KernelArgs(
            ctypes.sizeof(KernelArgs),
            ctypes.cast(self._pointers, ctypes.POINTER(ctypes.c_void_p)),
            ctypes.c_void_p(scratch.ctypes.data),
            ctypes.cast(self._dims, ctypes.POINTER(ctypes.c_longlong)),
            n_threads,
            None,
        )

    @property
    def address(self) -> int:
        """Address of the `gaf_kernel_args`, valid as long as this object lives."""
        return ctypes.addressof(self.args)


class LoadedKernel:
    """One kernel of a shared object. Operands stand in the order of `nest.buffers`.

    Constants that the kernel packs are packed at their first use and whenever another array is
    given for them.
    """

    def __init__(self, path: Path, source: KernelSource, nest: LoopNest) -> None:
        try:
            self._library = ctypes.CDLL(str(path))
            self._entry = getattr(self._library, source.entry)
        except (OSError, AttributeError) as error:
            raise Unavailable(f"kernel {source.entry}: cannot be loaded: {error}") from error
        self._entry.restype = ctypes.c_int
        self.source = source
        self.nest = nest
        self._packed: dict[int, tuple[Array, NDArray[np.uint8]]] = {}

    @property
    def entry_address(self) -> int:
        """Address of the entry point, for the timing loop."""
        address = ctypes.cast(self._entry, ctypes.c_void_p).value
        if address is None:
            raise Unavailable(f"kernel {self.source.entry}: entry point is null")
        return address

    def prepare(
        self,
        operands: Sequence[Array],
        n_threads: int = 1,
        dims: Sequence[int] = (),
        like: Call | None = None,
    ) -> Call:
        """Arguments for calling the kernel with these arrays (outputs are written in place).

        `like` is a call of this kernel with as many threads, never made at the same time: its
        scratch is used again. Raises InvalidInput if number, size or layout of the arrays do not
        fit the nest.
        """
        self._check(operands)
        packs = {p.operand: p for p in self.source.packs}
        held = [self._pack(packs[i], a) if i in packs else a for i, a in enumerate(operands)]
        nbytes = self.source.shared_bytes + self.source.scratch_bytes * n_threads
        scratch = aligned_bytes(max(nbytes, 1)) if like is None else like.scratch
        return Call(held, scratch, dims, n_threads)

    def call(self, call: Call) -> int:
        """Runs the kernel; returns its status, 0 if all went well."""
        return int(self._entry(ctypes.byref(call.args)))

    def run(self, operands: Sequence[Array], n_threads: int = 1, dims: Sequence[int] = ()) -> int:
        """`prepare` and `call`."""
        return self.call(self.prepare(operands, n_threads, dims))

    def _check(self, operands: Sequence[Array]) -> None:
        if len(operands) != len(self.nest.buffers):
            raise InvalidInput(
                f"kernel {self.source.entry}: {len(operands)} operands, "
                f"expected {len(self.nest.buffers)}"
            )
        for i, (array, buffer) in enumerate(zip(operands, self.nest.buffers, strict=True)):
            if array.dtype.itemsize != buffer.type.dtype.bytes:
                raise InvalidInput(f"operand {i} has dtype {array.dtype}, not {buffer.type.dtype}")
            if buffer.type.is_static and array.shape != buffer.type.shape:
                raise InvalidInput(f"operand {i} has shape {array.shape}, not {buffer.type.shape}")
            if buffer.role is BufferRole.OUTPUT and not array.flags.writeable:
                raise InvalidInput(f"operand {i} is an output and read-only")
            if (
                buffer.type.is_static
                and array.size > 1
                and not _laid_out(array, buffer.type.element_strides)
            ):
                raise InvalidInput(f"operand {i} has strides {array.strides}, not the nest's")

    def _pack(self, pack: Pack, array: Array) -> NDArray[np.uint8]:
        found = self._packed.get(pack.operand)
        if found is not None and found[0] is array:
            return found[1]
        target = aligned_bytes(pack.nbytes)
        function = getattr(self._library, pack.symbol)
        function(ctypes.c_void_p(array.ctypes.data), ctypes.c_void_p(target.ctypes.data))
        self._packed[pack.operand] = (array, target)
        return target


def _laid_out(array: Array, strides: tuple[int, ...]) -> bool:
    """Whether the array's strides are `strides` (elements) wherever they matter."""
    size = array.dtype.itemsize
    return all(
        have == want * size or extent == 1
        for have, want, extent in zip(array.strides, strides, array.shape, strict=True)
    )

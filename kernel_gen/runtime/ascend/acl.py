"""The ACL runtime through ctypes: memory, one stream and times of one NPU.

Only public calls of `acl/acl_rt.h`; each status other than 0 is a `DeviceFault` with ACL's own
message. Nothing is loaded at import.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.errors import DeviceFault, Unavailable

Bytes = NDArray[np.uint8]
_POINTER, _SIZE, _INT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int32
_OUT = ctypes.POINTER(_POINTER)
_REPEATED_INIT = 100002
_HUGE_FIRST = 0  # aclrtMemMallocPolicy: large pages where there are some
_TO_DEVICE, _TO_HOST = 1, 2  # aclrtMemcpyKind
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "aclInit": (ctypes.c_char_p,),
    "aclrtGetDeviceCount": (ctypes.POINTER(ctypes.c_uint32),),
    "aclrtSetDevice": (_INT,),
    "aclrtMalloc": (_OUT, _SIZE, _INT),
    "aclrtFree": (_POINTER,),
    "aclrtMemcpy": (_POINTER, _SIZE, _POINTER, _SIZE, _INT),
    "aclrtMemset": (_POINTER, _SIZE, _INT, _SIZE),
    "aclrtCreateStream": (_OUT,),
    "aclrtSynchronizeStream": (_POINTER,),
    "aclrtCreateEvent": (_OUT,),
    "aclrtRecordEvent": (_POINTER, _POINTER),
    "aclrtEventElapsedTime": (ctypes.POINTER(ctypes.c_float), _POINTER, _POINTER),
}


class DeviceMemory:
    """Bytes on an NPU, freed with the object. `address` is that of the first one."""

    def __init__(self, address: int, nbytes: int, free: Callable[[int], None]) -> None:
        self.address, self.nbytes = address, nbytes
        # Not at exit: the driver frees what a process leaves, and may be gone before us.
        weakref.finalize(self, free, address).atexit = False


class Acl:
    """One NPU with a stream of this process. Calls of several threads must not overlap; each
    thread says `use` before its first one."""

    def __init__(self, library: Path, device: int) -> None:
        """Raises Unavailable where the library does not load or has no such device."""
        try:
            self._library = ctypes.CDLL(str(library))
            for name, arguments in _SIGNATURES.items():
                function = getattr(self._library, name)
                function.argtypes, function.restype = arguments, ctypes.c_int
            self._library.aclrtGetSocName.restype = ctypes.c_char_p
        except (OSError, AttributeError) as error:
            raise Unavailable(f"{library}: {error}") from error
        self._device = device
        self._call("aclInit", None, accepted=(_REPEATED_INIT,))
        count = ctypes.c_uint32()
        self._call("aclrtGetDeviceCount", ctypes.byref(count))
        if device >= count.value:
            raise Unavailable(f"there is no NPU {device}: ACL finds {count.value}")
        self.use()
        self.stream = self._made("aclrtCreateStream")
        self._events = self._made("aclrtCreateEvent"), self._made("aclrtCreateEvent")

    def use(self) -> None:
        """Makes the NPU the calling thread's."""
        self._call("aclrtSetDevice", self._device)

    def chip(self) -> str:
        """What ACL calls the chip: "Ascend910B3"."""
        name = self._library.aclrtGetSocName()
        return "" if name is None else bytes(name).decode(errors="replace")

    def allocate(self, nbytes: int) -> DeviceMemory:
        """Memory that is not set; at least one byte."""
        address = self._made("aclrtMalloc", max(nbytes, 1), _HUGE_FIRST)
        return DeviceMemory(address, nbytes, self._library.aclrtFree)

    def uploaded(self, data: Bytes) -> DeviceMemory:
        """A copy of host bytes."""
        memory = self.allocate(data.nbytes)
        self.upload(memory.address, data)
        return memory

    def upload(self, address: int, data: Bytes) -> None:
        """Copies all of `data` to the NPU. Waits for it."""
        if data.nbytes:
            size = data.nbytes
            self._call("aclrtMemcpy", address, size, data.ctypes.data, size, _TO_DEVICE)

    def download(self, data: Bytes, address: int) -> None:
        """Fills all of `data` from the NPU. Waits for it."""
        if data.nbytes:
            size = data.nbytes
            self._call("aclrtMemcpy", data.ctypes.data, size, address, size, _TO_HOST)

    def fill(self, address: int, nbytes: int, value: int) -> None:
        """Sets bytes on the NPU."""
        if nbytes:
            self._call("aclrtMemset", address, nbytes, value, nbytes)

    def synchronize(self) -> None:
        """Waits for all launches; raises DeviceFault where one has failed."""
        self._call("aclrtSynchronizeStream", self.stream)

    def time_us(self, launch: Callable[[], None], times: int) -> float:
        """Microseconds between two events of the device around `times` launches."""
        before, after = self._events
        self._call("aclrtRecordEvent", before, self.stream)
        for _ in range(times):
            launch()
        self._call("aclrtRecordEvent", after, self.stream)
        self.synchronize()
        milliseconds = ctypes.c_float()
        self._call("aclrtEventElapsedTime", ctypes.byref(milliseconds), before, after)
        return milliseconds.value * 1000

    def _made(self, name: str, *arguments: Any) -> int:
        made = _POINTER()
        self._call(name, ctypes.byref(made), *arguments)
        if made.value is None:
            raise DeviceFault(f"{name} gave nothing")
        return made.value

    def _call(self, name: str, *arguments: Any, accepted: tuple[int, ...] = ()) -> None:
        status = getattr(self._library, name)(*arguments)
        if status and status not in accepted:
            raise DeviceFault(f"{name} returned {status}{self._why()}")

    def _why(self) -> str:
        """ACL's message about the last error of this thread, if this version has one."""
        recent = getattr(self._library, "aclGetRecentErrMsg", None)
        if recent is None:
            return ""
        recent.restype = ctypes.c_char_p
        text = recent()
        return f": {text.decode(errors='replace')[:500]}" if text else ""


@cache
def open_acl(library: Path, device: int) -> Acl:
    """The process's `Acl` of a device: ACL is initialised once per process, never before a fork."""
    return Acl(library, device)

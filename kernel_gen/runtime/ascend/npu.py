"""Kernels and plans on a real NPU: objects made by CANN's compiler, launched through ACL.

Tensors of the caller lie on the host: a call copies what kernels read to the NPU, and back what
they wrote. Intermediates stay on the NPU, in the arena that the plan lays out.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from kernel_gen.codegen.ascend.launch import Tiler
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.runtime.arena import storage_bytes
from kernel_gen.runtime.ascend.acl import Acl, DeviceMemory, open_acl
from kernel_gen.runtime.ascend.cann import find_toolkit
from kernel_gen.runtime.ascend.plan_kernels import each_loaded, writes_nothing
from kernel_gen.runtime.kernel import bytes_at
from kernel_gen.runtime.layout import kernel_reads, kernel_writes, mutated_inputs
from kernel_gen.runtime.native import Call, object_path
from kernel_gen.runtime.plan import Artifact, Kernel, Plan

CLOCK = "npu-events"
Constants = dict[int, DeviceMemory | int]


class NpuKernel:
    """A built kernel on one NPU; its tiling data and workspace lie there from the start."""

    def __init__(self, path: str, source: KernelSource, acl: Acl) -> None:
        """Raises Unavailable where the object does not load, or no tile fits."""
        try:
            library = ctypes.CDLL(path)
            self._launch = library[f"launch_{source.entry}"]
            tiling, self._blocks, work = Tiler(library, source.entry)(())
        except (InvalidInput, AttributeError, OSError) as error:
            raise Unavailable(f"kernel {source.entry}: {error}") from error
        self._launch.restype = None
        self._stream = acl.stream
        self._workspace = acl.allocate(work)
        self._tiling = acl.uploaded(np.frombuffer(tiling, np.uint8))

    def launch(self, operands: Sequence[int]) -> None:
        """Enqueues one run on operands at these device addresses, in the order of the nest's
        buffers. Does not wait; what goes wrong is met by `Acl.synchronize`."""
        addresses = (*operands, self._workspace.address, self._tiling.address)
        pointers = [ctypes.c_void_p(address) for address in addresses]
        self._launch(ctypes.c_uint32(self._blocks), ctypes.c_void_p(self._stream), *pointers)


class NpuPlan:
    """The kernels of a plan behind the calls of `NativePlan`. One call runs at a time."""

    def __init__(self, plan: Plan, device: int) -> None:
        """Loads the plan on NPU `device`. Raises Unavailable."""
        self._plan = plan
        self._acl = open_acl(find_toolkit().library, device)
        self._kernels = _loaded(plan, self._acl)
        self._slots = {slot.value: slot.offset for slot in plan.layout.arena}
        self._arena = self._acl.allocate(plan.layout.arena_bytes)
        self._bytes = _value_bytes(plan)
        self._rooms: dict[int, DeviceMemory] = {}  # of tensors of the host, call after call
        self._lock = threading.Lock()

    def create(self, constants: Sequence[int]) -> Constants:
        """Constants at these host addresses, on the NPU, by value. Those that the program writes
        stay addresses: each call reads them anew."""
        anew = mutated_inputs(self._plan.program)
        given = dict(zip(self._plan.layout.constants, constants, strict=True))
        with self._lock:
            self._acl.use()
            return {
                value: address
                if value in anew
                else self._acl.uploaded(bytes_at(address, self._bytes[value]))
                for value, address in given.items()
                if value in self._bytes
            }

    def arena_bytes(self, n_threads: int) -> int:
        """Of the host: none."""
        return 0

    def run(self, handle: Any, reference: Any) -> int:
        """Runs the segment that the call names and waits for it. Raises DeviceFault."""
        call: Call = reference._obj
        values = (ctypes.c_void_p * len(self._plan.program.values)).from_address(call.values)
        with self._lock:
            self._acl.use()
            self._segment(call.segment, handle, values)
        return 0

    def _segment(self, number: int, constants: Constants, values: Any) -> None:
        plan = self._plan
        numbers = plan.layout.segments[number].kernels
        kernels = [k for k in numbers if not writes_nothing(plan, plan.kernels[k])]
        written = {v for k in kernels for v in kernel_writes(self._plan.kernels[k])}
        read = {v for k in kernels for v in kernel_reads(self._plan.kernels[k])}
        for value in read - written - self._slots.keys():
            held = constants.get(value, values[value])
            if not isinstance(held, DeviceMemory):
                data = bytes_at(held or 0, self._bytes[value])
                self._acl.upload(self._room(value).address, data)
        for k in kernels:
            operands = self._plan.kernels[k].operands
            self._kernels[k].launch([self._address(value, constants) for value in operands])
        self._acl.synchronize()
        for value in written - self._slots.keys():
            data = bytes_at(values[value], self._bytes[value])
            self._acl.download(data, self._room(value).address)

    def _room(self, value: int) -> DeviceMemory:
        """Where a tensor of the host lies on the NPU."""
        if value not in self._rooms:
            self._rooms[value] = self._acl.allocate(self._bytes[value])
        return self._rooms[value]

    def _address(self, value: int, constants: Constants) -> int:
        held = constants.get(value)
        if isinstance(held, DeviceMemory):
            return held.address
        slot = self._slots.get(value)
        return self._room(value).address if slot is None else self._arena.address + slot


def _loaded(plan: Plan, acl: Acl) -> list[NpuKernel]:

    def load(kernel: Kernel, artifact: Artifact) -> NpuKernel:
        with object_path(artifact) as path:
            return NpuKernel(path, kernel.source, acl)

    return each_loaded(plan, load)


def _value_bytes(plan: Plan) -> dict[int, int]:
    """Bytes of each value that a kernel touches, as it lies in memory."""
    return {
        value: storage_bytes(buffer.type)
        for kernel in plan.kernels
        for value, buffer in zip(kernel.operands, kernel.nest.buffers, strict=True)
    }

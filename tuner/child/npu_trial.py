"""One candidate on a real NPU: run on fenced device memory, compared, timed by device events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernel_gen.errors import DeviceFault, Unavailable
from kernel_gen.ir.loopnest import BufferRole
from kernel_gen.records import Failure, Measurement, Stage
from kernel_gen.runtime.ascend.acl import Acl, DeviceMemory, open_acl
from kernel_gen.runtime.ascend.npu import CLOCK, NpuKernel
from tuner.child import protocol
from tuner.child.checked_run import CheckedRun, wrong_result
from tuner.child.messages import CheckSet, Report, RunOnNpu

Bytes = NDArray[np.uint8]
_FENCE_BYTES, _FENCE = 4096, 0xC3


def run_on_npu(request: RunOnNpu, check: CheckedRun, report: Report) -> Measurement | Failure:
    """The time of a kernel that gave the right results and wrote nowhere else."""
    try:
        acl = open_acl(request.library, request.device)
        kernel = NpuKernel(request.path, request.source, acl)
    except Unavailable as error:
        return Failure(Stage.LOAD, "load-failed", str(error)[:500])
    report(Stage.CHECK)
    stage = Stage.CHECK
    try:
        for chosen in check.sets:
            operands = _Operands(acl, check, chosen)
            kernel.launch(operands.addresses)
            acl.synchronize()
            wrong = operands.fetch(check, chosen)
            if wrong is not None:
                return wrong
        stage = Stage.RUN
        report(stage)
        return _timed(acl, kernel, operands.addresses, request)
    except DeviceFault as error:
        return Failure(stage, "device-fault", str(error)[:500])


def _timed(acl: Acl, kernel: NpuKernel, addresses: Sequence[int], request: RunOnNpu) -> Measurement:
    def timer(calls: int) -> float:
        return acl.time_us(lambda: kernel.launch(addresses), calls)

    found = protocol.measure(timer, request.cores, request.limits, request.incumbent_us)
    return replace(found, protocol=replace(found.protocol, clock=CLOCK))


class _Operands:
    """Operands of one set on the NPU: each in memory of its own, outputs poisoned, all fenced."""

    def __init__(self, acl: Acl, check: CheckedRun, chosen: CheckSet) -> None:
        for output in check.outputs:
            output.poison()
        self._acl = acl
        self._host = check.memory(chosen)
        self._device = [self._placed(data) for data in self._host]

    @property
    def addresses(self) -> list[int]:
        """Of the operands, in the order of the nest's buffers."""
        return [memory.address + _FENCE_BYTES for memory in self._device]

    def fetch(self, check: CheckedRun, chosen: CheckSet) -> Failure | None:
        """Brings the outputs to the host; what is wrong with them, fences or inputs."""
        outputs = 0
        pairs = zip(check.nest.buffers, self._device, strict=True)
        for number, (buffer, memory) in enumerate(pairs):
            held = np.empty(memory.nbytes, np.uint8)
            self._acl.download(held, memory.address)
            inside = held[_FENCE_BYTES:-_FENCE_BYTES]
            fences = held[:_FENCE_BYTES], held[-_FENCE_BYTES:]
            is_output = buffer.role is BufferRole.OUTPUT
            if any((fence != _FENCE).any() for fence in fences):
                return wrong_result(outputs, f"bytes around operand {number} were overwritten")
            if is_output:
                self._host[number][:] = inside
            elif (inside != self._host[number]).any():
                return wrong_result(outputs, f"operand {number}, an input, was overwritten")
            outputs += is_output
        return check.wrong_output(chosen)

    def _placed(self, data: Bytes) -> DeviceMemory:
        memory = self._acl.allocate(data.nbytes + 2 * _FENCE_BYTES)
        self._acl.fill(memory.address, memory.nbytes, _FENCE)
        self._acl.upload(memory.address + _FENCE_BYTES, data)
        return memory

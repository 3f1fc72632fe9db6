"""What is different between an NPU on the simulator and a real one: who builds, and who runs."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from kernel_gen.ascend.sim import runtime_library
from kernel_gen.ir.target import Target
from kernel_gen.records import Protocol as MeasurementProtocol
from kernel_gen.runtime.ascend import npu, simulated
from kernel_gen.runtime.ascend.cann import CannCompiler, Toolkit
from kernel_gen.runtime.ascend.simulated import SimulatorCompiler
from kernel_gen.runtime.assemble import KernelCompiler
from kernel_gen.runtime.build import Compiler
from tuner.child.messages import KernelTask, RunOnNpu, RunSimulated

_SLOWER = 20.0  # than a kernel of the host: instructions are interpreted, checked and timed
# Times the best kernel of the nest: a plan takes the best one, or others that are closer to it
# (`NestSearch.runners_up`).
_TOO_SLOW = 1.5


class AscendBackend(Protocol):
    """How candidates for an NPU are built and run."""

    @property
    def preload(self) -> tuple[str, ...]:
        """Modules that a child imports before it is forked."""

    @property
    def npu(self) -> int:
        """Where plans run; 0 on the simulator."""

    def compiler(self, folder: Path) -> KernelCompiler:
        """Builds into `folder`; raises Unavailable."""

    def request(
        self, key: str, path: str, task: KernelTask, target: Target
    ) -> RunSimulated | RunOnNpu:
        """Asks the child to check and time the object at `path` on the operands `key`."""

    def timeout_s(self, task: KernelTask) -> float:
        """How long a run may take."""

    def sum_protocol(self, target: Target) -> MeasurementProtocol:
        """How the time of a plan is known: the sum of its kernels'."""


class SimulatorBackend:
    """The bundled simulator, built at the first use on a machine."""

    preload = ("kernel_gen.runtime.ascend.simulated",)
    npu = 0

    def compiler(self, folder: Path) -> SimulatorCompiler:
        runtime_library()
        return SimulatorCompiler(Compiler.find(folder))

    def request(self, key: str, path: str, task: KernelTask, target: Target) -> RunSimulated:
        incumbent_us = task.incumbent_us
        limit_us = None if incumbent_us is None else _TOO_SLOW * incumbent_us
        return RunSimulated(key, path, task.source, target, limit_us)

    def timeout_s(self, task: KernelTask) -> float:
        return _SLOWER * task.timeout_s

    def sum_protocol(self, target: Target) -> MeasurementProtocol:
        return MeasurementProtocol(target.cores, 1, 0, "cold", simulated.CLOCK, simulated=True)


class CannBackend:
    """A real NPU, by its number, through CANN. ACL is loaded in the child alone."""

    preload = ("tuner.child.npu_trial",)

    def __init__(self, toolkit: Toolkit, number: int) -> None:
        self._toolkit, self.npu = toolkit, number

    def compiler(self, folder: Path) -> CannCompiler:
        return CannCompiler(self._toolkit, folder)

    def request(self, key: str, path: str, task: KernelTask, target: Target) -> RunOnNpu:
        return RunOnNpu(
            key, path, task.source, self._toolkit.library, self.npu, target.cores, task.limits,
            task.incumbent_us,
        )  # fmt: skip

    def timeout_s(self, task: KernelTask) -> float:
        return task.timeout_s

    def sum_protocol(self, target: Target) -> MeasurementProtocol:
        return MeasurementProtocol(target.cores, 1, 0, "warm", npu.CLOCK)

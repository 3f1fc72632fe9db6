"""Plans and kernels for an NPU on the simulator: built for the host, called with addresses.

An object of a kernel holds its device code, compiled against the simulator, and its tiling
function. There is no driver in C: `SimulatedPlan` does in Python what `driver_source` writes for
the CPU, and offers the calls of `NativePlan` that a bound plan makes.
"""

from __future__ import annotations

import ctypes
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.ascend.chips import load_chip
from kernel_gen.ascend.sim import BuildError, SimResult, Simulator, build, runtime_library
from kernel_gen.codegen.ascend.launch import Tiler
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InternalError, InvalidInput, Refusal, Unavailable
from kernel_gen.ir.loopnest import BufferRole, LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure, Measurement, Protocol, Stage
from kernel_gen.runtime.arena import storage_bytes
from kernel_gen.runtime.ascend.objects import ObjectStore
from kernel_gen.runtime.ascend.plan_kernels import each_loaded, writes_nothing
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.kernel import bytes_at
from kernel_gen.runtime.native import Call, object_path
from kernel_gen.runtime.plan import Artifact, Kernel, Plan
from kernel_gen.runtime.rebuild import regenerate

Bytes = NDArray[np.uint8]
_BUILT_FILES = 3  # of a kernel's files: device code, tiling data, tiling function; no launcher
CLOCK = "simulated"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SimulatorCompiler(ObjectStore):
    """Builds kernels for the simulator with a C++ compiler of this machine, once per content."""

    compiler: Compiler
    flags: tuple[str, ...] = ("ascend-sim",)

    @property
    def version(self) -> str:
        return self.compiler.version

    def place(self, source: KernelSource) -> tuple[Path, str, str]:
        text = f"{self.version}\0{runtime_library().name}\0{source.digest}"
        return self.compiler.folder, "s", text

    def built(self, source: KernelSource, work: Path) -> Path | Failure:
        try:
            return build(dict(source.files[:_BUILT_FILES]), work)
        except BuildError as error:
            return Failure(Stage.BUILD, "compile-error", str(error))


class SimulatedKernel:
    """A built kernel for one chip. Not for two threads at once.

    Tensors are given as their bytes from the first to the last element, in the order of
    `nest.buffers`; results are written in place.
    """

    def __init__(self, path: str, source: KernelSource, nest: LoopNest, target: Target) -> None:
        """Raises Unavailable where the object does not load, or no tile fits the nest."""
        try:
            ctypes.CDLL(str(runtime_library()))
            self._simulator = Simulator(Path(path), source.entry, load_chip(target.model))
            tiler = Tiler(ctypes.CDLL(path), source.entry)
            self._tiling, self._blocks, self._workspace_bytes = tiler(())
        except (InvalidInput, AttributeError, OSError) as error:
            raise Unavailable(f"kernel {source.entry}: {error}") from error
        self._roles = [buffer.role for buffer in nest.buffers]

    def timed(self, operands: Sequence[Bytes]) -> SimResult:
        """The time of a call without computing anything: a small part of the work of `run`."""
        return self._call(operands, check=False)

    def run(
        self,
        operands: Sequence[Bytes],
        *,
        order: bool = True,
        timing: bool = True,
        trace: bool = False,
    ) -> SimResult:
        """One call; broken rules of the chip are in the result, without `order` no races."""
        return self._call(operands, order=order, timing=timing, trace=trace)

    def _call(self, operands: Sequence[Bytes], **how: bool) -> SimResult:
        pairs = list(zip(operands, self._roles, strict=True))
        return self._simulator.run(
            [data for data, role in pairs if role is not BufferRole.OUTPUT],
            [data for data, role in pairs if role is BufferRole.OUTPUT],
            tiling=self._tiling,
            blocks=self._blocks,
            workspace_bytes=self._workspace_bytes,
            **how,
        )


def simulated_time(result: SimResult, target: Target) -> Measurement:
    """What a run says about the kernel's time, its launch included, and how busy its pipes were."""
    us = result.latency_us + load_chip(target.model).launch_us
    pipes = tuple((name, round(share, 4)) for name, share in result.pipe_busy.items() if share)
    return Measurement((us,), Protocol(target.cores, 1, 0, "cold", CLOCK, simulated=True), pipes)


def load_kernels(plan: Plan) -> list[SimulatedKernel]:
    """The plan's kernels, each object loaded once. One that does not load, as it was built against
    another simulator, is generated and built again. Raises Unavailable."""

    def load(kernel: Kernel, artifact: Artifact) -> SimulatedKernel:
        try:
            return _load(plan, kernel, artifact)
        except Unavailable as error:
            _LOG.info("%s: built again", error)
            return _load(plan, kernel, _built_again(plan, kernel))

    return each_loaded(plan, load)


def _load(plan: Plan, kernel: Kernel, artifact: Artifact) -> SimulatedKernel:
    with object_path(artifact) as path:
        return SimulatedKernel(path, kernel.source, kernel.nest, plan.target)


def _built_again(plan: Plan, kernel: Kernel) -> Artifact:
    """Generated from nest and schedule: shipped text is never compiled."""
    source = regenerate(plan, kernel)
    if isinstance(source, Refusal):
        raise Unavailable(f"kernel {kernel.source.entry} cannot be built again: {source.sentence}")
    built = SimulatorCompiler(Compiler.find(_rebuilt_folder())).compile(source)
    if isinstance(built, Failure):
        raise Unavailable(f"kernel {source.entry} cannot be built again: {built.message[:500]}")
    return built


def _rebuilt_folder() -> Path:
    return runtime_library().parent / "kernels"


class SimulatedPlan:
    """The kernels of a plan behind the calls of `NativePlan`. One call runs at a time."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._kernels = load_kernels(plan)
        self._slots = {slot.value: slot.offset for slot in plan.layout.arena}
        self._places = {value: i for i, value in enumerate(plan.layout.constants)}
        self._empty = [writes_nothing(plan, kernel) for kernel in plan.kernels]
        self._lock = threading.Lock()

    def create(self, constants: Sequence[int]) -> tuple[int, ...]:
        """The addresses of the constants, which must stay valid."""
        return tuple(constants)

    def arena_bytes(self, n_threads: int) -> int:
        return self._plan.layout.arena_bytes

    def run(self, handle: Any, reference: Any) -> int:
        """Runs the segment that the call names. Raises InternalError where a kernel breaks a rule
        of the chip."""
        call: Call = reference._obj
        with self._lock:
            for number in self._plan.layout.segments[call.segment].kernels:
                if not self._empty[number]:
                    self._run(number, handle, call)
        return 0

    def _run(self, number: int, constants: Sequence[int], call: Call) -> None:
        kernel = self._plan.kernels[number]
        values = (ctypes.c_void_p * len(self._plan.program.values)).from_address(call.values)
        operands = []
        for value, buffer in zip(kernel.operands, kernel.nest.buffers, strict=True):
            if value in self._places:
                address = constants[self._places[value]]
            elif value in self._slots:
                address = call.arena + self._slots[value]
            else:
                address = values[value] or 0
            operands.append(bytes_at(address, storage_bytes(buffer.type)))
        # Races were looked for before the plan was published: they do not depend on data.
        result = self._kernels[number].run(operands, order=False, timing=False)
        if result.failures:
            raise InternalError(f"kernel {kernel.source.entry}: {result.failures[0]}")

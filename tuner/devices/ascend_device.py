"""An NPU as a device of the search: a chip on the simulator, or a real one through CANN.

Candidates run in a child on the operands of their nest and are compared with the reference. On the
simulator all rules of the chip are checked: a broken one is a failed trial with the rule's code.
Simulated times do not depend on what else this machine does.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import Unavailable
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure, Measurement
from tuner.child.contest import HOST_ONLY, ContestResult, ContestTask, GraphTask
from tuner.child.messages import UNTRIED, KernelTask, TaskResult
from tuner.devices.ascend_backend import AscendBackend, SimulatorBackend
from tuner.devices.ascend_bench import AscendBench
from tuner.devices.builder import Built
from tuner.devices.check_blocks import CheckBlocks
from tuner.devices.runner import Runner

_FAULT = "device-fault"  # the child's device is lost with the kernel


class AscendDevice:
    """An NPU, driven from this process. Not thread-safe.

    `backend` says whether it is real (default: the simulator); `cores` are the CPU numbers that
    compilers and the simulator may use (default: all of this process). Raises Unavailable without
    a compiler.
    """

    def __init__(
        self,
        target: Target,
        cores: Sequence[int] | None = None,
        backend: AscendBackend | None = None,
    ) -> None:
        self._cores = tuple(cores or sorted(os.sched_getaffinity(0)))
        self._target = target
        self._backend: AscendBackend = backend or SimulatorBackend()
        self._runner = Runner(self._cores, preload=self._backend.preload)
        try:
            self._compiler = self._backend.compiler(self._runner.scratch / "objects")
        except Unavailable:
            self._runner.close()
            raise
        self._blocks = CheckBlocks(self._runner)
        self._programs: AscendBench | None = None

    @property
    def target(self) -> Target:
        return self._target

    @property
    def child_pid(self) -> int | None:
        """Pid of the process candidates run in, if it lives (tests end it from outside)."""
        return self._runner.child_pid

    def measure(
        self, tasks: Sequence[KernelTask], seconds: float | None = None
    ) -> list[TaskResult]:
        end = math.inf if seconds is None else time.monotonic() + seconds
        with ThreadPoolExecutor(len(self._cores)) as pool:
            built = list(pool.map(lambda task: self._built(task.source, end), tasks))
        return [
            TaskResult(UNTRIED)
            if made is None or time.monotonic() >= end
            else TaskResult(self._measured(task, made), made.seconds)
            for task, made in zip(tasks, built, strict=True)
        ]

    def time_graphs(self, tasks: Sequence[GraphTask]) -> list[Measurement | Failure]:
        """The framework is not run on the chip: what has no kernel runs on the host, untimed."""
        return [HOST_ONLY for _ in tasks]

    def contest(self, task: ContestTask) -> ContestResult:
        if self._programs is None:
            self._programs = AscendBench(self._compiler, self._target, self._cores, self._backend)
        return self._programs.contest(task)

    def watch(self, check_stop: Callable[[], None]) -> None:
        self._runner.watch(check_stop)

    def close(self) -> None:
        self._runner.close()
        if self._programs is not None:
            self._programs.close()
        self._blocks.close()

    def _built(self, source: KernelSource, end: float) -> Built | None:
        """The kernel's object, or why there is none; None where time was up before its turn."""
        start = time.monotonic()
        if start >= end:
            return None
        artifact = self._compiler.compile(source)
        seconds = time.monotonic() - start
        if isinstance(artifact, Failure):
            return Built(None, artifact, seconds)
        return Built(str(self._compiler.path(source)), None, seconds)

    def _measured(self, task: KernelTask, built: Built) -> Measurement | Failure:
        if built.path is None:
            assert built.failure is not None
            return built.failure
        path = built.path
        return self._blocks.judged(task.check, lambda key: self._run(task, key, path))

    def _run(self, task: KernelTask, key: str, path: str) -> Measurement | Failure:
        request = self._backend.request(key, path, task, self._target)
        answer = self._runner.call(request, self._backend.timeout_s(task))
        assert isinstance(answer, Measurement | Failure)
        if isinstance(answer, Failure) and answer.code == _FAULT:
            self._runner.forget([key])
        return answer

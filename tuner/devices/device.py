"""A device as the search sees it, and the one that works in this process.

Builds and measurements alternate in batches: a batch is built on all cores of the device, then
measured with no compiler running. Candidates run in a child process (`tuner.devices.runner`).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from kernel_gen.errors import Unavailable
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure, Measurement
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.timer import build_loop
from tuner.child.contest import ContestResult, ContestTask, GraphTask
from tuner.child.messages import UNTRIED, KernelTask, RunKernel, TaskResult
from tuner.devices.builder import Builder, Built
from tuner.devices.check_blocks import CheckBlocks
from tuner.devices.program_bench import ProgramBench
from tuner.devices.runner import Runner


class Device(Protocol):
    """Builds, checks and times candidates. One caller at a time."""

    @property
    def target(self) -> Target: ...

    def measure(
        self, tasks: Sequence[KernelTask], seconds: float | None = None
    ) -> list[TaskResult]:
        """One result per task, in order. What goes wrong with a candidate is its result;
        raises Unavailable if the device itself is gone. Tasks whose turn does not come within
        `seconds` of the call are `UNTRIED`."""

    def time_graphs(self, tasks: Sequence[GraphTask]) -> list[Measurement | Failure]:
        """Times of graphs as the framework runs them, in order; raises Unavailable."""

    def contest(self, task: ContestTask) -> ContestResult:
        """Plans built, checked and run interleaved with the baseline; raises Unavailable."""

    def watch(self, check_stop: Callable[[], None]) -> None:
        """What calls ask every while from now on as they wait. What it raises passes through them,
        and their work is given up."""

    def close(self) -> None:
        """Give the device back; idempotent."""


class LocalDevice:
    """The CPU of this machine, driven from this process. Not thread-safe.

    `cores` are the CPU numbers it may use (default: all this process may use); kernels run with
    one thread per core. `cxx` is the compiler's command. Ready once the process that runs whole
    programs has torch, so that no search pays for it. Raises Unavailable without a compiler.
    """

    def __init__(
        self,
        target: Target | None = None,
        cores: Sequence[int] | None = None,
        cxx: str | None = None,
    ) -> None:
        self._cores = tuple(cores or sorted(os.sched_getaffinity(0)))
        self._target = target or host_target()
        self._runner = Runner(self._cores)
        try:
            self._compiler = Compiler.find(self._runner.scratch / "objects", command=cxx)
            self._timer_path = str(build_loop(self._compiler, self._target))
        except Unavailable:
            self._runner.close()
            raise
        self._builder = Builder(self._compiler, self._target, len(self._cores))
        self._programs = ProgramBench(self._compiler, self._target, self._cores)
        self._blocks = CheckBlocks(self._runner)
        try:
            self._programs.await_start()
        except Unavailable:
            self.close()
            raise

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
        if not tasks:
            return []
        end = math.inf if seconds is None else time.monotonic() + seconds
        built = self._made_ready(tasks)
        best: dict[str, float] = {}
        results: list[TaskResult] = []
        for task, made in zip(tasks, built, strict=True):
            late = time.monotonic() >= end
            results.append(TaskResult(UNTRIED) if late else self._measured(task, made, best))
        return results

    def time_graphs(self, tasks: Sequence[GraphTask]) -> list[Measurement | Failure]:
        return self._programs.time_graphs(tasks)

    def contest(self, task: ContestTask) -> ContestResult:
        return self._programs.contest(task)

    def watch(self, check_stop: Callable[[], None]) -> None:
        self._runner.watch(check_stop)
        self._programs.watch(check_stop)

    def close(self) -> None:
        self._runner.close()
        self._programs.close()
        self._blocks.close()

    def _made_ready(self, tasks: Sequence[KernelTask]) -> list[Built]:
        """Builds the batch, and beside it the references that it needs: compilers and NumPy leave
        cores free by turns, and nothing is measured yet."""
        with ThreadPoolExecutor(len(self._cores)) as pool:
            keep = self._blocks.prepare([task.check for task in tasks], pool)
            built = self._builder.build([task.source for task in tasks])
            keep()
        return built

    def _measured(self, task: KernelTask, built: Built, best: dict[str, float]) -> TaskResult:
        """`best` holds the batch's best times per nest, so that a slow candidate is given up."""
        if built.path is None:
            assert built.failure is not None
            return TaskResult(built.failure, built.seconds)
        path = built.path
        known = [us for us in (task.incumbent_us, best.get(task.check.key)) if us is not None]
        incumbent_us = min(known, default=None)
        answer = self._blocks.judged(
            task.check, lambda key: self._run(task, key, path, incumbent_us)
        )
        if isinstance(answer, Measurement):
            best[task.check.key] = min(answer.median_us, *known) if known else answer.median_us
        return TaskResult(answer, built.seconds)

    def _run(
        self, task: KernelTask, key: str, path: str, incumbent_us: float | None
    ) -> Measurement | Failure:
        request = RunKernel(
            key,
            path,
            self._timer_path,
            task.source,
            len(self._cores),
            task.limits,
            incumbent_us,
        )
        answer = self._runner.call(request, _timeout_s(task, incumbent_us))
        assert isinstance(answer, Measurement | Failure)
        return answer


def _timeout_s(task: KernelTask, incumbent_us: float | None) -> float:
    """The task's own limit, less where a hundred times the incumbent is less. Two seconds are left
    for comparing large results, and for a machine that is busy with something else."""
    if incumbent_us is None:
        return task.timeout_s
    return min(task.timeout_s, 2.0 + task.limits.max_seconds + incumbent_us * 1e-4)

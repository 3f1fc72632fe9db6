"""The whole-program stage on a device: assembles plans, runs them against the baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from kernel_gen.errors import InternalError
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure, Measurement, Stage
from kernel_gen.runtime.assemble import KernelCompiler, assemble
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.plan import Plan, SearchSummary
from tuner.child.contest import (
    CheckPlan,
    Contender,
    ContestResult,
    ContestTask,
    Entry,
    GraphTask,
    Interleave,
    TimeGraph,
)
from tuner.child.protocol import THOROUGH, Limits
from tuner.devices.runner import Runner
from tuner.gain import is_baseline

_UNKNOWN = SearchSummary(0.0, 0.0, 0.0, False, 0, 0, 0.0, 0.0)
_BASELINE_TIMEOUT_S = 120.0
# The framework's outputs are fresh in each call. Where malloc gives their memory back in between,
# page faults may double its time (seen: 12 to 24 ms for a convolution, batch norm and ReLU of
# 6 MB each), which depends on what else the process holds: here it never has to fault them in
# again, so that a plan must beat the framework at its best.
_MALLOC = {"MALLOC_TRIM_THRESHOLD_": str(1 << 62), "MALLOC_MMAP_MAX_": "0"}


class PlanBench:
    """Checks and times built plans in a child that has torch; needs no compiler. Not thread-safe.

    `cores` are the CPU numbers it may use; plans run with one thread per core. `npu` is where
    plans of an NPU run.
    """

    def __init__(self, cores: Sequence[int], npu: int = 0) -> None:
        self._threads, self._npu = len(cores), npu
        self._runner = Runner(cores, preload=("tuner.child.torch_parts",), environment=_MALLOC)

    @property
    def child_pid(self) -> int | None:
        """Pid of the process plans run in, if it lives."""
        return self._runner.child_pid

    def await_start(self) -> None:
        """Wait until torch is imported there; raises Unavailable if it cannot be."""
        self._runner.await_start()

    def watch(self, check_stop: Callable[[], None]) -> None:
        """What is asked every while as a run lasts; what it raises ends the run."""
        self._runner.watch(check_stop)

    def time_graphs(self, tasks: Sequence[GraphTask]) -> list[Measurement | Failure]:
        """Times of graphs as torch runs them, in order."""
        return [self._time_graph(task) for task in tasks]

    def compare(
        self,
        graph: Graph,
        plans: Sequence[Plan | Failure],
        *,
        seconds: float,
        most_seconds: float = math.inf,
        limits: Limits = THOROUGH,
        timeout_s: float = 30.0,
    ) -> ContestResult:
        """Checks the plans, and times the right ones interleaved with torch running `graph`; see
        `ContestTask`. A plan that makes the same calls takes the same time, and is not run for it.
        """
        checked = [self._checked(graph, plan, timeout_s) for plan in plans]
        right = tuple(plan for plan in checked if isinstance(plan, Plan) and not _is_same(plan))
        request = Interleave(graph, right, self._threads, limits, seconds, most_seconds)
        times = self._runner.call(request, seconds + timeout_s + _BASELINE_TIMEOUT_S)
        if isinstance(times, Failure):
            return ContestResult(times, tuple(_lost(plan, times) for plan in checked))
        assert isinstance(times, list)
        baseline, remaining = times[0], iter(times[1:])
        contenders = tuple(
            Contender(plan, baseline if _is_same(plan) else next(remaining))
            if isinstance(plan, Plan)
            else Contender(None, plan)
            for plan in checked
        )
        return ContestResult(baseline, contenders)

    def close(self) -> None:
        self._runner.close()

    def _time_graph(self, task: GraphTask) -> Measurement | Failure:
        request = TimeGraph(task.graph, self._threads, task.limits)
        answer = self._runner.call(request, task.timeout_s)
        assert isinstance(answer, Measurement | Failure)
        return answer

    def _checked(self, graph: Graph, plan: Plan | Failure, timeout_s: float) -> Plan | Failure:
        if isinstance(plan, Failure):
            return plan
        answer = self._runner.call(CheckPlan(graph, plan, self._threads, self._npu), timeout_s)
        return answer if isinstance(answer, Failure) else plan


class ProgramBench(PlanBench):
    """A bench that builds its plans from covers and kernels."""

    def __init__(
        self,
        compiler: Compiler | KernelCompiler,
        target: Target,
        cores: Sequence[int],
        npu: int = 0,
    ) -> None:
        super().__init__(cores, npu)
        self._compiler, self._target = compiler, target

    def contest(self, task: ContestTask) -> ContestResult:
        """Builds, checks and times the entries; see `ContestTask`."""
        return self.compare(
            task.graph,
            self._assemble(task),
            seconds=task.seconds,
            most_seconds=task.most_seconds,
            limits=task.limits,
            timeout_s=task.timeout_s,
        )

    def _assemble(self, task: ContestTask) -> list[Plan | Failure]:
        with ThreadPoolExecutor(self._threads) as pool:
            self._build_kernels(task, pool)
            return list(pool.map(lambda entry: self._assembled(task, entry), task.entries))

    def _build_kernels(self, task: ContestTask, pool: ThreadPoolExecutor) -> None:
        """Each kernel once, whether the search has built it here or not and however many entries
        share it. One that does not build is a failure of the entries that are assembled with it."""
        compiler = self._compiler
        if isinstance(compiler, Compiler):
            sources = {k.source.digest: k.source for entry in task.entries for k in entry.kernels}
            list(pool.map(lambda source: compiler.object(source, self._target), sources.values()))

    def _assembled(self, task: ContestTask, entry: Entry) -> Plan | Failure:
        try:
            return assemble(
                task.program,
                task.graph,
                task.key,
                entry.cover,
                entry.kernels,
                self._target,
                self._compiler,
                _UNKNOWN,
            )
        except InternalError as error:
            return Failure(Stage.BUILD, "assembly-failed", str(error)[:1000])


def _is_same(plan: Plan) -> bool:
    return is_baseline(plan.cover, plan.program, plan.graph)


def _lost(plan: Plan | Failure, failure: Failure) -> Contender:
    return Contender(None, plan if isinstance(plan, Failure) else failure)

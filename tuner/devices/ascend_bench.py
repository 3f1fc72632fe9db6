"""The whole-program stage on an NPU: plans are run for their results, and timed as the sum of their
kernels' times on the device, one launch after another.

Of the plans of a contest the fastest is built and run, and the next where it is wrong: no other one
can win.

The baseline is the plan without fusion, by our own best kernels: no framework runs on the chip. Ops
without a kernel run on the host, at no time; a plan that leaves more of them there than another
one is out. A plan of such ops alone has no time on the device, and there is none of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gen.fusion.group import FrameworkGroup
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure, Measurement, Stage
from kernel_gen.runtime.assemble import KernelCompiler
from kernel_gen.runtime.plan import Plan
from tuner.child.contest import HOST_ONLY, Contender, ContestResult, ContestTask, Entry
from tuner.devices.ascend_backend import AscendBackend
from tuner.devices.program_bench import ProgramBench
from tuner.tasks import computing_nodes

_TIMEOUT_S = 1800.0  # a run of all kernels of a large model with every rule checked


class AscendBench(ProgramBench):
    """Checks plans in a child that has torch; computes their times."""

    def __init__(
        self,
        compiler: KernelCompiler,
        target: Target,
        cores: Sequence[int],
        backend: AscendBackend,
    ) -> None:
        super().__init__(compiler, target, cores, backend.npu)
        self._protocol = backend.sum_protocol(target)
        self._right: set[str] = set()

    def contest(self, task: ContestTask) -> ContestResult:
        """Builds and checks the entries; the unfused plan's time is the baseline."""
        least = min(_on_host(task, entry) for entry in task.entries)
        contenders = self._contenders(task, least)
        baseline = _baseline(task, least)
        return ContestResult(self._time(baseline) if baseline.kernels else HOST_ONLY, contenders)

    def _contenders(self, task: ContestTask, least: int) -> tuple[Contender, ...]:
        """The fastest plan that is right; of slower ones, whose times are known, the times: they
        are not even built."""
        found: dict[int, Contender] = {}
        is_decided = False
        for place in sorted(
            range(len(task.entries)), key=lambda place: _sum_us(task.entries[place])
        ):
            entry = task.entries[place]
            if not entry.kernels:
                found[place] = Contender(None, HOST_ONLY)
            elif _on_host(task, entry) > least:
                found[place] = Contender(None, _left_on_host())
            elif is_decided:
                found[place] = Contender(None, self._time(entry))
            else:
                found[place] = self._contender(task, entry)
                is_decided = found[place].plan is not None
        return tuple(found[place] for place in range(len(task.entries)))

    def _contender(self, task: ContestTask, entry: Entry) -> Contender:
        plan = self._assembled(task, entry)
        if isinstance(plan, Plan) and plan.id not in self._right:
            checked = self._checked(task.graph, plan, _TIMEOUT_S)
            if isinstance(checked, Plan):
                self._right.add(plan.id)
            plan = checked
        if isinstance(plan, Failure):
            return Contender(None, plan)
        return Contender(plan, self._time(entry))

    def _time(self, entry: Entry) -> Measurement:
        return Measurement((_sum_us(entry),), self._protocol)


def _baseline(task: ContestTask, least: int) -> Entry:
    """The unfused plan. Where some op was never timed alone it is not whole, and nothing can be
    said to be faster than something: the fastest entry stands for itself."""
    unfused = task.unfused
    if unfused is not None and _on_host(task, unfused) == least:
        return unfused
    return min((e for e in task.entries if _on_host(task, e) == least), key=_sum_us)


def _sum_us(entry: Entry) -> float:
    return sum(k.measurement.median_us for k in entry.kernels if k.measurement is not None)


def _on_host(task: ContestTask, entry: Entry) -> int:
    """Computing ops that the entry leaves to the framework."""
    return sum(
        len(computing_nodes(task.program, group.nodes))
        for group in entry.cover.groups
        if isinstance(group, FrameworkGroup) and not group.is_constant
    )


def _left_on_host() -> Failure:
    message = "The plan leaves ops to the host that another plan has kernels for."
    return Failure(Stage.RUN, "host-only", message)

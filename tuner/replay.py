"""Running a search again without a device, from recorded trials or from any table of results.

Nothing is built and nothing runs: candidates get the result recorded for their nest, template and
point, plans the sum of their groups' times. What was never tried fails as `not-recorded`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from db.store import Store
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidInput
from kernel_gen.ir.target import Target
from kernel_gen.records import (
    BASELINE_TEMPLATE,
    COVER_GROUP,
    LIBRARY_TEMPLATE,
    Failure,
    Job,
    Measurement,
    Protocol,
    Stage,
    Trial,
    TrialKind,
)
from kernel_gen.runtime.assemble import assemble
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.device_names import device_target
from kernel_gen.runtime.key import PlanKey
from kernel_gen.runtime.plan import Artifact, Plan, SearchSummary
from tuner.archive import MemoryArchive
from tuner.child.contest import Contender, ContestResult, ContestTask, Entry, GraphTask
from tuner.child.messages import UNTRIED, KernelTask, TaskResult
from tuner.session import Assignment, Session

Point = tuple[tuple[str, int | str], ...]
Lookup = Callable[[str, str, Point], Measurement | Failure | None]

_UNKNOWN = SearchSummary(0.0, 0.0, 0.0, False, 0, 0, 0.0, 0.0)
_PROTOCOL = Protocol(1, 1, 0, "warm", clock="recorded", simulated=True)
NOT_RECORDED = Failure(Stage.RUN, "not-recorded", "this candidate is not in the record")


def recorded(trials: Sequence[Trial]) -> Lookup:
    """Results by group, template and point; the last record of a point counts."""
    table = {(trial.group, trial.template, trial.point): trial.result for trial in trials}
    return lambda group, template, point: table.get((group, template, point))


class _NoCompiler(Compiler):
    """Stands where plans are assembled that nobody will load."""

    def compile(self, sources: Sequence[KernelSource], target: Target) -> Artifact | Failure:
        return Artifact("replay.so", hashlib.sha256(b"").hexdigest(), b"")


_COMPILER = _NoCompiler(("none",), "none", Path("none"))


class ReplayDevice:
    """`Device` over a table of results."""

    def __init__(self, target: Target, lookup: Lookup) -> None:
        self._target = target
        self._lookup = lookup

    @property
    def target(self) -> Target:
        return self._target

    def measure(
        self, tasks: Sequence[KernelTask], seconds: float | None = None
    ) -> list[TaskResult]:
        if seconds is not None and seconds <= 0:
            return [TaskResult(UNTRIED) for _ in tasks]
        return [
            TaskResult(self._lookup(t.check.key, t.template, t.point) or NOT_RECORDED)
            for t in tasks
        ]

    def time_graphs(self, tasks: Sequence[GraphTask]) -> list[Measurement | Failure]:
        return [self._lookup(t.graph.digest, LIBRARY_TEMPLATE, ()) or NOT_RECORDED for t in tasks]

    def contest(self, task: ContestTask) -> ContestResult:
        contenders = tuple(self._contender(task, entry) for entry in task.entries)
        baseline = self._lookup(COVER_GROUP, BASELINE_TEMPLATE, ())
        slowest = max((entry.expected_us for entry in task.entries), default=0.0)
        known = baseline or (_simulated(slowest) if slowest > 0 else NOT_RECORDED)
        return ContestResult(known, contenders)

    def watch(self, check_stop: Callable[[], None]) -> None:
        return  # no call lasts

    def close(self) -> None:
        return

    def _contender(self, task: ContestTask, entry: Entry) -> Contender:
        plan = assemble(
            task.program,
            task.graph,
            task.key,
            entry.cover,
            entry.kernels,
            self._target,
            _COMPILER,
            _UNKNOWN,
        )
        return Contender(plan, _simulated(entry.expected_us))


def _simulated(us: float) -> Measurement:
    return Measurement((us,), _PROTOCOL)


def replay(assignment: Assignment, trials: Sequence[Trial], target: Target) -> Plan:
    """The plan that the search would publish if it met the recorded results again."""
    return Session(assignment, ReplayDevice(target, recorded(trials)), MemoryArchive()).run()


@dataclass(frozen=True, slots=True)
class Replayed:
    """What a job's record leads to now. `trials` are those of kernels. `published_id` is the plan
    that the job published, None if it published none; `same_cover` says whether both cut the
    program alike."""

    plan: Plan
    trials: tuple[Trial, ...]
    published_id: str | None
    same_cover: bool | None


def replay_job(store: Store, job_id: str) -> Replayed:
    """Searches again with the recorded trials of a job.

    Raises NotFound, and InvalidInput for a job without trials or of an unknown target.
    """
    job = store.jobs.get(job_id)
    trials = tuple(trial for _, trial in store.trials.of_job(job_id))
    if not trials:
        raise InvalidInput(f"job {job_id} has no recorded trials")
    published = None if job.plan_id is None else store.plans.get(job.plan_id)
    target = _target_of(job, published)
    graph = store.graphs.get(job.request.graph_digest)
    plan = replay(Assignment(graph, PlanKey.parse(job.key), job.request), trials, target)
    same = None if published is None else plan.cover == published.cover
    kernels = tuple(trial for trial in trials if trial.kind is TrialKind.KERNEL)
    return Replayed(plan, kernels, job.plan_id, same)


def _target_of(job: Job, published: Plan | None) -> Target:
    """The target a job searched for: its key names it, but only a plan holds its capacities."""
    if published is not None:
        return published.target
    own, wanted = device_target(job.request.device), PlanKey.parse(job.key).target
    if own.key != wanted:
        raise InvalidInput(f"job {job.id} is for {wanted}; without its plan, replay it there")
    return own

"""One job from graph to plan: rules, candidates, nests, covers, whole program.

A session reads its history from an archive and writes to it as it goes, so it can be cut anywhere:
a session over the same archive continues where the last one stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cost_models.choose import model_for
from cost_models.model import CostModel
from kernel_gen.codegen.registry import templates as all_templates
from kernel_gen.codegen.template import Template
from kernel_gen.errors import InvalidInput
from kernel_gen.ir.graph import Graph
from kernel_gen.records import (
    COVER_GROUP,
    LIBRARY_TEMPLATE,
    Failure,
    JobRequest,
    Trial,
    TrialKind,
)
from kernel_gen.runtime.key import PlanKey
from kernel_gen.runtime.plan import Plan
from tuner.archive import Archive
from tuner.child.contest import GraphTask
from tuner.child.protocol import FRAMEWORK_ERROR, QUICK
from tuner.devices.device import Device
from tuner.meter import Meter
from tuner.nests.costs import CostBook
from tuner.nests.search import NestSearch
from tuner.nests.stage import GroupStage
from tuner.prepare import prepare
from tuner.programs.finalists import Finalists
from tuner.programs.stage import ProgramStage
from tuner.summary import published
from tuner.tasks import Tasks

_LIBRARY_SHARE = 0.2  # of the budget at most for timing framework parts
_SAMPLES_SHARE = 0.5  # of that for samples: the rest draws inputs, packs weights and warms up
_LIBRARY_BATCH = 8
_RESERVE_MOST = 0.4  # of what setting up has left, for the whole-program stage
_NEXT_RESERVE = 1.3  # contests' durations that are kept for the next one
_RESERVED_SECONDS, _RESERVED_RUNS = 4.0, 20  # builds, and runs of the program, in that stage
_ENTRANT_SHARE = 0.3  # of what preparing took: to build and check one plan, before one was
_FIRST_LEG_SECONDS = 45.0  # before the first plan; each leg after it is twice as long


@dataclass(frozen=True, slots=True)
class Assignment:
    """What a session works on. `spent_seconds` counts earlier attempts."""

    graph: Graph
    key: PlanKey
    request: JobRequest
    spent_seconds: float = 0.0


class Session:
    """Runs one assignment on a device. `check_stop` is called between batches; what it raises
    ends the session and passes through `run`. Whole programs run after `first_leg_seconds`, and
    each time after twice as long."""

    def __init__(
        self,
        assignment: Assignment,
        device: Device,
        archive: Archive,
        check_stop: Callable[[], None] = lambda: None,
        model: CostModel | None = None,
        templates: Sequence[Template] | None = None,
        first_leg_seconds: float = _FIRST_LEG_SECONDS,
    ) -> None:
        self._assignment, self._device, self._archive = assignment, device, archive
        self._check_stop = check_stop
        self._first_leg_seconds = first_leg_seconds
        self._model = model or model_for(device.target)
        self._templates = tuple(templates or all_templates(device.target))
        self._resumed = list(archive.resumed())
        tuned = [t for t in self._resumed if t.kind is TrialKind.KERNEL]
        self._resumed_failures = sum(isinstance(t.result, Failure) for t in tuned)
        self._meter = Meter(assignment.request.budget, assignment.spent_seconds, len(tuned))
        self._prepare_seconds = 0.0

    @property
    def spent_seconds(self) -> float:
        """Seconds spent on the job, earlier attempts included."""
        return self._meter.spent_seconds

    def run(self) -> Plan:
        """Search and return the plan to publish, its summary filled in.

        Raises Unavailable if the device is lost, InvalidInput if the graph cannot be run at all.
        """
        self._progress("prepare")
        assignment, target = self._assignment, self._device.target
        before = self._meter.spent_seconds
        prepared = prepare(
            assignment.graph, assignment.request, self._templates, target, self._check_stop
        )
        self._prepare_seconds = self._meter.spent_seconds - before
        costs = CostBook(prepared.tasks, target, self._model, self._search_maker(prepared.tasks))
        self._time_library(prepared.tasks, costs)
        groups = self._group_stage(prepared.tasks, costs)
        programs = self._program_stage(prepared.tasks, costs)
        self._alternate(groups, programs, self._reserve_seconds(costs))
        failures = groups.failures + self._resumed_failures
        return published(programs.outcome(), prepared, self._meter, failures)

    def _alternate(self, groups: GroupStage, programs: ProgramStage, reserve: float) -> None:
        """Tune nests, run the best covers, and again while the budget lasts. A long search has a
        plan early and betters it."""
        leg = self._first_leg_seconds
        while True:
            exhausted = groups.run(max(reserve, self._meter.remaining_seconds - leg))
            leg *= 2
            self._progress("whole-program")
            programs.run()
            reserve = _NEXT_RESERVE * programs.contest_seconds
            if exhausted or not programs.has_time(_NEXT_RESERVE + 1):
                return

    def _group_stage(self, tasks: Tasks, costs: CostBook) -> GroupStage:
        return GroupStage(
            tasks,
            costs,
            self._templates,
            self._device,
            self._archive,
            self._meter,
            self._check_stop,
        )

    def _program_stage(self, tasks: Tasks, costs: CostBook) -> ProgramStage:
        covers = [trial.number for trial in self._resumed if trial.group == COVER_GROUP]
        return ProgramStage(
            self._assignment.graph,
            tasks.program,
            self._assignment.key,
            Finalists(tasks, costs, self._templates, self._device.target),
            self._device,
            self._archive,
            self._meter,
            self._check_stop,
            first_number=max(covers, default=-1) + 1,
            entrant_seconds=_ENTRANT_SHARE * self._prepare_seconds,
        )

    def _reserve_seconds(self, costs: CostBook) -> float:
        """What the whole-program stage keeps for itself: builds, some runs of the program, and for
        covers and plans of a long one about what it took to prepare."""
        parts = (o for o in costs.library_options() if len(o.group.nodes) == 1)
        runs = _RESERVED_RUNS * sum(part.cost_us for part in parts) / 1e6
        wanted = _RESERVED_SECONDS + runs + self._prepare_seconds
        return min(_RESERVE_MOST * self._meter.remaining_seconds, wanted)

    def _search_maker(self, tasks: Tasks) -> Callable[[str], NestSearch]:
        resumed: dict[str, list[Trial]] = {}
        for trial in self._resumed:
            resumed.setdefault(trial.group, []).append(trial)

        def make(digest: str) -> NestSearch:
            search = NestSearch(
                tasks.nests[digest].nest,
                self._device.target,
                self._templates,
                self._model.predict_us,
                seed=int(digest[:8], 16),
                history=self._archive.known(digest),
            )
            search.adopt(resumed.get(digest, ()))
            return search

        return make

    def _time_library(self, tasks: Tasks, costs: CostBook) -> None:
        """Time the framework's parts, or as many as a share of the budget allows."""
        known = {t.group: t for t in self._resumed if t.template == LIBRARY_TEMPLATE}
        for digest, trial in known.items():
            costs.add_library(digest, trial.result)
        todo = [digest for digest in tasks.library if digest not in known]
        seconds = _LIBRARY_SHARE * self._meter.budget.seconds
        limit = self._meter.spent_seconds + seconds
        each = _SAMPLES_SHARE * seconds / max(1, len(todo))
        quick = replace(QUICK, max_seconds=min(each, QUICK.max_seconds))
        while todo and self._meter.spent_seconds < limit:
            self._check_stop()
            batch, todo = todo[:_LIBRARY_BATCH], todo[_LIBRARY_BATCH:]
            times = self._device.time_graphs([GraphTask(tasks.library[d], quick) for d in batch])
            trials = [
                Trial(digest, 0, LIBRARY_TEMPLATE, (), result)
                for digest, result in zip(batch, times, strict=True)
            ]
            for trial in trials:
                costs.add_library(trial.group, trial.result)
            self._archive.add_trials(trials)
            self._progress("library")
        self._need_baseline()

    def _need_baseline(self) -> None:
        """Raises InvalidInput where torch refuses the values that are drawn for the program, as ops
        that only torch has may: no plan could be compared with it."""
        graph = self._assignment.graph
        if not any(node.op == "framework" for node in graph.nodes):
            return
        (result,) = self._device.time_graphs([GraphTask(graph)])
        if isinstance(result, Failure) and result.code == FRAMEWORK_ERROR:
            raise InvalidInput(
                f"no plan can be timed: torch refuses values drawn at random: {result.message}"
            )

    def _progress(self, phase: str) -> None:
        data = {
            "phase": phase,
            "done": self._meter.trials,
            "total": self._meter.budget.trials,
            "remaining_seconds": round(self._meter.remaining_seconds, 2),
        }
        self._archive.event("progress", data)

"""Covers worth running as a whole, and what they are made of."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

from kernel_gen.codegen.source import KernelSource
from kernel_gen.codegen.template import Template
from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.group import FrameworkGroup, FusionGroup, FusionPlan
from kernel_gen.fusion.sharing import Sharing
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.records import Measurement, Trial
from kernel_gen.runtime.plan import UNMEASURED, Kernel
from kernel_gen.schedule.schedule import Schedule
from tuner.child.contest import Entry
from tuner.covers.problem import for_sharing
from tuner.covers.solver import Cover, CoverOption, Overheads, best_covers
from tuner.nests.costs import CostBook
from tuner.tasks import Tasks, computing_nodes, op_names

# How kernels behave in company is not known from their times alone: intermediates may come from
# the cache or from memory, leaving the compiled segment costs more or less. Each view of that gives
# its best cover, besides the plain one and the one that shares more; the whole-program runs decide.
_VIEWS = (
    Overheads(kernel_us=4.0, framework_us=40.0),
    # Fewest groups whatever their times: a kernel that was timed in a bad moment gets its chance.
    Overheads(kernel_us=1e4, framework_us=1e5),
    Overheads(kernel_us=0.0, framework_us=0.0, alone=0.0),
)
_SOLVER_SECONDS = 5.0
_MOST_OF = 0.5  # of a cover's time: one nest that decides it
_RUNNERS_UP = 2
_FASTER = ("faster", "The framework's kernel was the fastest one measured.")
_UNMEASURED = (
    UNMEASURED,
    "No kernel for it was measured: all trials failed, or time ran out (give more seconds).",
)


class Finalists:
    """Chooses covers by the cost book and turns them into contest entries."""

    def __init__(
        self, tasks: Tasks, costs: CostBook, templates: Sequence[Template], target: Target
    ) -> None:
        self._tasks, self._costs, self._target = tasks, costs, target
        self._ops = Sharing(tasks.program).ops
        self._templates = {template.name: template for template in templates}
        self._sources: dict[tuple[str, Schedule], KernelSource] = {}

    def covers(
        self, seconds: float = math.inf, check_stop: Callable[[], None] = lambda: None
    ) -> list[FusionPlan]:
        """Distinct covers by groups with a measured kernel, most promising first: one at least,
        the others as far as `seconds` last. `check_stop` is called between them."""
        options = self._costs.options(measured_only=True)
        end = time.monotonic() + seconds
        check_stop()
        found = self._solved(options, Overheads(), seconds / 2)
        sharing = [for_sharing(cover.cost_us, self._ops) for cover in found]
        for overheads in (*sharing, *_VIEWS):
            check_stop()
            left = end - time.monotonic()
            if found and left <= 0:
                break
            found += self._solved(options, overheads, left / 2)
        return list(dict.fromkeys(cover.plan for cover in found))

    def unfused(self, seconds: float = math.inf) -> FusionPlan | None:
        """One op per kernel, or the framework where it is faster; met in about `seconds`."""
        options = self._costs.options(measured_only=True)
        single = [option for option in options if self._tasks.is_single(option.group)]
        solved = self._solved(single, Overheads(), seconds)
        return solved[0].plan if solved else None

    def framework(self) -> FusionPlan | None:
        """All ops by the framework: the baseline as a plan."""
        solved = self._solved(self._costs.library_options(), Overheads())
        return solved[0].plan if solved else None

    def variants(self, cover: FusionPlan) -> list[Entry]:
        """The cover with other kernels of the nest that takes most of its time, if one does: their
        times come from other moments than the best one's, and the contest is interleaved."""
        costs: dict[str, float] = {}
        for group in cover.groups:
            if isinstance(group, FusionGroup):
                digest = self._tasks.candidate_of[group].task
                costs[digest] = costs.get(digest, 0.0) + (self._costs.cost_us(digest) or 0.0)
        total_us = sum(self._costs.group_us(group) or 0.0 for group in cover.groups)
        dearest = max(costs, key=lambda digest: costs[digest], default=None)
        if dearest is None or costs[dearest] < _MOST_OF * total_us:
            return []
        others = self._costs.search(dearest).runners_up(_RUNNERS_UP)
        return [self.entry(cover, {dearest: trial}) for trial in others]

    def entry(self, cover: FusionPlan, chosen: Mapping[str, Trial] = MappingProxyType({})) -> Entry:
        """The cover with the best kernel of each of its groups, or the `chosen` one of a nest."""
        fused = [group for group in cover.groups if isinstance(group, FusionGroup)]
        groups = tuple(
            self._explained(g) if isinstance(g, FrameworkGroup) else g for g in cover.groups
        )
        expected_us = sum(self._costs.group_us(group) or 0.0 for group in cover.groups)
        kernels = tuple(self._kernel(group, chosen) for group in fused)
        return Entry(FusionPlan(groups), kernels, expected_us)

    def _solved(
        self, options: Sequence[CoverOption], overheads: Overheads, seconds: float = math.inf
    ) -> list[Cover]:
        program, seconds = self._tasks.program, max(0.0, min(_SOLVER_SECONDS, seconds))
        try:
            return best_covers(program, options, overheads=overheads, seconds=seconds)
        except InvalidInput:
            return []  # these options alone do not cover the program

    def _explained(self, group: FrameworkGroup) -> FrameworkGroup:
        """Ops that a kernel could have run say whether one lost to the framework or none ran."""
        computing = frozenset(computing_nodes(self._tasks.program, group.nodes))
        tasks = [
            task
            for node in computing
            for task, needed in self._candidates_by_node.get(node, ())
            if needed <= computing
        ]
        if group.is_constant or not tasks:
            return group
        measured = any(self._costs.measured_us(task) is not None for task in tasks)
        code, sentence = _FASTER if measured else _UNMEASURED
        return dataclasses.replace(group, code=code, sentence=sentence)

    @cached_property
    def _candidates_by_node(self) -> Mapping[int, list[tuple[str, frozenset[int]]]]:
        """Candidates by the first op that they compute, with all that they compute."""
        found: dict[int, list[tuple[str, frozenset[int]]]] = {}
        for candidate in self._tasks.candidates.groups:
            needed = frozenset(computing_nodes(self._tasks.program, candidate.group.nodes))
            if needed:
                found.setdefault(min(needed), []).append((candidate.task, needed))
        return found

    def _kernel(self, group: FusionGroup, chosen: Mapping[str, Trial]) -> Kernel:
        candidate = self._tasks.candidate_of[group]
        search = self._costs.search(candidate.task)
        best = chosen.get(candidate.task, search.best)
        schedule = None if best is None else search.schedule_of(best)
        if best is None or schedule is None:
            raise InvalidInput(f"group {group.nodes} has no measured kernel")
        nest = candidate.lowered.nest
        source = self._source(candidate.task, nest, schedule)
        measurement = best.result if isinstance(best.result, Measurement) else None
        return Kernel(
            group,
            candidate.lowered.operands,
            nest,
            schedule,
            source,
            op_names(self._tasks.program, group.nodes),
            measurement,
        )

    def _source(self, digest: str, nest: LoopNest, schedule: Schedule) -> KernelSource:
        """The kernel of a nest, once for all of its groups."""
        known = self._sources.get((digest, schedule))
        if known is None:
            template = self._templates[schedule.template]
            symbol = f"gaf_kernel_{digest[:16]}"
            known = template.generate(nest, self._target, schedule, symbol)
            self._sources[digest, schedule] = known
        return known

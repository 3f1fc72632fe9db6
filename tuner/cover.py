"""The cheapest cover of a program by groups, exactly, as an integer program (HiGHS).

One binary per option. Each value that a chosen option reads, and each output of the program, is
produced by exactly one chosen option; recomputation inside groups is free to happen. Covers whose
groups wait for each other in a circle are cut off when the solver proposes one.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.group import FrameworkGroup, FusionPlan, Group
from kernel_gen.fusion.library import constant_group
from kernel_gen.fusion.region import constant_values
from kernel_gen.fusion.sharing import Sharing
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.ops import OpKind, spec

# A free option still costs this much in the model, so that none is chosen that nobody reads.
_NOTHING_US = 1e-6
_SHORTEST_SECONDS = 0.5  # of one call of the solver, though the time is up
_FEASIBLE = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit)


@dataclass(frozen=True, slots=True)
class CoverOption:
    """A group that may be chosen, and its time alone (measured or predicted)."""

    group: Group
    cost_us: float

    def __post_init__(self) -> None:
        if not 0 <= self.cost_us < float("inf"):
            raise InvalidInput(f"option {self.group.nodes}: cost {self.cost_us} µs")


@dataclass(frozen=True, slots=True)
class Overheads:
    """Cost of having one more group in a plan. Estimates: a call through a pointer and its cold
    start in cache; leaving the compiled segment, one dispatch in torch, coming back.

    `alone`, a share of a group's time, counts where its ops share no kernel: times come from warm
    caches and are sure to a few percent, so of equal covers the one with less traffic wins.
    """

    kernel_us: float = 0.5
    framework_us: float = 4.0
    alone: float = 0.02

    def of(self, group: Group) -> float:
        """Microseconds that `group` costs besides its own time."""
        return self.framework_us if isinstance(group, FrameworkGroup) else self.kernel_us


@dataclass(frozen=True, slots=True)
class Cover:
    """A cover, its cost with overheads (without `alone`), its options' positions as they run."""

    plan: FusionPlan
    cost_us: float
    chosen: tuple[int, ...]


def best_covers(
    program: Graph,
    options: Sequence[CoverOption],
    forbidden: Collection[Group] = (),
    k: int = 1,
    overheads: Overheads | None = None,
    seconds: float = 5.0,
) -> list[Cover]:
    """The `k` cheapest distinct covers, cheapest first; fewer if there are fewer.

    Options of `forbidden` groups are left out. Values that depend on constants only cost nothing:
    the plan's first group makes those that are read (`FrameworkGroup.is_constant`). The covers are
    optimal if the solver needs less than `seconds` for all of them together (a program of a hundred
    ops takes a fraction of a second), else the best it has met. Raises InvalidInput if there is no
    cover at all.
    """
    problem = _Problem(program, options, frozenset(forbidden), overheads or Overheads())
    if not problem.needed and not problem.effects:
        return [problem.cover([])]  # every output is an input or a constant
    solver = _Solver(problem, seconds)
    covers: list[Cover] = []
    while len(covers) < k:
        chosen = solver.next_cover(required=not covers)
        if chosen is None:
            break
        covers.append(problem.cover(chosen))
        solver.forbid(chosen)
    if not covers:
        raise InvalidInput(problem.why_infeasible())
    return covers


class _Problem:
    """What the options produce and read, without what is always there."""

    def __init__(
        self,
        program: Graph,
        options: Sequence[CoverOption],
        forbidden: Collection[Group],
        overheads: Overheads,
    ) -> None:
        self.program = program
        self.options = options
        sharing = Sharing(program)
        self.costs = [o.cost_us + overheads.of(o.group) for o in options]
        self.weighed = [
            cost + (overheads.alone * option.cost_us if sharing.alone(option.group) else 0.0)
            for cost, option in zip(self.costs, options, strict=True)
        ]
        self.barred = [i for i, o in enumerate(options) if o.group in forbidden]
        self._constants = constant_values(program)
        free = self._constants | {i.value for i in program.inputs}
        self.needed = {o.value for o in program.outputs} - free
        self.reads = [frozenset(o.group.inputs) - free for o in options]
        self.makes = [frozenset(o.group.outputs) - free for o in options]
        self.makers: dict[int, list[int]] = {}
        for position, values in enumerate(self.makes):
            for value in values:
                self.makers.setdefault(value, []).append(position)
        self.effects = [
            [p for p, o in enumerate(options) if index in o.group.nodes]
            for index, node in enumerate(program.nodes)
            if spec(node.op).kind is OpKind.FRAMEWORK
        ]

    def edges(self, chosen: Sequence[int]) -> dict[int, set[int]]:
        """Chosen option -> chosen options that must run before it."""
        maker = {value: p for p in chosen for value in self.makes[p]}
        before = {p: {maker[v] for v in self.reads[p] if v in maker} - {p} for p in chosen}
        ordered = [p for users in self.effects for p in users if p in before]
        for first, second in itertools.pairwise(ordered):
            if first != second:
                before[second].add(first)
        return before

    def cover(self, chosen: Sequence[int]) -> Cover:
        """The cover of an acyclic choice."""
        order = _topological(self.edges(chosen), self.options)
        groups: list[Group] = [self.options[p].group for p in order]
        read = {value for group in groups for value in group.inputs}
        read |= {output.value for output in self.program.outputs}
        constant = constant_group(self.program, frozenset(read & self._constants))
        if constant is not None:
            groups.insert(0, constant)
        return Cover(FusionPlan(tuple(groups)), sum(self.costs[p] for p in order), tuple(order))

    def why_infeasible(self) -> str:
        """A sentence for the caller: the first value that nothing can make."""
        allowed = set(range(len(self.options))) - set(self.barred)
        for value in sorted(self.needed | set().union(*self.reads)):
            if not allowed.intersection(self.makers.get(value, ())):
                return f"no option produces value {value}: there is no cover of the program"
        return "the options cover the program only with groups that wait for each other"


def _topological(before: dict[int, set[int]], options: Sequence[CoverOption]) -> list[int]:
    """Order in which no group runs before those it reads from, early nodes first."""
    waiting = {p: len(sources) for p, sources in before.items()}
    after: dict[int, list[int]] = {p: [] for p in before}
    for p, sources in before.items():
        for source in sources:
            after[source].append(p)
    ready = [(options[p].group.nodes, p) for p, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, p = heapq.heappop(ready)
        order.append(p)
        for follower in after[p]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, (options[follower].group.nodes, follower))
    return order


def _cycles(before: dict[int, set[int]]) -> list[list[int]]:
    """Some circles, no two with a common group; none if the choice is acyclic."""
    found: list[list[int]] = []
    state: dict[int, int] = {}  # 1: on the path, 2: done
    for root in before:
        if root in state:
            continue
        path, stack = [root], [iter(sorted(before[root]))]
        state[root] = 1
        while stack:
            step = next(stack[-1], None)
            if step is None:
                state[path.pop()] = 2
                stack.pop()
            elif state.get(step) == 1 and not _touches(found, path[path.index(step) :]):
                found.append(path[path.index(step) :])
            elif step not in state:
                state[step] = 1
                path.append(step)
                stack.append(iter(sorted(before[step])))
    return found


def _touches(found: list[list[int]], path: list[int]) -> bool:
    return any(set(path) & set(other) for other in found)


class _QuietHighs(highspy.Highs):
    """HiGHS without its banner, which the constructor prints as it enables callbacks."""

    def enableCallbacks(self) -> None:
        self.silent()
        super().enableCallbacks()  # type: ignore[no-untyped-call]


class _Solver:
    """The integer program; rows are added as covers are found or cut off."""

    def __init__(self, problem: _Problem, seconds: float) -> None:
        self._problem = problem
        self._model = _QuietHighs()  # type: ignore[no-untyped-call]
        self._end = time.monotonic() + seconds
        self._model.setOptionValue("mip_rel_gap", 0.0)
        self._model.setOptionValue("random_seed", 0)
        for position, cost in enumerate(problem.weighed):
            upper = 0.0 if position in set(problem.barred) else 1.0
            self._model.addVar(0.0, upper)
            self._model.changeColCost(position, max(cost, _NOTHING_US))
            self._model.changeColIntegrality(position, highspy.HighsVarType.kInteger)
        self._add_production()

    def next_cover(self, *, required: bool) -> list[int] | None:
        """The cheapest choice that no row forbids; None if there is none, or none was met in
        time and it is not `required`."""
        while True:
            left = max(self._end - time.monotonic(), _SHORTEST_SECONDS)
            chosen = self._solve(left, required=required)
            if chosen is None:
                return None
            circles = _cycles(self._problem.edges(chosen))
            if not circles:
                return chosen
            for circle in circles:
                self._row(-highspy.kHighsInf, len(circle) - 1, dict.fromkeys(circle, 1.0))

    def _solve(self, seconds: float, *, required: bool) -> list[int] | None:
        """The best choice found; where one is required, more time is given until there is one."""
        model = self._model
        model.setOptionValue("time_limit", seconds)
        model.run()
        if model.getModelStatus() not in _FEASIBLE:
            return None
        if model.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            return self._solve(10 * seconds, required=True) if required else None
        return [p for p, value in enumerate(model.getSolution().col_value) if value > 0.5]

    def forbid(self, chosen: Sequence[int]) -> None:
        """Cuts off exactly this choice: some option of it must go."""
        self._row(-highspy.kHighsInf, len(chosen) - 1, dict.fromkeys(chosen, 1.0))

    def _add_production(self) -> None:
        problem = self._problem
        for value, makers in problem.makers.items():
            exact = value in problem.needed
            self._row(1.0 if exact else 0.0, 1.0, dict.fromkeys(makers, 1.0))
        for _ in problem.needed - problem.makers.keys():
            self._row(1.0, 1.0, {})
        for (_, value), readers in self._readers().items():
            row = dict.fromkeys(problem.makers.get(value, ()), 1.0)
            for reader in readers:
                row[reader] = row.get(reader, 0.0) - 1.0
            self._row(0.0, highspy.kHighsInf, row)
        for users in problem.effects:
            self._row(1.0, 1.0, dict.fromkeys(users, 1.0))

    def _readers(self) -> dict[tuple[int, int], list[int]]:
        """(made, read) -> options that make the one value and read the other.

        One of them at most is chosen, so their sum may stand on one side of a row: the relaxation
        is far tighter than with a row for each reader.
        """
        problem = self._problem
        found: dict[tuple[int, int], list[int]] = {}
        for position, values in enumerate(problem.reads):
            for made in problem.makes[position] or {-1 - position}:
                for value in values:
                    found.setdefault((made, value), []).append(position)
        return found

    def _row(self, low: float, high: float, coefficients: dict[int, float]) -> None:
        columns = np.array(list(coefficients), np.int32)
        self._model.addRow(low, high, len(columns), columns, np.array([*coefficients.values()]))

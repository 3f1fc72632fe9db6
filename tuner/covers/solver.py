"""The cheapest cover of a program by groups, exactly, as an integer program (HiGHS).

One binary per option. Each value that a chosen option reads, and each output of the program, is
produced by exactly one chosen option; recomputation inside groups is free to happen. Covers whose
groups wait for each other in a circle are cut off when the solver proposes one.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

import highspy
import numpy as np

from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.group import Group
from kernel_gen.ir.graph import Graph
from tuner.covers.problem import Cover as Cover
from tuner.covers.problem import CoverOption as CoverOption
from tuner.covers.problem import Overheads as Overheads
from tuner.covers.problem import Problem, cycles
from tuner.covers.sections import by_sections

# A free option still costs this much in the model, so that none is chosen that nobody reads.
_NOTHING_US = 1e-6
_SHORTEST_SECONDS = 0.5  # of one call of the solver, though the time is up
_LONG = 4000  # options that the solver still takes as one problem
_SECTION = 60  # nodes of a section of a first choice: it is mostly within two percent of the best
_FIRST_SHARE = 0.25  # of the time, for that choice
_GAP = 1e-3  # a cover within so much of the best is as good: times are known to a few percent
_FEASIBLE = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit)


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
    within a thousandth of the best if the solver needs less than `seconds` for all of them together
    (a program of a hundred ops takes a fraction of a second), else the best it has met, from one on
    that is optimal in each of its sections. A long program gets one cover,
    optimal in each of its sections. Raises InvalidInput if there is no cover at all.
    """
    problem = Problem(program, options, frozenset(forbidden), overheads or Overheads())
    if not problem.needed and not problem.effects:
        return [problem.cover([])]  # every output is an input or a constant
    if len(options) > _LONG:
        choices = (by_sections(problem, seconds, _choice), problem.start())
        found = [problem.cover(chosen) for chosen in choices if chosen is not None]
        if found:
            return [min(found, key=lambda cover: sum(problem.weighed[p] for p in cover.chosen))]
    solver = _Solver(problem, seconds)
    if len(program.nodes) > 2 * _SECTION:
        solver.begin_with(by_sections(problem, _FIRST_SHARE * seconds, _choice, _SECTION))
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


def _choice(problem: Problem, seconds: float) -> list[int] | None:
    """The cheapest choice that is met in time."""
    return _Solver(problem, seconds, shortest=0.0).next_cover(required=False)


class _QuietHighs(highspy.Highs):
    """HiGHS without its banner, which the constructor prints as it enables callbacks."""

    def enableCallbacks(self) -> None:
        self.silent()
        super().enableCallbacks()  # type: ignore[no-untyped-call]


class _Solver:
    """The integer program; rows are added as covers are found or cut off."""

    def __init__(
        self, problem: Problem, seconds: float, shortest: float = _SHORTEST_SECONDS
    ) -> None:
        self._problem, self._shortest = problem, shortest
        self._model = _QuietHighs()  # type: ignore[no-untyped-call]
        self._end = time.monotonic() + seconds
        self._model.setOptionValue("mip_rel_gap", _GAP)
        self._model.setOptionValue("random_seed", 0)
        barred = set(problem.barred)
        for position, cost in enumerate(problem.weighed):
            upper = 0.0 if position in barred else 1.0
            self._model.addVar(0.0, upper)
            self._model.changeColCost(position, max(cost, _NOTHING_US))
            self._model.changeColIntegrality(position, highspy.HighsVarType.kInteger)
        self._add_production()

    def begin_with(self, chosen: Sequence[int] | None) -> None:
        """A choice to better: what is cut off by it need not be looked at, and where the time is
        short it is there."""
        if chosen is None:
            return
        start = highspy.HighsSolution()
        taken = frozenset(chosen)
        start.col_value = [float(p in taken) for p in range(len(self._problem.options))]
        self._model.setSolution(start)

    def next_cover(self, *, required: bool) -> list[int] | None:
        """The cheapest choice that no row forbids; None if there is none, or none was met in
        time and it is not `required`."""
        while True:
            left = max(self._end - time.monotonic(), self._shortest)
            chosen = self._solve(left, required=required)
            if chosen is None:
                return None
            circles = cycles(self._problem.edges(chosen))
            if not circles:
                return chosen
            for circle in circles:
                self._row(-highspy.kHighsInf, len(circle) - 1, dict.fromkeys(circle, 1.0))

    def _solve(self, seconds: float, *, required: bool) -> list[int] | None:
        """The best choice found. Where one is required and none was, a plain one; where there is
        no plain one either, more time is given until there is one."""
        model = self._model
        model.setOptionValue("time_limit", seconds)
        model.run()
        if model.getModelStatus() not in _FEASIBLE:
            return None
        if model.getInfo().primal_solution_status != highspy.SolutionStatus.kSolutionStatusFeasible:
            if not required:
                return None
            start = self._problem.start()
            return self._solve(10 * seconds, required=True) if start is None else start
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

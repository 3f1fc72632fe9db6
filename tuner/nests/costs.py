"""What groups cost: measured where something was measured, predicted elsewhere.

Measured times are lower quartiles (`Measurement.quiet_us`).

Predictions are corrected by the median of measured over predicted of like nests, and taken a little
low, so that a cover that looks good on paper gets measured.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from cost_models.model import CostModel
from kernel_gen.fusion.group import FrameworkGroup, FusionGroup
from kernel_gen.ir.loopnest import Contract
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure, Measurement
from tuner.covers.solver import CoverOption
from tuner.nests.search import NestSearch
from tuner.tasks import NestTask, Tasks

_OPTIMISM = 0.9
_MOST_CORRECTION = 2.0
_UNTIMED_US = 1e6  # of each framework part where none has a time: a kernel comes first
_HOPE = 0.5  # of the time of a nest never measured; the less of it the more trials there were
_HOPELESS_TRIALS = 4  # a nest without one right kernel after so many trials is given up


class CostBook:
    """Costs of all groups of a program, and the searches that find them."""

    def __init__(
        self,
        tasks: Tasks,
        target: Target,
        model: CostModel,
        make_search: Callable[[str], NestSearch],
    ) -> None:
        self._tasks = tasks
        self._target = target
        self._model = model
        self._make_search = make_search
        self._searches: dict[str, NestSearch] = {}
        self._predicted: dict[str, float] = {}
        self._library: dict[str, Measurement | Failure] = {}
        self._products = {digest for digest, task in tasks.nests.items() if _has_product(task)}
        self._factors = {True: 1.0, False: 1.0}
        self._corrected_at = 0

    def search(self, digest: str) -> NestSearch:
        """The search over a nest, made at its first use."""
        if digest not in self._searches:
            self._searches[digest] = self._make_search(digest)
        return self._searches[digest]

    @property
    def searches(self) -> dict[str, NestSearch]:
        """The searches begun so far."""
        return self._searches

    def add_library(self, digest: str, result: Measurement | Failure) -> None:
        """The time of a framework part."""
        self._library[digest] = result

    def library_us(self, group: FrameworkGroup) -> float | None:
        """Measured time of a framework group."""
        result = self._library.get(self._tasks.library_of[group])
        return result.quiet_us if isinstance(result, Measurement) else None

    def measured_us(self, digest: str) -> float | None:
        """Best measured time of a nest."""
        search = self._searches.get(digest)
        return search.best.quiet_us if search is not None and search.best is not None else None

    def incumbent_us(self, digest: str) -> float | None:
        """The median of the best kernel of a nest: one clearly slower may be given up early."""
        search = self._searches.get(digest)
        return search.best.median_us if search is not None and search.best is not None else None

    def predicted_us(self, digest: str) -> float:
        """What a good kernel of a nest should take, by the model."""
        if digest not in self._predicted:
            nest = self._tasks.nests[digest].nest
            self._predicted[digest] = self._model.predict_us(nest, None, self._target)
        return self._predicted[digest]

    def is_hopeless(self, digest: str) -> bool:
        """Whether no kernel of the nest was right and more trials are unlikely to help."""
        search = self._searches.get(digest)
        if search is None or search.best is not None:
            return False
        return search.is_empty or search.tried >= min(_HOPELESS_TRIALS, search.size)

    def cost_us(self, digest: str) -> float | None:
        """Measured or corrected predicted time; None for a nest that was given up."""
        measured = self.measured_us(digest)
        if measured is not None:
            return measured
        if self.is_hopeless(digest):
            return None
        return self.predicted_us(digest) * self._correction(digest) * _OPTIMISM

    def hoped_us(self, digest: str, cost_us: float) -> float:
        """What a nest that is held to take `cost_us` may take after more trials: half of it before
        the first one, three quarters after it, five sixths after two; or what the model holds a
        template to take that had none."""
        search = self._searches.get(digest)
        if search is None:
            return cost_us * (1 - _HOPE)
        hoped_us, untried_us = cost_us * (1 - _HOPE / (1 + search.tried)), search.untried_us()
        if untried_us is None:
            return hoped_us
        return min(hoped_us, untried_us * self._correction(digest) * _OPTIMISM)

    def options(self, *, measured_only: bool = False) -> list[CoverOption]:
        """Cover options for all groups that have a cost."""
        found: list[CoverOption] = []
        for candidate in self._tasks.candidates.groups:
            digest = candidate.task
            cost = self.measured_us(digest) if measured_only else self.cost_us(digest)
            if cost is not None:
                found.append(CoverOption(candidate.group, cost))
        return found + self.library_options()

    def library_options(self) -> list[CoverOption]:
        """Options for framework groups. One that was not timed counts as slow, not as free."""
        known = {g: self.library_us(g) for g in self._tasks.candidates.library}
        times = [time for time in known.values() if time is not None]
        slow = max(times, default=_UNTIMED_US)
        return [CoverOption(g, slow if time is None else time) for g, time in known.items()]

    def group_us(self, group: FusionGroup | FrameworkGroup) -> float | None:
        """Cost of any group of a cover; None where nothing is known, 0 for constant ones."""
        if isinstance(group, FusionGroup):
            return self.cost_us(self._tasks.candidate_of[group].task)
        if group not in self._tasks.library_of:
            return 0.0
        return self.library_us(group)

    def _correction(self, digest: str) -> float:
        return self._corrections()[digest in self._products]

    def _corrections(self) -> dict[bool, float]:
        """Per kind of nest, with a product or without: the factor from predicted to measured."""
        measured = sum(search.measured for search in self._searches.values())
        if self._corrected_at != measured:
            self._corrected_at = measured
            self._factors = {kind: self._factor(kind) for kind in (True, False)}
        return self._factors

    def _factor(self, with_product: bool) -> float:
        """Median of measured over predicted for nests of the kind, within limits: a factor of two
        at most, so that what was never tried still looks good enough to be tried."""
        ratios = [
            search.best.quiet_us / self.predicted_us(other)
            for other, search in self._searches.items()
            if search.best is not None
            and search.best.quiet_us is not None
            and (other in self._products) is with_product
        ]
        return min(_MOST_CORRECTION, statistics.median(ratios)) if ratios else 1.0


def _has_product(task: NestTask) -> bool:
    return any(isinstance(statement, Contract) for statement in task.nest.statements)

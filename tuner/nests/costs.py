"""What groups cost: measured where something was measured, predicted elsewhere.

Measured times are lower quartiles (`Measurement.quiet_us`), taken alone. In its place a group takes
at least what moving its operands to and from memory takes there (`tuner.covers.traffic`), and what
copying its results into inputs takes where its kernel does not make them there.

Predictions are corrected by what the best relative took of its own (`tuner.nests.relatives`), else
by the median of measured over predicted of like nests, and then taken a little low, so that a cover
that looks good on paper gets measured.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Collection, Iterable

from cost_models.model import CostModel
from cost_models.roofline import roofline_of
from kernel_gen.codegen.cpu.in_place import in_place_pairs
from kernel_gen.codegen.flat.linear import flatten
from kernel_gen.codegen.flat.simplify import simplify
from kernel_gen.fusion.group import FrameworkGroup, FusionGroup
from kernel_gen.fusion.write_back import written_by_torch
from kernel_gen.ir.loopnest import Contract, LoopNest, Reduce
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure, Measurement
from tuner.covers.solver import CoverOption
from tuner.covers.traffic import Traffic
from tuner.nests.relatives import relatives
from tuner.nests.search import NestSearch
from tuner.nests.space import Spot
from tuner.tasks import NestTask, Tasks

_OPTIMISM = 0.9
_MOST_CORRECTION = 2.0
_UNTIMED_US = 1e6  # of each framework part where none has a time: a kernel comes first
_HOPE = 0.5  # of the time of a nest never measured; the less of it the more trials there were
_NOISE = 0.02  # of a time: a relative that is no better than that has nothing to teach
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
        self._relatives = relatives({digest: task.nest for digest, task in tasks.nests.items()})
        self._by_torch = written_by_torch(tasks.program)
        self._over_inputs: dict[str, tuple[int, ...]] = {}  # by nest: its buffers
        *_, cache, memory = roofline_of(target).levels
        self._traffic = Traffic(tasks.program, cache.capacity_bytes, memory.bytes_per_second)

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
        """Measured or corrected predicted time, or what the tiling of a relative promises until it
        was tried; None for a nest that was given up."""
        measured = self.measured_us(digest)
        if measured is not None:
            shared = self._shared(digest)
            return measured if shared is None else shared[1]
        if self.is_hopeless(digest):
            return None
        return self.predicted_us(digest) * self._correction(digest)

    def is_related(self, digest: str) -> bool:
        """Whether a relative of the nest has a time."""
        return self._best_relative(digest) is not None

    def share_tilings(self, digests: Iterable[str]) -> None:
        """Each of these nests is to try what its best relative runs, where that promises more."""
        for digest in digests:
            shared = self._shared(digest)
            if shared is not None:
                self.search(digest).suggest(shared[0])

    def _shared(self, digest: str) -> tuple[Spot, float] | None:
        """What the best relative of a nest runs, if that was not tried here, with what it should
        take; None where its gain would be noise."""
        relative = self._best_relative(digest)
        best = None if relative is None else self._searches[relative].best
        if relative is None or best is None:
            return None
        measured, expected = self.measured_us(digest), self._expected_us(digest, relative)
        if measured is not None and expected >= (1 - _NOISE) * measured:
            return None
        spot = (best.template, best.point)
        return (spot, expected) if self.search(digest).is_new(spot) else None

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
        return min(hoped_us, untried_us * self._correction(digest))

    def options(self, *, measured_only: bool = False) -> list[CoverOption]:
        """Cover options for all groups that have a cost."""
        found: list[CoverOption] = []
        for candidate in self._tasks.candidates.groups:
            digest = candidate.task
            cost = self.measured_us(digest) if measured_only else self.cost_us(digest)
            if cost is not None:
                found.append(CoverOption(candidate.group, self._in_place_us(candidate.group, cost)))
        return found + self.library_options()

    def hopeful_options(self) -> list[CoverOption]:
        """The same if all nests take what they are hoped to."""
        found: list[CoverOption] = []
        for candidate in self._tasks.candidates.groups:
            cost = self.cost_us(candidate.task)
            if cost is not None:
                hoped = self.hoped_us(candidate.task, cost)
                found.append(
                    CoverOption(candidate.group, self._in_place_us(candidate.group, hoped))
                )
        return found + self.library_options()

    def library_options(self) -> list[CoverOption]:
        """Options for framework groups. One that was not timed counts as slow, not as free."""
        known = {g: self.library_us(g) for g in self._tasks.candidates.library}
        times = [time for time in known.values() if time is not None]
        slow = max(times, default=_UNTIMED_US)
        return [
            CoverOption(group, self._in_place_us(group, slow if time is None else time))
            for group, time in known.items()
        ]

    def group_us(self, group: FusionGroup | FrameworkGroup) -> float | None:
        """Cost of any group of a cover; None where nothing is known, 0 for constant ones."""
        if isinstance(group, FusionGroup):
            cost = self.cost_us(self._tasks.candidate_of[group].task)
        elif group not in self._tasks.library_of:
            return 0.0
        else:
            cost = self.library_us(group)
        return None if cost is None else self._in_place_us(group, cost)

    def _in_place_us(self, group: FusionGroup | FrameworkGroup, alone_us: float) -> float:
        in_place_us = max(alone_us, self._traffic.us(group))
        if not self._traffic.writes_back(group):
            return in_place_us
        return in_place_us + self._traffic.back_us(group, self._made_over_inputs(group))

    def _made_over_inputs(self, group: FusionGroup | FrameworkGroup) -> Collection[int]:
        """Results that are made in the memory of the inputs that they replace."""
        if isinstance(group, FrameworkGroup):
            return self._by_torch
        candidate = self._tasks.candidate_of[group]
        if candidate.task not in self._over_inputs:
            self._over_inputs[candidate.task] = outputs_over_inputs(candidate.lowered.nest)
        return [candidate.lowered.operands[n] for n in self._over_inputs[candidate.task]]

    def _correction(self, digest: str) -> float:
        relative = self._best_relative(digest)
        if relative is not None:
            return self._ratio(relative)
        return self._corrections()[digest in self._products] * _OPTIMISM

    def _best_relative(self, digest: str) -> str | None:
        """The measured relative that takes least of what is predicted."""
        timed = [other for other in self._relatives[digest] if self.measured_us(other) is not None]
        return min(timed, key=self._ratio, default=None)

    def _expected_us(self, digest: str, relative: str) -> float:
        """What a nest takes if the model is as far off as for its relative."""
        return self.predicted_us(digest) * self._ratio(relative)

    def _ratio(self, digest: str) -> float:
        """Measured over predicted."""
        measured = self.measured_us(digest)
        return math.inf if measured is None else measured / self.predicted_us(digest)

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


def outputs_over_inputs(nest: LoopNest) -> tuple[int, ...]:
    """Outputs that a kernel of this nest can make over inputs; those with reductions make none."""
    if any(isinstance(statement, Reduce | Contract) for statement in nest.statements):
        return ()
    return tuple(output for _, output in in_place_pairs(simplify(flatten(nest))))


def _has_product(task: NestTask) -> bool:
    return any(isinstance(statement, Contract) for statement in task.nest.statements)

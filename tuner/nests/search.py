"""The search over one nest: which point of which template's space to try next.

One in-memory Optuna study per nest (ask/tell) over the template and its parameters. Small spaces
are enumerated. Proposals of a batch come from four sources, duplicates skipped:

1. seeds: what is suggested; the best stored trials of the same nest; of each template's untuned
   starting points the best predicted; what the cost model makes of them step by step; those that it
   sees close;
2. steps: the incumbent with one parameter moved by one choice, the best predicted;
3. screened: the best of a random pool by the cost model;
4. sampler: Optuna's own suggestions (CMA-ES for one template, TPE where the template is a choice),
   without those that the cost model sees far behind the incumbent.

Steps and screened points are handed to the study as well, so its sampler learns from all of them.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from optuna.trial import Trial as OptunaTrial

from kernel_gen.codegen.template import Template
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.records import Trial
from kernel_gen.schedule.schedule import Schedule
from tuner.nests.space import NestSpace, Point, Predict, Spot
from tuner.nests.study import SpotStudy

_ENUMERATED = 48  # spaces up to this size are tried whole, best predicted first
_POOL = 32  # random points predicted per screened proposal
_CLIMB = 4  # steps from the best predicted point that are taken on the model's word
_ATTEMPTS = 5  # sampler suggestions per wanted one before its duplicates end the batch
_CLOSE = 1.5  # times the best: on a busy machine that may be luck
_KNOWN_SEEDS = 2  # best stored trials that are measured again at the start


@dataclass(frozen=True, slots=True)
class Proposal:
    """A point worth measuring. `number` is its trial's number within the nest's search."""

    number: int
    template: str
    point: Point
    schedule: Schedule
    predicted_us: float


class NestSearch:
    """Proposes points for one nest and learns from their trials.

    `history` are stored trials of the same nest and target: they inform the sampler and the best
    are measured again.
    """

    def __init__(
        self,
        nest: LoopNest,
        target: Target,
        templates: Sequence[Template],
        predict: Predict,
        seed: int = 0,
        history: Sequence[Trial] = (),
    ) -> None:
        self._space = NestSpace(nest, target, templates, predict)
        self._study = SpotStudy(self._space.by_template, seed)
        self._random = random.Random(seed)
        self._open: dict[int, OptunaTrial] = {}
        self._seen: set[Spot] = set()
        self._schedules: set[Schedule] = set()
        self._number = 0
        self.best: Trial | None = None
        self._timed: list[Trial] = []
        self._tried_templates: set[str] = set()
        self.measured = 0
        self.tried = 0
        self.exhausted = False  # the last call of `propose` found nothing new
        self.last_gain = 0.0  # relative improvement of the last batch that brought one
        self.promised_us: float | None = None  # the least that was predicted of a trial
        seeds = self._space.seeds()
        self._queue = self._known(history) + seeds[: len(self._space.by_template)]
        self._later = seeds  # once the first of each template is tried
        self._suggested: list[Spot] = []
        for trial in history:
            self._learn(trial)

    @property
    def is_empty(self) -> bool:
        """No template takes the nest."""
        return not self._space.by_template

    @property
    def size(self) -> int:
        """Points of all spaces together."""
        return self._space.size

    def suggest(self, spot: Spot) -> None:
        """A point of a like nest, to be tried next."""
        if self.is_new(spot) and spot not in self._suggested:
            self._suggested.append(spot)

    def is_new(self, spot: Spot) -> bool:
        """Whether a point lies in this nest's spaces and was not tried."""
        return spot not in self._seen and self._space.has(*spot)

    @property
    def has_suggestion(self) -> bool:
        """Whether a suggested point waits for its trial."""
        return bool(self._suggested)

    def propose(self, count: int) -> list[Proposal]:
        """Up to `count` new points; an empty list means that the spaces are exhausted."""
        found: list[Proposal] = []
        for spot, asked in self._candidates(count):
            proposal = self._admit(spot, asked)
            if proposal is not None:
                found.append(proposal)
            if len(found) == count:
                break
        self.exhausted = not found
        return found

    def record(self, trial: Trial) -> None:
        """Learn from the trial of a proposal."""
        asked = self._open.pop(trial.number, None)
        if asked is not None:
            self._study.tell(asked, trial.quiet_us)
        self._count(trial)

    def forget(self, proposal: Proposal) -> None:
        """A proposal was not tried; it may be proposed again."""
        asked = self._open.pop(proposal.number, None)
        if asked is not None:
            self._study.tell(asked, None)
        self._seen.discard((proposal.template, proposal.point))
        self._schedules.discard(proposal.schedule)

    def _count(self, trial: Trial) -> None:
        self.tried += 1
        promised = [us for us in (trial.predicted_us, self.promised_us) if us is not None]
        self.promised_us = min(promised, default=None)
        self._tried_templates.add(trial.template)
        value = trial.quiet_us
        if value is None:
            return
        self.measured += 1
        self._timed.append(trial)
        before = self.best.quiet_us if self.best is not None else None
        if before is None or value < before:
            self.last_gain = 0.0 if before is None else 1 - value / before
            self.best = trial
        else:
            self.last_gain *= 0.7

    def adopt(self, trials: Sequence[Trial]) -> None:
        """Take over what this job has tried before it was interrupted, as if tried now."""
        for trial in trials:
            self._number = max(self._number, trial.number + 1)
            if not self._space.holds(trial):
                continue
            self._new_schedule((trial.template, trial.point))
            self._learn(trial)
            self._count(trial)

    def runners_up(self, count: int) -> list[Trial]:
        """The next best trials, as far as they are close to the best one."""
        ranked = sorted(self._timed, key=lambda trial: trial.quiet_us or math.inf)
        limit = _CLOSE * (ranked[0].quiet_us or 0.0) if ranked else 0.0
        close = [t for t in ranked if t is not self.best and (t.quiet_us or math.inf) <= limit]
        return close[:count]

    def untried_us(self) -> float | None:
        """What the model holds the best of those templates to take that had no trial yet; None once
        each had one. A template's first guess tells little of another's."""
        guesses = [
            self._space.predicted_us(schedule)
            for spot in self._queue
            if spot[0] not in self._tried_templates
            and (schedule := self._space.schedule(spot)) is not None
        ]
        return min(guesses, default=None)

    def schedule_of(self, trial: Trial) -> Schedule | None:
        """The decisions of a trial's point; None if its template is gone or refuses it now."""
        return self._space.schedule((trial.template, trial.point))

    def _candidates(self, count: int) -> Iterator[tuple[Spot, OptunaTrial | None]]:
        while self._suggested:
            yield self._suggested.pop(0), None
        while self._queue or self._later:
            if not self._queue:
                self._queue, self._later = self._guesses(self._later), []
            yield from self._queued()
        if self.size <= _ENUMERATED:
            yield from ((spot, None) for spot in self._unseen(self._space.everything()))
            return
        share = max(1, count // 3)
        yield from ((spot, None) for spot in itertools.islice(self._steps(), share))
        yield from ((spot, None) for spot in self._screened(share))
        yield from self._sampled(count)

    def _queued(self) -> Iterator[tuple[Spot, OptunaTrial | None]]:
        while self._queue:
            yield self._queue.pop(0), None

    def _sampled(self, count: int) -> Iterator[tuple[Spot, OptunaTrial | None]]:
        """The sampler's suggestions, those far behind the incumbent last."""
        behind: list[Spot] = []
        for _ in range(_ATTEMPTS * count):
            spot, asked = self._study.ask()
            if self.best is not None and self._space.is_behind(spot, _spot_of(self.best)):
                self._study.tell(asked, None)
                behind.append(spot)
            else:
                yield spot, asked
        yield from ((spot, None) for spot in self._unseen(behind))

    def _admit(self, spot: Spot, asked: OptunaTrial | None) -> Proposal | None:
        """A proposal, or None for duplicates and points whose choices do not go together."""
        schedule = self._new_schedule(spot)
        if schedule is None:
            if asked is not None:
                self._study.tell(asked, None)
            return None
        number, self._number = self._number, self._number + 1
        self._open[number] = self._study.ask_for(spot) if asked is None else asked
        return Proposal(number, *spot, schedule, self._space.predicted_us(schedule))

    def _new_schedule(self, spot: Spot) -> Schedule | None:
        if spot in self._seen:
            return None
        self._seen.add(spot)
        made = self._space.schedule(spot)
        if made is None or made in self._schedules:
            return None
        self._schedules.add(made)
        return made

    def _known(self, history: Sequence[Trial]) -> list[Spot]:
        """The best stored trials."""
        held = [t for t in history if t.quiet_us is not None and self._space.holds(t)]
        held.sort(key=lambda trial: trial.quiet_us or 0.0)
        return [_spot_of(trial) for trial in held[:_KNOWN_SEEDS]]

    def _guesses(self, seeds: Sequence[Spot]) -> list[Spot]:
        """Where the model leads to from the best of the seeds and of random points, then the seeds
        that it does not see far behind that."""
        if self.size <= _ENUMERATED:
            return list(seeds)
        pool = [self._space.random_spot(self._random) for _ in range(_POOL)]
        ranked = self._space.by_prediction([*seeds, *pool])
        if not ranked:
            return []
        top = self._space.climbed(ranked[0], _CLIMB)
        return [top, *(seed for seed in seeds if not self._space.is_behind(seed, top))]

    def _learn(self, trial: Trial) -> None:
        if trial.quiet_us is not None and self._space.holds(trial):
            self._study.learn((trial.template, trial.point), trial.quiet_us)

    def _steps(self) -> Iterator[Spot]:
        """Neighbours of the incumbent, the better predicted first."""
        if self.best is None or not self._space.holds(self.best):
            return
        near = self._space.neighbours(_spot_of(self.best))
        self._random.shuffle(near)
        yield from self._unseen(near)

    def _screened(self, count: int) -> list[Spot]:
        """The better predicted ones of random points."""
        pool = {self._space.random_spot(self._random) for _ in range(_POOL * count)}
        return self._unseen(sorted(pool, key=repr))[:count]

    def _unseen(self, spots: Sequence[Spot]) -> list[Spot]:
        """Points that have not been tried, the better predicted first."""
        return self._space.by_prediction([spot for spot in spots if spot not in self._seen])


def _spot_of(trial: Trial) -> Spot:
    return trial.template, trial.point

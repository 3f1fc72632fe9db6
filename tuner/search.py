"""The search over one nest: which point of which template's space to try next.

One in-memory Optuna study per nest (ask/tell) over the template and its parameters. Small spaces
are enumerated. Proposals of a batch come from four sources, duplicates skipped:

1. seeds: the templates' untuned starting points and the best stored trials of the same nest;
2. steps: the incumbent with one parameter moved by one choice;
3. screened: the best of a random pool by the cost model;
4. sampler: Optuna's own suggestions (CMA-ES for one template, TPE where the template is a choice).

Steps and screened points are handed to the study as well, so its sampler learns from all of them.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import Trial as OptunaTrial
from optuna.trial import TrialState, create_trial

from kernel_gen.codegen.template import Template
from kernel_gen.errors import Refusal
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.records import Trial
from kernel_gen.schedule.schedule import Choice, Schedule, Space

_ENUMERATED = 48  # spaces up to this size are tried whole, best predicted first
_POOL = 6  # random points predicted per screened proposal
_ATTEMPTS = 5  # sampler suggestions per wanted one before its duplicates end the batch
_FAR_BEHIND = 5.0  # times the best template's first guess: not worth a trial
_CLOSE = 1.5  # times the best: on a busy machine that may be luck
_KNOWN_SEEDS = 2  # best stored trials that are measured again at the start

Point = tuple[tuple[str, Choice], ...]
Predict = Callable[[LoopNest, Schedule, Target], float]


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
        self._nest, self._target, self._predict = nest, target, predict
        taking = self._promising(templates)
        self._templates = {template.name: template for template in taking}
        self._spaces = {t.name: t.space(nest, target) for t in taking}
        self._random = random.Random(seed)
        self._study = _new_study(self._spaces, seed)
        self._open: dict[int, OptunaTrial] = {}
        self._seen: set[tuple[str, Point]] = set()
        self._schedules: set[Schedule] = set()
        self._number = 0
        self.best: Trial | None = None
        self._timed: list[Trial] = []
        self.measured = 0
        self.tried = 0
        self.exhausted = False  # the last call of `propose` found nothing new
        self.last_gain = 0.0  # relative improvement of the last batch that brought one
        self._queue = self._starting_points(history)
        for trial in history:
            self._learn(trial)

    def _promising(self, templates: Sequence[Template]) -> list[Template]:
        """Templates that take the nest, without those that the model sees far behind."""
        nest, target = self._nest, self._target
        taking = [t for t in templates if t.refuse(nest, target) is None]
        first = {t.name: self._first_guess_us(t) for t in taking}
        limit = _FAR_BEHIND * min(first.values(), default=math.inf)
        return [t for t in taking if first[t.name] <= limit]

    def _first_guess_us(self, template: Template) -> float:
        """Prediction for the template's first seed."""
        seed = dict(template.space(self._nest, self._target).seeds[0])
        made = template.schedule(self._nest, self._target, seed)
        return (
            math.inf if isinstance(made, Refusal) else self._predict(self._nest, made, self._target)
        )

    @property
    def is_empty(self) -> bool:
        """No template takes the nest."""
        return not self._templates

    @property
    def size(self) -> int:
        """Points of all spaces together."""
        return sum(space.size() for space in self._spaces.values())

    def propose(self, count: int) -> list[Proposal]:
        """Up to `count` new points; an empty list means that the spaces are exhausted."""
        found: list[Proposal] = []
        for template, point, asked in self._candidates(count):
            proposal = self._admit(template, point, asked)
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
            state = None if trial.quiet_us is not None else TrialState.FAIL
            self._study.tell(asked, trial.quiet_us, state)
        self._count(trial)

    def forget(self, proposal: Proposal) -> None:
        """A proposal was not tried; it may be proposed again."""
        asked = self._open.pop(proposal.number, None)
        if asked is not None:
            self._study.tell(asked, state=TrialState.FAIL)
        self._seen.discard((proposal.template, proposal.point))
        self._schedules.discard(proposal.schedule)

    def _count(self, trial: Trial) -> None:
        self.tried += 1
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
            if not self._fits(trial):
                continue
            self._new_schedule(trial.template, trial.point)
            self._learn(trial)
            self._count(trial)

    def runners_up(self, count: int) -> list[Trial]:
        """The next best trials, as far as they are close to the best one."""
        ranked = sorted(self._timed, key=lambda trial: trial.quiet_us or math.inf)
        limit = _CLOSE * (ranked[0].quiet_us or 0.0) if ranked else 0.0
        close = [t for t in ranked if t is not self.best and (t.quiet_us or math.inf) <= limit]
        return close[:count]

    def schedule_of(self, trial: Trial) -> Schedule | None:
        """The decisions of a trial's point; None if its template is gone or refuses it now."""
        template = self._templates.get(trial.template)
        if template is None:
            return None
        made = template.schedule(self._nest, self._target, dict(trial.point))
        return None if isinstance(made, Refusal) else made

    def _candidates(self, count: int) -> Iterator[tuple[str, Point, OptunaTrial | None]]:
        while self._queue:
            yield (*self._queue.pop(0), None)
        if self.size <= _ENUMERATED:
            yield from ((*found, None) for found in self._enumerated())
            return
        share = max(1, count // 3)
        yield from ((*found, None) for found in itertools.islice(self._steps(), share))
        yield from ((*found, None) for found in self._screened(share))
        for _ in range(_ATTEMPTS * count):
            asked = self._study.ask()
            yield (*self._suggest(asked), asked)

    def _admit(self, template: str, point: Point, asked: OptunaTrial | None) -> Proposal | None:
        """A proposal, or None for duplicates and points whose choices do not go together."""
        schedule = self._new_schedule(template, point)
        if schedule is None:
            if asked is not None:
                self._study.tell(asked, state=TrialState.FAIL)
            return None
        if asked is None:
            self._study.enqueue_trial(self._encode(template, point))
            asked = self._study.ask()
            self._suggest(asked)
        number, self._number = self._number, self._number + 1
        self._open[number] = asked
        predicted = self._predict(self._nest, schedule, self._target)
        return Proposal(number, template, point, schedule, predicted)

    def _new_schedule(self, template: str, point: Point) -> Schedule | None:
        if (template, point) in self._seen:
            return None
        self._seen.add((template, point))
        made = self._templates[template].schedule(self._nest, self._target, dict(point))
        if isinstance(made, Refusal) or made in self._schedules:
            return None
        self._schedules.add(made)
        return made

    def _starting_points(self, history: Sequence[Trial]) -> list[tuple[str, Point]]:
        known = sorted(
            (t for t in history if t.quiet_us is not None and self._fits(t)),
            key=lambda trial: trial.quiet_us or 0.0,
        )
        points = [(trial.template, trial.point) for trial in known[:_KNOWN_SEEDS]]
        seeds = [
            [(name, tuple(seed)) for seed in space.seeds] for name, space in self._spaces.items()
        ]
        for layer in itertools.zip_longest(*seeds):
            points += [entry for entry in layer if entry is not None]
        return points

    def _learn(self, trial: Trial) -> None:
        value = trial.quiet_us
        if value is None or not self._fits(trial):
            return
        params = self._encode(trial.template, trial.point)
        distributions = self._distributions(trial.template)
        self._study.add_trial(create_trial(params=params, distributions=distributions, value=value))

    def _fits(self, trial: Trial) -> bool:
        """Whether a stored trial's point still lies in its template's space."""
        space = self._spaces.get(trial.template)
        if space is None:
            return False
        point = dict(trial.point)
        names = {parameter.name for parameter in space.parameters}
        return set(point) == names and all(
            point[parameter.name] in parameter.choices for parameter in space.parameters
        )

    def _enumerated(self) -> Iterator[tuple[str, Point]]:
        everything = [
            (name, point) for name, space in self._spaces.items() for point in _all_points(space)
        ]
        yield from self._by_prediction([p for p in everything if p not in self._seen])

    def _steps(self) -> Iterator[tuple[str, Point]]:
        """Neighbours of the incumbent, the better predicted first."""
        if self.best is None or not self._fits(self.best):
            return
        template, point = self.best.template, dict(self.best.point)
        near: list[tuple[str, Point]] = []
        for parameter in self._spaces[template].parameters:
            place = parameter.choices.index(point[parameter.name])
            for other in (place - 1, place + 1):
                if 0 <= other < len(parameter.choices):
                    moved = point | {parameter.name: parameter.choices[other]}
                    near.append((template, self._ordered(template, moved)))
        self._random.shuffle(near)
        yield from self._by_prediction([p for p in near if p not in self._seen])

    def _screened(self, count: int) -> list[tuple[str, Point]]:
        names = list(self._spaces)
        pool = {self._random_point(self._random.choice(names)) for _ in range(_POOL * count)}
        return self._by_prediction(sorted(pool - self._seen, key=repr))[:count]

    def _random_point(self, template: str) -> tuple[str, Point]:
        parameters = self._spaces[template].parameters
        return template, tuple((p.name, self._random.choice(p.choices)) for p in parameters)

    def _by_prediction(self, points: Sequence[tuple[str, Point]]) -> list[tuple[str, Point]]:
        """Points that make a schedule, fastest predicted first."""
        ranked: list[tuple[float, int]] = []
        for place, (template, point) in enumerate(points):
            made = self._templates[template].schedule(self._nest, self._target, dict(point))
            if not isinstance(made, Refusal):
                ranked.append((self._predict(self._nest, made, self._target), place))
        return [points[place] for _, place in sorted(ranked)]

    def _suggest(self, asked: OptunaTrial) -> tuple[str, Point]:
        names = list(self._spaces)
        template = names[0]
        if len(names) > 1:
            template = asked.suggest_categorical("template", names)
        point = tuple(
            (p.name, p.choices[asked.suggest_int(f"{template}.{p.name}", 0, len(p.choices) - 1)])
            for p in self._spaces[template].parameters
        )
        return template, point

    def _ordered(self, template: str, point: dict[str, Choice]) -> Point:
        return tuple((p.name, point[p.name]) for p in self._spaces[template].parameters)

    def _encode(self, template: str, point: Point) -> dict[str, Choice]:
        """Optuna's parameters of a point: choices by position."""
        chosen = dict(point)
        encoded: dict[str, Choice] = {
            f"{template}.{p.name}": p.choices.index(chosen[p.name])
            for p in self._spaces[template].parameters
        }
        return encoded | ({"template": template} if len(self._spaces) > 1 else {})

    def _distributions(self, template: str) -> dict[str, BaseDistribution]:
        found: dict[str, BaseDistribution] = {
            f"{template}.{p.name}": IntDistribution(0, len(p.choices) - 1)
            for p in self._spaces[template].parameters
        }
        if len(self._spaces) > 1:
            found["template"] = CategoricalDistribution(list(self._spaces))
        return found


def _all_points(space: Space) -> Iterator[Point]:
    names = [parameter.name for parameter in space.parameters]
    for choices in itertools.product(*(parameter.choices for parameter in space.parameters)):
        yield tuple(zip(names, choices, strict=True))


def _new_study(spaces: dict[str, Space], seed: int) -> optuna.Study:
    """CMA-ES searches one numeric space well and cheaply; a choice of template needs TPE."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler: optuna.samplers.BaseSampler
    if len(spaces) == 1:
        sampler = optuna.samplers.CmaEsSampler(
            seed=seed, n_startup_trials=4, warn_independent_sampling=False
        )
    else:
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=6, multivariate=True, constant_liar=True
        )
    return optuna.create_study(sampler=sampler)

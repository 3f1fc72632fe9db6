"""The points that a search over one nest can try: the spaces of the templates that take it."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence

from kernel_gen.codegen.template import Template
from kernel_gen.errors import Refusal
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.records import Trial
from kernel_gen.schedule.schedule import Choice, Schedule, Space

_FAR_BEHIND = 5.0  # times the best template's best starting point: not worth a trial
_BEHIND = 1.5  # times another point of the same nest: errors of the model are half of that
_WORTH_A_STEP = 0.99  # of the time before it

Point = tuple[tuple[str, Choice], ...]
Spot = tuple[str, Point]  # a template's name and a point of its space
Predict = Callable[[LoopNest, Schedule, Target], float]


class NestSpace:
    """The spaces, by template, of those that the model does not see far behind."""

    def __init__(
        self, nest: LoopNest, target: Target, templates: Sequence[Template], predict: Predict
    ) -> None:
        self._nest, self._target, self._predict = nest, target, predict
        taking = {t.name: t for t in templates if t.refuse(nest, target) is None}
        self._templates = taking
        self.by_template: dict[str, Space] = {n: t.space(nest, target) for n, t in taking.items()}
        for name in self._far_behind():
            del taking[name], self.by_template[name]

    def _far_behind(self) -> list[str]:
        """Templates whose starting points the model sees far behind another one's."""
        best = {
            name: min(self._spot_us((name, tuple(seed))) for seed in space.seeds)
            for name, space in self.by_template.items()
        }
        limit = _FAR_BEHIND * min(best.values(), default=math.inf)
        return [name for name, us in best.items() if us > limit]

    @property
    def size(self) -> int:
        """Points of all spaces together."""
        return sum(space.size() for space in self.by_template.values())

    def predicted_us(self, schedule: Schedule) -> float:
        """What the model says of a schedule."""
        return self._predict(self._nest, schedule, self._target)

    def schedule(self, spot: Spot) -> Schedule | None:
        """The decisions of a point; None where its template is none of these or refuses it."""
        name, point = spot
        template = self._templates.get(name)
        if template is None:
            return None
        made = template.schedule(self._nest, self._target, dict(point))
        return None if isinstance(made, Refusal) else made

    def holds(self, trial: Trial) -> bool:
        """Whether a stored trial's point still lies in its template's space."""
        return self.has(trial.template, trial.point)

    def has(self, template: str, point: Point) -> bool:
        """Whether a point lies in a template's space."""
        space = self.by_template.get(template)
        if space is None:
            return False
        chosen = dict(point)
        names = {parameter.name for parameter in space.parameters}
        return set(chosen) == names and all(
            chosen[parameter.name] in parameter.choices for parameter in space.parameters
        )

    def seeds(self) -> list[Spot]:
        """The templates' untuned starting points, the best predicted of each first; in the
        templates' own order where the model tells no difference."""
        seeds = [
            self.by_prediction([(name, tuple(seed)) for seed in space.seeds])
            for name, space in self.by_template.items()
        ]
        layers = itertools.zip_longest(*seeds)
        return [spot for layer in layers for spot in layer if spot is not None]

    def climbed(self, spot: Spot, rounds: int) -> Spot:
        """Where steps of one parameter each lead that the model holds to pay."""
        us = self._spot_us(spot)
        for _ in range(rounds):
            near = [(self._spot_us(other), other) for other in self.neighbours(spot)]
            best_us, best = min(near, key=lambda found: found[0], default=(math.inf, spot))
            if best_us > _WORTH_A_STEP * us:
                break
            us, spot = best_us, best
        return spot

    def _spot_us(self, spot: Spot) -> float:
        """What the model says of a point; infinite where it makes no schedule."""
        made = self.schedule(spot)
        return math.inf if made is None else self.predicted_us(made)

    def everything(self) -> list[Spot]:
        """All points of all spaces."""
        return [
            (name, point) for name, space in self.by_template.items() for point in _points(space)
        ]

    def neighbours(self, spot: Spot) -> list[Spot]:
        """The point with one parameter moved by one choice."""
        template, chosen = spot[0], dict(spot[1])
        parameters = self.by_template[template].parameters
        near: list[Spot] = []
        for parameter in parameters:
            place = parameter.choices.index(chosen[parameter.name])
            for other in (place - 1, place + 1):
                if 0 <= other < len(parameter.choices):
                    moved = chosen | {parameter.name: parameter.choices[other]}
                    near.append((template, tuple((p.name, moved[p.name]) for p in parameters)))
        return near

    def random_spot(self, source: random.Random) -> Spot:
        """A point of a random template."""
        template = source.choice(list(self.by_template))
        parameters = self.by_template[template].parameters
        return template, tuple((p.name, source.choice(p.choices)) for p in parameters)

    def by_prediction(self, spots: Sequence[Spot]) -> list[Spot]:
        """Points that make a schedule, fastest predicted first."""
        ranked = sorted((self._spot_us(spot), place) for place, spot in enumerate(spots))
        return [spots[place] for us, place in ranked if us < math.inf]

    def is_behind(self, spot: Spot, other: Spot) -> bool:
        """Whether the model sees a point so far behind another that it is not worth a trial."""
        us = self._spot_us(spot)
        return us < math.inf and us > _BEHIND * self._spot_us(other)


def _points(space: Space) -> Iterator[Point]:
    names = [parameter.name for parameter in space.parameters]
    for choices in itertools.product(*(parameter.choices for parameter in space.parameters)):
        yield tuple(zip(names, choices, strict=True))

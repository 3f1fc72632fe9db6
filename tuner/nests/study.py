"""An Optuna study over the points of a nest's spaces; a choice is a number by its position."""

from __future__ import annotations

from collections.abc import Mapping

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import Trial as OptunaTrial
from optuna.trial import TrialState, create_trial

from kernel_gen.schedule.schedule import Choice, Space
from tuner.nests.space import Spot


class SpotStudy:
    """Asks for points and is told times, over the template and its parameters."""

    def __init__(self, spaces: Mapping[str, Space], seed: int) -> None:
        self._spaces = spaces
        self._study = optuna.create_study(sampler=_sampler(len(spaces), seed))

    def ask(self) -> tuple[Spot, OptunaTrial]:
        """A point of the sampler's own, and what to tell its time for."""
        asked = self._study.ask()
        return self._suggested(asked), asked

    def ask_for(self, spot: Spot) -> OptunaTrial:
        """What to tell the time of a point for that comes from elsewhere."""
        self._study.enqueue_trial(self._encoded(spot))
        asked = self._study.ask()
        self._suggested(asked)
        return asked

    def tell(self, asked: OptunaTrial, value_us: float | None) -> None:
        """The time of a point; None where it failed or was not tried."""
        self._study.tell(asked, value_us, TrialState.FAIL if value_us is None else None)

    def learn(self, spot: Spot, value_us: float) -> None:
        """The time of a point that was not asked for."""
        params, distributions = self._encoded(spot), self._distributions(spot[0])
        trial = create_trial(params=params, distributions=distributions, value=value_us)
        self._study.add_trial(trial)

    def _suggested(self, asked: OptunaTrial) -> Spot:
        names = list(self._spaces)
        template = names[0]
        if len(names) > 1:
            template = asked.suggest_categorical("template", names)
        point = tuple(
            (p.name, p.choices[asked.suggest_int(f"{template}.{p.name}", 0, len(p.choices) - 1)])
            for p in self._spaces[template].parameters
        )
        return template, point

    def _encoded(self, spot: Spot) -> dict[str, Choice]:
        """Optuna's parameters of a point."""
        template, chosen = spot[0], dict(spot[1])
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


def _sampler(spaces: int, seed: int) -> optuna.samplers.BaseSampler:
    """CMA-ES searches one numeric space well and cheaply; a choice of template needs TPE."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if spaces == 1:
        return optuna.samplers.CmaEsSampler(
            seed=seed, n_startup_trials=4, warn_independent_sampling=False
        )
    return optuna.samplers.TPESampler(
        seed=seed, n_startup_trials=6, multivariate=True, constant_liar=True
    )

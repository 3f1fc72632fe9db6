"""What a job may still spend."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from kernel_gen.records import Budget


class Meter:
    """Counts seconds and trials against a budget; earlier attempts of the job count, too."""

    def __init__(
        self,
        budget: Budget,
        spent_seconds: float = 0.0,
        spent_trials: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.budget = budget
        self._clock = clock
        self._start = clock() - spent_seconds
        self.trials = spent_trials

    @property
    def spent_seconds(self) -> float:
        return self._clock() - self._start

    @property
    def remaining_seconds(self) -> float:
        """Seconds left, 0 when the budget is spent."""
        return max(0.0, self.budget.seconds - self.spent_seconds)

    @property
    def remaining_trials(self) -> float:
        """Trials left; infinite where the budget does not count them."""
        if self.budget.trials is None:
            return math.inf
        return max(0, self.budget.trials - self.trials)

    def count(self, trials: int) -> None:
        """These trials have been made."""
        self.trials += trials

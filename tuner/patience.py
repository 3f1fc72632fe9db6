"""Waiting for a database that is away: restarted, cut off, or on a disk that is full for now."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import tenacity

from kernel_gen.errors import Unavailable

log = logging.getLogger(__name__)
_LONGEST_PAUSE_SECONDS = 2.0
Result = TypeVar("Result")


class StoreAway(Unavailable):
    """The store could not be reached for as long as was waited: the job itself is not to blame."""


class Patience:
    """Repeats work on the store for up to `seconds` while its database does not answer.

    The work must be harmless when repeated: whether a commit arrived may be unknown. `hurry` is
    asked between attempts whether there is no time left to wait.
    """

    def __init__(self, seconds: float, hurry: Callable[[], bool] = lambda: False) -> None:
        self._seconds, self._hurry = seconds, hurry

    def __call__(self, work: Callable[[], Result]) -> Result:
        """What `work` gives; raises StoreAway where it raised Unavailable to the end."""
        attempts = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(Unavailable),
            stop=self._ends,
            wait=tenacity.wait_exponential(multiplier=0.1, max=_LONGEST_PAUSE_SECONDS),
            before_sleep=_say,
            reraise=True,
        )
        try:
            return attempts(work)
        except Unavailable as error:
            raise StoreAway(str(error)) from error

    def _ends(self, state: tenacity.RetryCallState) -> bool:
        waited = state.seconds_since_start or 0.0
        return self._hurry() or waited >= self._seconds


IMPATIENT = Patience(0.0)


def _say(state: tenacity.RetryCallState) -> None:
    if state.attempt_number == 1 and state.outcome is not None:
        log.warning("waiting for the store: %s", state.outcome.exception())

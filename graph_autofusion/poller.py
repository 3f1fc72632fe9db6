"""Waits in the background for a plan that a service works on."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable

from graph_autofusion.resolution import Resolution
from kernel_gen.errors import GafError

log = logging.getLogger("graph_autofusion")
_FIRST_SECONDS = 0.2
_LONGEST_SECONDS = 2.0


class Poller:
    """Asks for a plan in a daemon thread, so that no call of the user's waits for the network.

    The thread ends with an answer, or when the poller is dropped.
    """

    def __init__(self, ask: Callable[[], Resolution | None]) -> None:
        """`ask` gives None while the plan is pending; it must not hold the poller."""
        self._answer: list[Resolution] = []
        stop = threading.Event()
        weakref.finalize(self, stop.set)
        threading.Thread(
            target=_ask_until, args=(ask, self._answer, stop), name="gaf-poller", daemon=True
        ).start()

    def poll(self) -> Resolution | None:
        """The answer, once there is one."""
        return self._answer[0] if self._answer else None


def _ask_until(
    ask: Callable[[], Resolution | None], answer: list[Resolution], stop: threading.Event
) -> None:
    pause = _FIRST_SECONDS
    while not stop.wait(pause):
        pause = min(1.5 * pause, _LONGEST_SECONDS)
        try:
            found = ask()
        except (GafError, OSError) as error:
            log.info("no answer on a pending plan yet: %s", error)
            continue
        if found is not None:
            answer.append(found)
            return

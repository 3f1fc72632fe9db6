"""Keeps a model from running in one thread while another thread captures it.

torch.export traces a model with stand-ins in the place of its parameters; whoever reads these in
the meantime gets the stand-ins.
"""

from __future__ import annotations

import threading
from collections import Counter


class Gate:
    """Any number of threads run the model, or one captures it. A capture that waits goes first,
    except before threads that are inside the model already."""

    def __init__(self) -> None:
        self._changed = threading.Condition(threading.Lock())
        self._inside: Counter[int] = Counter()  # thread -> depth
        self._capturing: int | None = None

    def enter(self) -> None:
        """Before a run of the model; `leave` ends it."""
        me = threading.get_ident()
        with self._changed:
            while self._capturing not in (None, me) and not self._inside[me]:
                self._changed.wait()
            self._inside[me] += 1

    def leave(self) -> None:
        me = threading.get_ident()
        with self._changed:
            self._inside[me] -= 1
            if not self._inside[me]:
                del self._inside[me]
            if self._capturing is not None:
                self._changed.notify_all()

    def close(self) -> None:
        """Before a capture: waits until no other thread is inside; `open` ends it."""
        me = threading.get_ident()
        with self._changed:
            while self._capturing not in (None, me):
                self._changed.wait()
            self._capturing = me
            while any(thread != me and depth for thread, depth in self._inside.items()):
                self._changed.wait()

    def open(self) -> None:
        with self._changed:
            self._capturing = None
            self._changed.notify_all()

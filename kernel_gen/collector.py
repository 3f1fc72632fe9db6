"""How often Python looks for garbage.

Modules, and what a capture makes, are hundreds of thousands of objects that stay. Python goes
through them again and again while they are made, which is a quarter of the time that torch takes to
be imported, and once more when the process ends.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

_SELDOM = (50_000, 20, 50)


def collect_seldom() -> None:
    """For a process of this project's own, before it imports much: garbage is looked for seldom,
    and not at its end."""
    gc.set_threshold(*_SELDOM)
    atexit.register(gc.freeze)


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """A block in an application's process, one at a time. Thresholds that are higher, or none at
    all, stay as they are."""
    kept = gc.get_threshold()
    if 0 < kept[0] < _SELDOM[0]:
        gc.set_threshold(*_SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*kept)

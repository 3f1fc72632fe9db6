"""Whether other programs use this machine's cores: what is measured beside them says little."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STAT = Path("/proc/stat")
_WATCHED_SECONDS = 0.2
_BUSY = 0.25  # of the cores' time: from there on other work is felt


def other_work() -> str:
    """What keeps this process's cores busy while it waits for a moment, as the start of a sentence;
    empty for an idle machine, or where nothing is known."""
    before = _ticks()
    time.sleep(_WATCHED_SECONDS)
    idle, total = (now - then for now, then in zip(_ticks(), before, strict=True))
    share = 1 - idle / total if total > 0 else 0.0
    if share < _BUSY:
        return ""
    cores = len(os.sched_getaffinity(0))
    return f"this machine is busy ({share:.0%} of {cores} cores)"


def _ticks() -> tuple[int, int]:
    """Clock ticks without work, and all, of the cores that this process may use (proc_stat(5))."""
    names = {f"cpu{core}" for core in os.sched_getaffinity(0)}
    idle = total = 0
    for line in _lines():
        name, *fields = line.split()
        if name in names:
            ticks = [int(field) for field in fields[:8]]  # up to steal; guests are in user
            idle += ticks[3] + ticks[4]
            total += sum(ticks)
    return idle, total


def _lines() -> list[str]:
    try:
        return _STAT.read_text().splitlines()
    except OSError:
        return []

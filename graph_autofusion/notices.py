"""Warnings that a program runs in the framework: one for each reason."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

_OURS = str(Path(__file__).parent)


class GafWarning(UserWarning):
    """A program runs in the framework although a plan was asked for; the message says why."""


class Notices:
    """What a model's user has been told."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def once(self, reason: str) -> None:
        """Warns unless it has, and points at the line that called into this package."""
        if reason not in self._told:
            self._told.add(reason)
            warnings.warn(f"running in the framework: {reason}", GafWarning, _caller_level())


def _caller_level() -> int:
    """How many frames above `once` the first one outside of this package is."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        level, frame = level + 1, frame.f_back
    return level

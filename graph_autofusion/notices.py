"""Warnings that a program runs in the framework: one for each reason."""

from __future__ import annotations

import warnings


class GafWarning(UserWarning):
    """A program runs in the framework although a plan was asked for; the message says why."""


class Notices:
    """What a model's user has been told."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def once(self, reason: str, level: int) -> None:
        """Warns unless it has; `level` is how many frames above lies the line to point at."""
        if reason not in self._told:
            self._told.add(reason)
            warnings.warn(f"running in the framework: {reason}", GafWarning, stacklevel=level)

"""Where a session reads what is known and writes what it finds out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kernel_gen.records import Trial
from tuner.tasks import NestTask

EventData = Mapping[str, object]


class Archive(Protocol):
    """A job's side of the store. Whatever a call returns from is kept."""

    def known(self, digest: str) -> Sequence[Trial]:
        """Measured trials of a nest on this target from other jobs, fastest first."""

    def resumed(self) -> Sequence[Trial]:
        """Trials that earlier attempts of this job have stored."""

    def add_nests(self, nests: Sequence[NestTask]) -> None:
        """Nests whose trials will follow."""

    def add_trials(self, trials: Sequence[Trial]) -> None:
        """Trials of this job."""

    def event(self, kind: str, data: EventData) -> None:
        """A line of the job's history."""


class MemoryArchive:
    """Keeps everything in this process: for tests, replays and single searches."""

    def __init__(self, known: Sequence[Trial] = (), resumed: Sequence[Trial] = ()) -> None:
        self._known = list(known)
        self._resumed = list(resumed)
        self.nests: list[NestTask] = []
        self.trials: list[Trial] = []
        self.events: list[tuple[str, dict[str, object]]] = []

    def known(self, digest: str) -> Sequence[Trial]:
        return [trial for trial in self._known if trial.group == digest]

    def resumed(self) -> Sequence[Trial]:
        return self._resumed

    def add_nests(self, nests: Sequence[NestTask]) -> None:
        self.nests.extend(nests)

    def add_trials(self, trials: Sequence[Trial]) -> None:
        self.trials.extend(trials)

    def event(self, kind: str, data: EventData) -> None:
        self.events.append((kind, dict(data)))

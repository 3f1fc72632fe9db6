"""What an ablation has found, line by line in a file: one that was cut goes on with it.

{"kind": "Begun", …}      a strategy's search begins: what was tried before belongs to others
{"kind": "Trial", …}      a kernel of it
{"kind": "Row", …}        what came of it
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.ablation.measure import Row
from kernel_gen.codec import from_json, to_json
from kernel_gen.errors import InvalidInput
from kernel_gen.records import Trial, TrialKind
from tuner.archive import MemoryArchive


@dataclass(frozen=True, slots=True)
class Begun:
    """The search under a strategy."""

    strategy: str


@dataclass(frozen=True, slots=True)
class _Line:
    entry: Begun | Trial | Row


class Kept:
    """Rows and kernels of one program on one device. `path`: where they are kept, and taken from
    with `resume`; None for in this process only. A file that ends in the middle of a line counts
    up to there."""

    def __init__(self, path: Path | None, *, resume: bool = False) -> None:
        self._path = path
        self.rows: dict[str, Row] = {}
        self.trials: list[Trial] = []
        self._before: dict[str, int] = {}
        earlier = _read(path) if path is not None and resume else []
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("", encoding="utf-8")
        for entry in earlier:
            self._take(entry)

    def is_missing(self, strategy: str) -> bool:
        """Whether there is no row of the strategy, or one that only says why there is none."""
        row = self.rows.get(strategy)
        return row is None or bool(row.missing)

    def begin(self, strategy: str) -> int:
        """How many kernels were tried before the strategy's own."""
        if strategy not in self._before:
            self._take(Begun(strategy))
        return self._before[strategy]

    def add_trials(self, trials: Sequence[Trial]) -> None:
        """Kernels of the strategy that was begun last; other trials are not kept."""
        for trial in trials:
            if trial.kind is TrialKind.KERNEL:
                self._take(trial)

    def add_row(self, row: Row) -> None:
        """What came of its strategy."""
        self._take(row)

    def _take(self, entry: Begun | Trial | Row) -> None:
        if isinstance(entry, Row):
            self.rows[entry.strategy] = entry
        elif isinstance(entry, Begun):
            self._before[entry.strategy] = len(self.trials)
        elif isinstance(entry, Trial):
            self.trials.append(entry)
        self._add(entry)

    def _add(self, entry: Begun | Trial | Row) -> None:
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(to_json(_Line(entry)) + "\n")


class KeptArchive(MemoryArchive):
    """A search that goes on from what is kept, and keeps what it tries as it tries it."""

    def __init__(self, kept: Kept) -> None:
        super().__init__(resumed=list(kept.trials))
        self._kept = kept

    def add_trials(self, trials: Sequence[Trial]) -> None:
        super().add_trials(trials)
        self._kept.add_trials(trials)


def _read(path: Path) -> list[Begun | Trial | Row]:
    found: list[Begun | Trial | Row] = []
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(from_json(_Line, line).entry)
        except InvalidInput:
            break
    return found

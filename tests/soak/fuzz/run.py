"""A run over many seeds: its log, a line of progress, a summary."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.soak.fuzz.child import Batch, checked

_LOG = "done.jsonl"


class Run:
    """`folder` holds the log of what is done and the failures; `levels` are instruction sets, of
    which batches take turns."""

    def __init__(self, folder: Path, levels: Sequence[str], batch: int, *, resume: bool) -> None:
        self._folder, self._levels, self._batch = folder, levels, batch
        folder.mkdir(parents=True, exist_ok=True)
        self.done: set[int] = set()
        self.failed: set[int] = set()
        self.tried: Counter[str] = Counter()
        log = folder / _LOG
        if not resume:
            log.unlink(missing_ok=True)
        for line in log.read_text().splitlines() if log.exists() else ():
            self._count(json.loads(line))

    def all(self, seeds: range, jobs: int) -> None:
        """Checks all seeds that are not done yet."""
        left = [seed for seed in seeds if seed not in self.done]
        parts = [tuple(left[i : i + self._batch]) for i in range(0, len(left), self._batch)]
        batches = [
            Batch(part, self._levels[number % len(self._levels)], self._folder)
            for number, part in enumerate(parts)
        ]
        begun, before, total = time.monotonic(), len(self.done), len(self.done.union(seeds))
        for batch, found in checked(batches, jobs):
            record = {
                "seeds": list(batch.seeds),
                "isa": batch.isa,
                "failures": sorted(found.failures),
                "tried": dict(found.tried),
            }
            self._count(record)
            with (self._folder / _LOG).open("a") as log:
                log.write(json.dumps(record) + "\n")
            rate = (len(self.done) - before) / (time.monotonic() - begun) * 60
            self._show(f"{len(self.done)} of {total} graphs, {rate:.0f} a minute")

    def _count(self, record: dict[str, Any]) -> None:
        self.done.update(record["seeds"])
        self.failed.update(record["failures"])
        self.tried.update(record["tried"])

    def _show(self, line: str) -> None:
        end = "\r" if sys.stderr.isatty() else "\n"
        print(f"{line}, {len(self.failed)} failed   ", end=end, file=sys.stderr, flush=True)

    def summary(self) -> str:
        """What was run, and what failed."""
        lines = [f"{count:8} {what}" for what, count in sorted(self.tried.items())]
        failed = f": {sorted(self.failed)}, see {self._folder}" if self.failed else ""
        return "\n".join([*lines, f"{len(self.done)} graphs, {len(self.failed)} failed{failed}"])

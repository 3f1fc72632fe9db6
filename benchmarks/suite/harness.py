"""Interleaves two processes per workload: malloc's defaults, and with trimming off.

glibc gives freed memory back to the system by default, so that fresh outputs cost page faults in
each call; some users turn that off. Each contender is timed both ways and its better one counts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MALLOC = {
    "default": {},
    "no-trim": {"MALLOC_TRIM_THRESHOLD_": "-1", "MALLOC_MMAP_THRESHOLD_": str(1 << 32)},
}


@dataclass(frozen=True, slots=True)
class Timing:
    """One contender on one workload; `missing` says why it has no samples.

    `median_us`, `min_us`, `spread` (interquartile range over median) and `faults` (minor page
    faults per call) are those of the better malloc setting.
    """

    contender: str
    median_us: float = 0.0
    min_us: float = 0.0
    spread: float = 0.0
    faults: float = 0.0
    malloc: str = ""
    max_error: float = 0.0
    missing: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One workload in all contenders."""

    workload: str
    timings: tuple[Timing, ...]

    def of(self, contender: str) -> Timing | None:
        found = [t for t in self.timings if t.contender == contender and not t.missing]
        return found[0] if found else None

    def ratio(self, contender: str) -> float | None:
        """Time of `contender` over ours: above 1, ours is faster."""
        ours, other = self.of("autofusion"), self.of(contender)
        return other.median_us / ours.median_us if ours and other else None


class _Worker:
    def __init__(self, command: Sequence[str], environ: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env={**os.environ, **environ}
        )
        self.facts = self._answer()

    def round(self) -> dict[str, dict[str, float]]:
        assert self._child.stdin is not None
        self._child.stdin.write("round\n")
        self._child.stdin.flush()
        return self._answer()

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError(f"the measuring process ended with {self._child.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def _workers(command: Sequence[str]) -> Iterator[dict[str, _Worker]]:
    with ExitStack() as stack:
        workers = {}
        for name, environ in MALLOC.items():
            workers[name] = _Worker(command, environ)
            stack.callback(workers[name].close)
        yield workers


def run_workload(
    name: str, contenders: Sequence[str], *, cases: Path | None, rounds: int, threads: int
) -> Result:
    """Times `name`: `rounds` rounds, each contender and malloc setting in turn."""
    command = [sys.executable, "-m", "benchmarks.suite.worker", name]
    command += ["--contenders", ",".join(contenders), "--threads", str(threads)]
    command += ["--cases", str(cases)] if cases else []
    samples: dict[tuple[str, str], list[dict[str, float]]] = {}
    with _workers(command) as workers:
        facts = {setting: worker.facts for setting, worker in workers.items()}
        for _ in range(rounds):
            for setting, worker in workers.items():
                for contender, sample in worker.round().items():
                    samples.setdefault((contender, setting), []).append(sample)
    return Result(name, tuple(_timing(c, samples, facts) for c in contenders))


def _timing(
    contender: str,
    samples: dict[tuple[str, str], list[dict[str, float]]],
    facts: dict[str, dict[str, Any]],
) -> Timing:
    options = [
        _summary(contender, setting, samples[contender, setting], facts[setting][contender])
        for setting in MALLOC
        if (contender, setting) in samples
    ]
    if not options:
        return Timing(contender, missing=facts["default"][contender]["missing"])
    return min(options, key=lambda timing: timing.median_us)


def _summary(
    contender: str, setting: str, taken: list[dict[str, float]], fact: dict[str, Any]
) -> Timing:
    times = [sample["us"] for sample in taken]
    median = statistics.median(times)
    low, _, high = statistics.quantiles(times, n=4) if len(times) > 3 else (median,) * 3
    return Timing(
        contender=contender,
        median_us=median,
        min_us=min(times),
        spread=(high - low) / median,
        faults=statistics.median(sample["faults"] for sample in taken),
        malloc=setting,
        max_error=fact["max_error"],
    )

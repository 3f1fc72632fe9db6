"""Interleaves the contenders of one workload: each in a process of its own, once with malloc's
defaults and once with trimming off. A round times each process once, in turn, and each round
begins with another one, so that drift of the machine hits all alike.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.suite.peers import MEASURE_WHILE_BUILDING, OURS
from benchmarks.suite.processes import MALLOC, Gone, Worker, Zygote, Zygotes
from benchmarks.suite.records import Result, Timing, floor_of, summary
from benchmarks.suite.reference import Effort
from benchmarks.suite.worker import FLOOR, REFERENCE, Order

Place = tuple[str, str]  # contender and malloc setting
Progress = Callable[[str], None]  # told what was finished

_COPIES_OF_WEIGHTS = 2.5  # a process holds the model and what its contender makes of it
_PROCESS_BYTES = 400 << 20
_SHARE_OF_MEMORY = 0.6


@dataclass(frozen=True, slots=True)
class Settings:
    """How to measure: at least `least_rounds`, at most `rounds`, ending after `seconds` of them.

    `setup_seconds` bounds how long a contender may take to get ready (ours: plus its budget).
    """

    contenders: tuple[str, ...]
    threads: int = 2
    rounds: int = 15
    least_rounds: int = 5
    seconds: float = 20.0
    setup_seconds: float = 300.0
    cases: Path | None = None


@dataclass(slots=True)
class _Taken:
    """What was measured so far."""

    facts: dict[Place, Mapping[str, Any]] = field(default_factory=dict)
    samples: dict[Place, list[dict[str, float]]] = field(default_factory=dict)
    probes: dict[str, list[float]] = field(default_factory=dict)
    rounds: int = 0


class Interrupted(KeyboardInterrupt):
    """Ctrl-C while a workload was measured; `result` is what there was, None before any round."""

    def __init__(self, result: Result | None) -> None:
        super().__init__()
        self.result = result


def run_workload(
    name: str, settings: Settings, zygotes: Zygotes, tell: Progress = lambda _: None
) -> Result:
    """Times `name` in all contenders. Raises Interrupted at Ctrl-C, Gone if eager itself fails."""
    taken = _Taken()
    expected = zygotes.folder / "reference.pt"
    effort: Effort | None = None
    try:
        effort = _reference(name, settings, zygotes, expected)
        tell("reference")
        for wave in _waves(settings, effort):
            _measure(name, settings, zygotes, wave, (effort, expected), taken, tell)
    except KeyboardInterrupt:
        partial = _result(name, settings, effort, taken) if effort and taken.rounds else None
        raise Interrupted(partial and replace(partial, complete=False)) from None
    finally:
        expected.unlink(missing_ok=True)
    return _result(name, settings, effort, taken)


def _reference(name: str, settings: Settings, zygotes: Zygotes, output: Path) -> Effort:
    order = Order(REFERENCE, name, settings.threads, str(output), _cases(settings))
    worker = zygotes["default"].start(order)
    try:
        facts = worker.facts(settings.setup_seconds)
    finally:
        worker.close()
    if "missing" in facts:
        raise Gone(facts["missing"])
    return Effort(**facts)


def _cases(settings: Settings) -> str | None:
    return str(settings.cases.resolve()) if settings.cases else None


def _waves(settings: Settings, effort: Effort) -> list[tuple[str, ...]]:
    """The malloc settings that are measured together: all, or one after the other where the
    weights are too large to be held by all processes at once."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    each = _PROCESS_BYTES + _COPIES_OF_WEIGHTS * effort.weight_bytes
    all_at_once = each * len(settings.contenders) * len(MALLOC)
    if all_at_once <= _SHARE_OF_MEMORY * memory:
        return [tuple(MALLOC)]
    return [(setting,) for setting in MALLOC]


def _measure(
    name: str,
    settings: Settings,
    zygotes: Zygotes,
    wave: Sequence[str],
    known: tuple[Effort, Path],
    taken: _Taken,
    tell: Progress,
) -> None:
    effort, expected = known
    with ExitStack() as stack:

        def start(place: Place) -> tuple[Worker | None, Mapping[str, Any]]:
            contender, setting = place
            order = Order(
                contender, name, settings.threads, str(expected), _cases(settings),
                effort if contender == FLOOR else None,
            )  # fmt: skip
            return _start(zygotes[setting], order, settings, stack)

        workers = _set_up(_places(settings, wave), start, taken, tell)
        _rounds(workers, settings, len(wave) / len(MALLOC), taken, tell)


def _places(settings: Settings, wave: Sequence[str]) -> list[Place]:
    probes = [(FLOOR, wave[0])]
    return [*probes, *((c, setting) for c in settings.contenders for setting in wave)]


def _start(
    forker: Zygote, order: Order, settings: Settings, stack: ExitStack
) -> tuple[Worker | None, Mapping[str, Any]]:
    """A process that is ready, or None and why there is none."""
    budget = float(os.environ.get("GAF_BENCH_BUDGET", 60.0)) if order.contender == OURS else 0.0
    try:
        worker = forker.start(order)
        stack.callback(worker.close)
        return worker, worker.facts(settings.setup_seconds + 2 * budget)
    except Gone as error:
        return None, {"missing": str(error)}


def _set_up(
    places: Iterable[Place],
    start: Callable[[Place], tuple[Worker | None, Mapping[str, Any]]],
    taken: _Taken,
    tell: Progress,
) -> dict[Place, Worker]:
    """Builds those that time nothing while they build on all cores, then the others in turn."""
    alone = [place for place in places if place[0] in MEASURE_WHILE_BUILDING]
    together = [place for place in places if place not in alone]
    workers: dict[Place, Worker] = {}

    def keep(place: Place, made: tuple[Worker | None, Mapping[str, Any]]) -> None:
        worker, taken.facts[place] = made
        if worker is not None and not taken.facts[place].get("missing"):
            workers[place] = worker
        tell(f"{place[0]} is ready")

    pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
    try:
        for place, made in zip(together, pool.map(start, together), strict=True):
            keep(place, made)
    finally:  # at Ctrl-C without waiting: the processes are ended by the caller
        pool.shutdown(wait=False, cancel_futures=True)
    for place in alone:
        keep(place, start(place))
    return workers


def _rounds(
    workers: dict[Place, Worker], settings: Settings, share: float, taken: _Taken, tell: Progress
) -> None:
    begun = time.monotonic()
    order = list(workers)
    for number in range(settings.rounds):
        spent = time.monotonic() - begun
        if number >= settings.least_rounds and spent > share * settings.seconds:
            break
        for place in order[number % max(len(order), 1) :] + order[: number % max(len(order), 1)]:
            if place in workers:
                _sample(place, workers, taken)
        taken.rounds = max(taken.rounds, number + 1)
        tell(f"round {number + 1}")


def _sample(place: Place, workers: dict[Place, Worker], taken: _Taken) -> None:
    try:
        samples = workers[place].sample()
    except Gone as error:
        del workers[place]
        taken.facts[place] = {"missing": str(error)}
        taken.samples.pop(place, None)
        return
    if place[0] == FLOOR:
        for probe, sample in samples.items():
            taken.probes.setdefault(probe, []).append(sample["us"])
    else:
        taken.samples.setdefault(place, []).append(samples[place[0]])


def _result(name: str, settings: Settings, effort: Effort, taken: _Taken) -> Result:
    probes = [fact for (c, _), fact in taken.facts.items() if c == FLOOR]
    probed = next((fact for fact in probes if "fma_operations" in fact), None)
    floor = floor_of(effort, taken.probes, probed) if probed and taken.probes else None
    ours = [fact for (c, _), fact in taken.facts.items() if c == OURS and not fact.get("missing")]
    timings = tuple(_timing(contender, taken) for contender in settings.contenders)
    # The first of our processes may have tuned; the last one shows what a known plan costs.
    return Result(name, timings, effort, floor, dict(ours[-1]) if ours else {}, taken.rounds)


def _timing(contender: str, taken: _Taken) -> Timing:
    facts = {s: f for (c, s), f in taken.facts.items() if c == contender}
    samples = {s: v for (c, s), v in taken.samples.items() if c == contender}
    return summary(contender, samples, facts)

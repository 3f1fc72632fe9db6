"""The search over covers: whole plans against the baseline, in interleaved runs.

An Optuna study over the finalists' covers says which to run next, the solver's best first. Each
contest runs a few new covers with the champion so far and the baseline, so that all figures that
are compared come from one run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import optuna

from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.group import FusionPlan
from kernel_gen.fusion.sharing import Sharing
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import DeviceKind
from kernel_gen.records import BASELINE_TEMPLATE, COVER_GROUP, Failure, Measurement, Trial
from kernel_gen.runtime.device_names import is_simulated
from kernel_gen.runtime.key import PlanKey
from kernel_gen.runtime.plan import Plan
from tuner.archive import Archive
from tuner.child.contest import HOST_ONLY, Contender, ContestTask, Entry
from tuner.devices.device import Device
from tuner.gain import is_baseline, times_us
from tuner.meter import Meter
from tuner.programs.champion import Champion, best_of
from tuner.programs.finalists import Finalists

_NEW_PER_CONTEST = 3
_CONTEST_SECONDS = 2.5
_CONTEST_SHARE, _CONTEST_CALLS = 0.5, 5  # of the remaining time, for so many calls of a program
_COVER_SHARE = 0.2  # of the remaining time, to find covers


@dataclass(frozen=True, slots=True)
class Outcome:
    """The plan to publish and what was measured with it, all in one interleaved run."""

    plan: Plan
    measured_us: float
    baseline_us: float
    improved: bool
    unfused_us: float | None


class ProgramStage:
    """Runs finalists and keeps the champion. May run several times, as kernels get better.

    `entrant_seconds` is what a plan of a contest is expected to take before there was one."""

    def __init__(
        self,
        graph: Graph,
        program: Graph,
        key: PlanKey,
        finalists: Finalists,
        device: Device,
        archive: Archive,
        meter: Meter,
        check_stop: Callable[[], None],
        first_number: int = 0,
        entrant_seconds: float = 0.0,
    ) -> None:
        self._graph, self._program, self._key = graph, program, key
        self._finalists, self._device = finalists, device
        self._sharing = Sharing(program)
        self._archive, self._meter, self._check_stop = archive, meter, check_stop
        self._number = first_number
        self._champion: Champion | None = None
        self._unfused_us: float | None = None
        self._unfused_entry: Entry | None = None
        self._known: set[object] = set()
        self._unfused: set[object] = set()
        self.contest_seconds = 0.0
        self._entrant_seconds = entrant_seconds

    def run(self) -> None:
        """Contests for the finalists that have not run yet; ends early when time is short.

        Raises InvalidInput if the baseline itself cannot be run.
        """
        entries = self._new_entries()
        study = _Study(len(entries))
        pending = study.next(self._affordable(entries))
        while pending:
            self._check_stop()
            times = self._contest([entries[i] for i in pending])
            study.record(pending, times)
            if not self.has_time(1.0):
                return
            pending = study.next(self._affordable(entries))

    def _affordable(self, entries: Sequence[Entry]) -> int:
        """How many new covers a contest may have, at least one: all its programs are built and run
        several times in a share of what is left of the budget."""
        longest = max((entry.expected_us for entry in entries), default=0.0)
        others = 1 if self._champion is None else 2
        seconds = _CONTEST_SHARE * self._meter.remaining_seconds
        programs = seconds / max(_CONTEST_CALLS * longest / 1e6, self._entrant_seconds, 1e-9)
        return max(1, int(min(programs, _NEW_PER_CONTEST + others)) - others)

    def has_time(self, share: float) -> bool:
        """Whether `share` times the last contest fits into what is left of the budget."""
        return self._meter.remaining_seconds > share * self.contest_seconds

    def outcome(self) -> Outcome:
        """The champion; where it does not beat the baseline, the framework's plan competes.

        Raises InvalidInput if no plan runs.
        """
        champion = self._champion
        beaten = champion is not None and not champion.is_improved
        if champion is None or (beaten and self.has_time(1.0)):
            framework = self._finalists.framework()
            if framework is not None:
                self._contest([self._finalists.entry(framework)])
        champion = self._champion
        if champion is None:
            raise InvalidInput(
                "no plan of this program runs here: give more seconds if no kernel was measured, "
                "else see the job's cover trials"
            )
        return Outcome(champion.plan, *champion.times_us, champion.is_improved, self._unfused_us)

    def _new_entries(self) -> list[Entry]:
        """Finalists with their present kernels, without those that have run."""
        seconds = _COVER_SHARE * self._meter.remaining_seconds
        found = self._finalists.covers(seconds, self._check_stop)
        self._check_stop()
        unfused = self._finalists.unfused(seconds) if self._wants_unfused() else None
        covers = [*found, *([unfused] if unfused else [])]
        entries: list[Entry] = []
        for cover in dict.fromkeys(covers):
            entry = self._finalists.entry(cover)
            if cover == unfused:
                self._unfused_entry = entry
                self._unfused.add(_identity(entry))
            entries.append(entry)
            if cover == covers[0]:
                entries += self._finalists.variants(cover)
        new: list[Entry] = []
        for entry in entries:
            if _identity(entry) not in self._known:
                self._known.add(_identity(entry))
                new.append(entry)
        return new

    def _wants_unfused(self) -> bool:
        """Where it is the baseline, and while there is time."""
        has_framework = self._device.target.kind is DeviceKind.CPU
        return not has_framework or self._meter.remaining_seconds > 0

    def _contest(self, entries: Sequence[Entry]) -> list[float | None]:
        """Run these, the champion and the baseline; the entries' times."""
        entrants = list(entries)
        if self._champion is not None:
            entrants.append(self._champion.entry)
        seconds = min(_CONTEST_SECONDS, max(0.3, 0.4 * self._meter.remaining_seconds))
        task = ContestTask(
            self._key,
            self._graph,
            self._program,
            tuple(entrants),
            self._unfused_entry,
            seconds=seconds,
            most_seconds=max(seconds, _CONTEST_SHARE * self._meter.remaining_seconds),
        )
        start = time.monotonic()
        result = self._device.contest(task)
        self.contest_seconds = time.monotonic() - start
        self._entrant_seconds = self.contest_seconds / (1 + len(entrants))
        if result.baseline == HOST_ONLY:
            self._record(entries, result.contenders, None)
            return [None] * len(entries)
        if isinstance(result.baseline, Failure):
            raise InvalidInput(f"the program cannot be timed: {result.baseline.message}")
        contenders = self._with_baseline(entrants, result.contenders, result.baseline)
        self._crown(entrants, contenders, result.baseline)
        self._record(entries, contenders, result.baseline)
        for entry, contender in zip(entrants, contenders, strict=True):
            if isinstance(contender.result, Measurement) and _identity(entry) in self._unfused:
                self._unfused_us, _ = times_us(contender.result, result.baseline)
        return [_time_us(contender) for contender in contenders[: len(entries)]]

    def _with_baseline(
        self, entries: Sequence[Entry], contenders: Sequence[Contender], baseline: Measurement
    ) -> list[Contender]:
        """The baseline run as a plan takes the baseline's time: what differs is noise."""
        return [
            replace(contender, result=baseline)
            if isinstance(contender.result, Measurement)
            and is_baseline(entry.cover, self._program, self._graph)
            else contender
            for entry, contender in zip(entries, contenders, strict=True)
        ]

    def _crown(
        self,
        entries: Sequence[Entry],
        contenders: Sequence[Contender],
        baseline: Measurement,
    ) -> None:
        found = [
            Champion(entry, contender.plan, contender.result, baseline)
            for entry, contender in zip(entries, contenders, strict=True)
            if contender.plan is not None and isinstance(contender.result, Measurement)
        ]
        if not found:
            return
        champion = self._champion = best_of(found, self._alone)
        best_us, baseline_us = champion.times_us
        told = {
            "best_us": best_us,
            "baseline_us": baseline_us,
            "groups": len(champion.entry.cover.groups),
            "remaining_seconds": round(self._meter.remaining_seconds, 2),
            "simulated": is_simulated(self._device.target),
        }
        self._archive.event("cover", told)

    def _alone(self, entry: Entry) -> int:
        return len(self._sharing.left_alone(entry.cover.groups))

    def _record(
        self,
        entries: Sequence[Entry],
        contenders: Sequence[Contender],
        baseline: Measurement | None,
    ) -> None:
        tried = [
            _cover_trial(self._number + i, entry.cover, contender.result)
            for i, (entry, contender) in enumerate(zip(entries, contenders, strict=False))
        ]
        self._number += len(tried)
        if baseline is not None:
            tried.append(Trial(COVER_GROUP, self._number, BASELINE_TEMPLATE, (), baseline))
            self._number += 1
        self._archive.add_trials(tried)


def _identity(entry: Entry) -> object:
    """What makes two entries the same plan: groups and schedules."""
    return entry.cover, tuple(kernel.schedule for kernel in entry.kernels)


def _cover_trial(number: int, cover: FusionPlan, result: Measurement | Failure) -> Trial:
    return Trial(COVER_GROUP, number, COVER_GROUP, (("groups", len(cover.groups)),), result)


def _time_us(contender: Contender) -> float | None:
    result = contender.result
    return result.median_us if isinstance(result, Measurement) else None


class _Study:
    """An Optuna study over the positions of the finalists, in the solver's order at first."""

    def __init__(self, covers: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._covers = covers
        self._study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        self._open: dict[int, optuna.trial.Trial] = {}
        self._known: set[int] = set()
        for cover in range(covers):
            self._study.enqueue_trial({"cover": cover})

    def next(self, count: int) -> list[int]:
        """Covers to run next, none twice."""
        found: list[int] = []
        while len(found) < count and len(self._known) < self._covers:
            asked = self._study.ask()
            cover = asked.suggest_int("cover", 0, self._covers - 1)
            self._known.add(cover)
            self._open[cover] = asked
            found.append(cover)
        return found

    def record(self, covers: Sequence[int], times: Sequence[float | None]) -> None:
        """Tell the study; a cover that failed counts as failed."""
        for cover, value in zip(covers, times, strict=True):
            state = optuna.trial.TrialState.FAIL if value is None else None
            self._study.tell(self._open.pop(cover), value, state)

"""The course of one search: what was best after how many seconds and trials.

Latencies of two searches are compared as multiples of the framework's time, which each search
measures interleaved with its plans: machines drift by more than the few percent of interest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NEAR = 1.05
"""A plan is near the best if it takes at most this many times as long."""


@dataclass(frozen=True, slots=True)
class Moment:
    """The state of a search `seconds` after it was asked for. `estimated_us` is the best cover by
    its kernels' own times, `measured_us` the best plan that was run whole; None before any."""

    seconds: float
    trials: int
    estimated_us: float | None
    measured_us: float | None
    baseline_us: float | None


@dataclass(frozen=True, slots=True)
class Course:
    """One search of one case. `measured_us` and `baseline_us` are those of the published plan."""

    case: str
    budget_seconds: float
    seconds: float
    trials: int
    measured_us: float
    baseline_us: float
    moments: tuple[Moment, ...]

    @property
    def relative(self) -> float:
        """The plan's latency over the framework's."""
        return self.measured_us / self.baseline_us if self.baseline_us else 1.0


class Recorder:
    """Collects the events of a search; call `event` with the seconds since its start."""

    def __init__(self) -> None:
        self.moments: list[Moment] = []

    def event(self, seconds: float, event: Mapping[str, Any]) -> None:
        last = self.moments[-1] if self.moments else Moment(0.0, 0, None, None, None)
        trials, best = int(event.get("done") or last.trials), event.get("best_us")
        if event["kind"] == "progress":
            estimated = last.estimated_us if best is None else best
            moment = Moment(seconds, trials, estimated, last.measured_us, last.baseline_us)
        elif event["kind"] == "cover" and best is not None:
            moment = Moment(seconds, trials, last.estimated_us, best, event["baseline_us"])
        else:
            return
        self.moments.append(moment)


def seconds_to_near(course: Course, best_relative: float) -> float | None:
    """When the search first had run a plan within 5 % of `best_relative` (latency over the
    framework's); None if it never had."""
    for moment in course.moments:
        if moment.measured_us is None or not moment.baseline_us:
            continue
        if moment.measured_us / moment.baseline_us <= NEAR * best_relative:
            return moment.seconds
    return course.seconds if course.relative <= NEAR * best_relative else None


def course_from(row: Mapping[str, Any]) -> Course:
    """A course as `dataclasses.asdict` gave it."""
    moments = tuple(Moment(**moment) for moment in row["moments"])
    return Course(**{**row, "moments": moments})


def thinned(moments: Sequence[Moment]) -> tuple[Moment, ...]:
    """Only moments at which something improved, and the last one."""
    kept: list[Moment] = []
    for moment in moments:
        last = kept[-1] if kept else None
        same = last is not None and (
            (moment.estimated_us, moment.measured_us) == (last.estimated_us, last.measured_us)
        )
        if not same:
            kept.append(moment)
    return tuple(kept + list(moments[-1:]) if moments and kept[-1] is not moments[-1] else kept)

"""Records of a search: what was tried, what was measured, what failed, what was asked for.

They are values: the tuner makes them, the database stores them, the dashboard shows them. All
times are microseconds, all instants UTC microseconds since 1970.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from enum import StrEnum

from kernel_gen.errors import InvalidInput


class Stage(StrEnum):
    """Where a trial ended."""

    GENERATE = "generate"
    BUILD = "build"
    LOAD = "load"
    CHECK = "check"
    RUN = "run"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Failure:
    """A trial that gave no time. `code` as in `docs/reason-codes.md`."""

    stage: Stage
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Protocol:
    """How samples were taken: enough to take them again."""

    threads: int
    inner: int  # calls per sample, so that a sample lasts at least 1 ms
    warmup: int
    cache: str  # "warm": same buffers each call; "cold": caches flushed between samples
    clock: str = "CLOCK_MONOTONIC"
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Measurement:
    """Times of one kernel or plan, one entry per sample (mean over `protocol.inner` calls).

    `pipes` is known on simulated devices only: for which share of a core's time each of its pipes
    was busy, by name, on the core where it is highest.
    """

    samples_us: tuple[float, ...]
    protocol: Protocol
    pipes: tuple[tuple[str, float], ...] = ()

    def __post_init__(self) -> None:
        if not self.samples_us or min(self.samples_us) < 0:
            raise InvalidInput(f"measurement with samples {self.samples_us[:3]}")

    @property
    def median_us(self) -> float:
        return statistics.median(self.samples_us)

    @property
    def quiet_us(self) -> float:
        """The lower quartile of the samples (the median of fewer than four), by which a search
        compares: what other programs take only adds, and rarely to all samples."""
        if len(self.samples_us) < 4:
            return self.median_us
        return sorted(self.samples_us)[(len(self.samples_us) - 1) // 4]

    @property
    def min_us(self) -> float:
        return min(self.samples_us)

    @property
    def bounding_pipe(self) -> str | None:
        """The busiest pipe; None where none is known."""
        return max(self.pipes, key=lambda pipe: pipe[1])[0] if self.pipes else None

    @property
    def spread(self) -> float:
        """Interquartile range over the median (0 for fewer than four samples)."""
        if len(self.samples_us) < 4:
            return 0.0
        low, _, high = statistics.quantiles(self.samples_us, n=4)
        return (high - low) / self.median_us if self.median_us else 0.0


LIBRARY_TEMPLATE, BASELINE_TEMPLATE = "framework", "baseline"
COVER_GROUP = "cover"  # of whole programs; their template as well, save for the baseline


class TrialKind(StrEnum):
    """What a trial ran."""

    KERNEL = "kernel"  # a tiling: these are what budgets, reports and pages call trials
    PROGRAM = "program"  # a whole plan
    REFERENCE = "reference"  # the framework: an op of the program, or all of it


_NO_KERNELS = {
    LIBRARY_TEMPLATE: TrialKind.REFERENCE,
    BASELINE_TEMPLATE: TrialKind.REFERENCE,
    COVER_GROUP: TrialKind.PROGRAM,
}


def kind_of_trials(template: str) -> TrialKind:
    """What trials with this template ran."""
    return _NO_KERNELS.get(template, TrialKind.KERNEL)


@dataclass(frozen=True, slots=True)
class Trial:
    """One point of one group's space (or one cover), and what came of it.

    `group` is the nest's digest, or "cover" for whole-program trials. `point` holds the chosen
    parameters; `predicted_us` is the cost model's word before measuring.
    """

    group: str
    number: int
    template: str
    point: tuple[tuple[str, int | str], ...]
    result: Measurement | Failure
    predicted_us: float | None = None
    build_seconds: float = 0.0

    @property
    def kind(self) -> TrialKind:
        return kind_of_trials(self.template)

    @property
    def median_us(self) -> float | None:
        return self.result.median_us if isinstance(self.result, Measurement) else None

    @property
    def quiet_us(self) -> float | None:
        """`Measurement.quiet_us`; None for a failure."""
        return self.result.quiet_us if isinstance(self.result, Measurement) else None


@dataclass(frozen=True, slots=True)
class Budget:
    """What a search may spend; it ends at whichever comes first, at most one trial later."""

    seconds: float = 60.0
    trials: int | None = None

    def __post_init__(self) -> None:
        if not (_is_number(self.seconds) and 0 <= self.seconds <= 7 * 86400):
            raise InvalidInput(f"budget of {self.seconds!r} seconds: expected 0 to 604800")
        whole = _is_number(self.trials) and isinstance(self.trials, int)
        if self.trials is not None and not (whole and 0 <= self.trials <= 1_000_000):
            raise InvalidInput(f"budget of {self.trials!r} trials: expected 0 to 1000000")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_terminal(self) -> bool:
        return self in (JobState.DONE, JobState.FAILED, JobState.CANCELLED)


@dataclass(frozen=True, slots=True)
class JobRequest:
    """What a client asks for. `rules` is the user's YAML text, already validated."""

    graph_digest: str
    device: str
    budget: Budget
    numerics: str = "fast"
    training: bool = False
    rules: str = ""
    priority: int = 0
    force: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """A stored job. `spent_seconds` counts earlier attempts; three lost leases poison it."""

    id: str
    tenant: str
    key: str
    request: JobRequest
    state: JobState
    attempts: int
    spent_seconds: float
    created_us: int
    updated_us: int
    plan_id: str | None = None
    error: Failure | None = None
    cancel_requested: bool = False


@dataclass(frozen=True, slots=True)
class JobEvent:
    """One line of a job's history; `sequence` grows within the whole table (the SSE id).

    Kinds: state, progress (done, total, best_us, phase), trial, group, cover, plan, log.
    """

    sequence: int
    job_id: str
    kind: str
    data: str  # canonical JSON
    created_us: int

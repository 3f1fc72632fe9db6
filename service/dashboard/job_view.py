"""A job as its page shows it: how far the search is, what failed, what is best so far."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from db.store import Store
from kernel_gen.records import Job, JobEvent, TrialKind
from service.dashboard.numbers import show_us

_LOG_LINES = 12
_RECENT = 50
_TELLING = ("cover", "progress")  # kinds of events that say how far the search is
_PHASES = {
    "prepare": "finding groups that may share a kernel",
    "library": "timing the framework's ops one by one",
    "tune-groups": "tuning kernels",
    "whole-program": "running whole programs",
}
_TOLD = ("state", "log", "cover", "plan")  # kinds that the history shows


@dataclass(frozen=True, slots=True)
class JobSummary:
    """One job as it stands. `best_us` is the best whole program so far, `expected_us` what the best
    kernels known add up to. Trials are kernels; `failures` are of all that was tried."""

    job: Job
    trials: int
    failed: int
    programs: int
    failures: tuple[tuple[str, str, int], ...]  # kind, code, count; most frequent first
    phase: str
    best_us: float | None
    expected_us: float | None
    baseline_us: float | None
    remaining_seconds: float
    spent_seconds: float
    log: tuple[tuple[int, str], ...]  # instant, sentence; newest first


def summarise(store: Store, job: Job) -> JobSummary:
    """The summary of a job."""
    newest = [json.loads(e.data) for e in store.events.newest(job.id, _TELLING, _RECENT)]
    row = store.plans.row(job.plan_id) if job.plan_id else None
    tally = store.trials.tally(job.id)
    kernels = {code: count for (kind, code), count in tally.items() if kind is TrialKind.KERNEL}
    failures = [(kind.value, code, count) for (kind, code), count in tally.items() if code]
    budget = job.request.budget.seconds
    told = None if job.state.is_terminal else _last(newest, "remaining_seconds")
    left = max(0.0, float(budget - job.spent_seconds if told is None else told))
    phase = _last(newest, "phase")
    return JobSummary(
        job=job,
        trials=sum(kernels.values()),
        failed=sum(count for code, count in kernels.items() if code),
        programs=sum(count for (kind, _), count in tally.items() if kind is TrialKind.PROGRAM),
        failures=tuple(sorted(failures, key=lambda found: (-found[2], found))),
        phase=_PHASES.get(str(phase), str(phase or "")),
        best_us=row.measured_us if row else _best_us(store, job.id, "cover"),
        expected_us=_best_us(store, job.id, "progress"),
        baseline_us=row.baseline_us if row else _last(newest, "baseline_us"),
        remaining_seconds=left,
        spent_seconds=max(job.spent_seconds, budget - left),
        log=tuple(_log_line(event) for event in store.events.newest(job.id, _TOLD, _LOG_LINES)),
    )


def _last(newest: list[dict[str, Any]], name: str) -> Any:
    """The newest value of a member, None if no recent event has it."""
    return next((data[name] for data in newest if data.get(name) is not None), None)


def _best_us(store: Store, job_id: str, kind: str) -> float | None:
    """`best_us` of the newest events of a kind: of covers it was measured, of progress expected."""
    newest = [json.loads(e.data) for e in store.events.newest(job_id, (kind,), _RECENT)]
    found = _last(newest, "best_us")
    return None if found is None else float(found)


def _log_line(event: JobEvent) -> tuple[int, str]:
    data = json.loads(event.data)
    match event.kind:
        case "state":
            text = _state_sentence(data)
        case "plan":
            text = f"published plan {str(data.get('plan') or data.get('id') or '')[:12]}"
        case "cover":
            times = [show_us(data.get(name)) for name in ("best_us", "baseline_us")]
            names = ("best program", "framework")
            if data.get("simulated"):
                names = ("best program, simulated,", "one kernel per op")
            groups = f"{data.get('groups')} groups"
            text = f"{names[0]} {times[0]}, {names[1]} {times[1]}, {groups}"
        case _:
            text = str(data.get("text") or data.get("message") or event.kind)
    return event.created_us, text[:300]


def _state_sentence(data: dict[str, Any]) -> str:
    state = str(data.get("state"))
    if data.get("requeued"):
        return f"{state}: the driver gave the job back or was lost"
    error = data.get("error")
    if isinstance(error, dict):
        return f"{state}: {error.get('message')} [{error.get('code')}]"
    if data.get("cancel_requested"):
        return f"{state}: cancellation was asked for"
    return state

"""What waits, on which devices, and how often lookups find a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from db.devices import Device
from db.lookup import MissReason
from db.store import Store
from kernel_gen.records import Job, JobState

_MOST_QUEUED = 1000
_SHOWN = 100
_WORDS = {
    "exact": "a plan for this very key",
    "compatible": "a plan of the same program for another target that the caller's machine can run",
    MissReason.UNKNOWN: "no plan and no job for the key",
    MissReason.TUNING: "a job was working on the key",
    MissReason.OTHER_TARGET: "plans only for machines that the caller's is not",
    MissReason.VERSION: "a plan for other versions than the caller's",
    MissReason.REVOKED: "the plan was revoked",
}
_HITS = ("exact", "compatible")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job of the queue and its place in it, from 1; drivers of its device take it in turn."""

    place: int
    job: Job
    has_device: bool


@dataclass(frozen=True, slots=True)
class Lookups:
    """Lookups that this process has answered. `results` are (word, sentence, count)."""

    since_us: int
    results: tuple[tuple[str, str, int], ...]

    @property
    def total(self) -> int:
        return sum(count for _, _, count in self.results)

    @property
    def hits(self) -> int:
        return sum(count for word, _, count in self.results if word in _HITS)

    @property
    def rate(self) -> float | None:
        return self.hits / self.total if self.total else None


@dataclass(frozen=True, slots=True)
class QueueView:
    """`waiting` holds the caller's jobs only, with their place among all."""

    devices: tuple[Device, ...]
    counts: Mapping[str, int]
    waiting: tuple[Waiting, ...]
    lookups: Lookups

    @property
    def alive(self) -> int:
        return sum(device.alive for device in self.devices)


def queue_view(store: Store, tenant: str | None, lookups: Lookups) -> QueueView:
    """What waits for whom; `tenant` restricts the jobs that are named."""
    devices = tuple(store.devices.list())
    able = {device.target.key for device in devices if device.alive}
    queued = store.jobs.list(state=JobState.QUEUED, limit=_MOST_QUEUED)
    queued.sort(key=lambda job: (-job.request.priority, job.created_us, job.id))
    waiting = [
        Waiting(place, job, job.key.rpartition(":")[2] in able)
        for place, job in enumerate(queued, 1)
        if tenant is None or job.tenant == tenant
    ]
    return QueueView(devices, store.jobs.counts(), tuple(waiting[:_SHOWN]), lookups)


def lookups_of(counts: Mapping[str, int], since_us: int) -> Lookups:
    """Counted results with words for each, the most frequent first."""
    listed = [(word, _WORDS.get(word, ""), count) for word, count in counts.items()]
    return Lookups(since_us, tuple(sorted(listed, key=lambda found: -found[2])))

"""A session's archive in the store, on behalf of a leased job."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from db.leases import Lease
from db.store import Store
from kernel_gen.records import Trial
from kernel_gen.runtime.key import PlanKey
from tuner.archive import EventData
from tuner.patience import IMPATIENT, Patience
from tuner.tasks import NestTask

_KNOWN_TRIALS = 30  # of a nest from other jobs: enough to inform a sampler
OnEvent = Callable[[str, EventData], None]


class StoreArchive:
    """Reads and writes trials of the held job. Writing raises LeaseLost once it is held no more.

    `on_event` sees each event after it is stored. A database that is away is waited for with
    `patience`; StoreAway is raised when that ends.
    """

    def __init__(
        self,
        store: Store,
        lease: Lease,
        on_event: OnEvent | None = None,
        patience: Patience = IMPATIENT,
    ) -> None:
        self._store, self._lease, self._on_event = store, lease, on_event
        self._patience = patience
        self._target = PlanKey.parse(lease.job.key).target

    def known(self, digest: str) -> Sequence[Trial]:
        trials = self._store.trials
        return self._patience(lambda: trials.of_group(digest, self._target, _KNOWN_TRIALS))

    def resumed(self) -> Sequence[Trial]:
        stored = self._patience(lambda: self._store.trials.of_job(self._lease.job_id))
        return [trial for _, trial in stored]

    def add_nests(self, nests: Sequence[NestTask]) -> None:
        if nests:
            groups = [(task.digest, task.nest, task.ops) for task in nests]
            self._patience(lambda: self._store.trials.add_groups(groups))

    def add_trials(self, trials: Sequence[Trial]) -> None:
        if trials:
            self._patience(lambda: self._store.trials.add(self._lease, trials))

    def event(self, kind: str, data: EventData) -> None:
        self._patience(lambda: self._store.events.append(self._lease, kind, dict(data)))
        if self._on_event is not None:
            self._on_event(kind, data)

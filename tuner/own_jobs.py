"""The jobs that a search without a service has made in its store."""

from __future__ import annotations

import logging
import threading
from types import TracebackType

from db.store import Store
from kernel_gen.errors import Unavailable
from kernel_gen.records import Job, JobRequest
from kernel_gen.runtime.key import PlanKey

_STOP_SECONDS = 0.2  # within which a stop is written down
log = logging.getLogger(__name__)


class OwnJobs:
    """The jobs that a search has made. Nobody waits for them without it, so those that have not
    ended are cancelled with it: by a mark in the store as soon as `stop` is set, which holds even
    where this process is killed before it is done, and at the latest when the block is left."""

    def __init__(self, store: Store, owner: str, stop: threading.Event) -> None:
        self._store, self._owner, self._stop = store, owner, stop
        self._ids: list[str] = []
        self._left = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> OwnJobs:
        self._watcher.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._left.set()
        self._watcher.join()
        self._cancel()

    def create(self, request: JobRequest, key: PlanKey) -> Job:
        """The job in flight for `key`, which may be another's, or a new one."""
        created = self._store.jobs.create(request, key)
        if created.created:
            self._ids.append(created.job.id)
        return created.job

    def _watch(self) -> None:
        while not self._left.is_set():
            if self._stop.wait(_STOP_SECONDS):
                self._cancel()
                return

    def _cancel(self) -> None:
        try:
            for job_id in tuple(self._ids):
                self._store.jobs.cancel(job_id)
            if self._left.is_set():
                self._store.queue.lose(self._owner)  # held still where an exception cut the work
        except Unavailable as error:
            log.warning("a search that ends here may wait in the store on: %s", error)

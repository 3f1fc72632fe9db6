"""Runs one leased job to its end, keeping the lease alive, and writes down what became of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import Enum

from db.errors import LeaseLost
from db.leases import Lease
from db.store import Store
from kernel_gen.errors import GafError, Unavailable
from kernel_gen.records import Failure, JobState, Stage
from kernel_gen.runtime.key import PlanKey
from tuner.devices.device import Device
from tuner.patience import IMPATIENT, Patience, StoreAway
from tuner.session import Assignment, Session
from tuner.store_archive import OnEvent, StoreArchive

_BEAT_SECONDS = 3.0
log = logging.getLogger(__name__)


class Stop(Enum):
    """Why a session ends early."""

    CANCEL = "cancel"  # the client's wish: what was tried is kept, the job is over
    SHUTDOWN = "shutdown"  # this process ends: the job goes back to the queue
    LEASE_LOST = "lease lost"  # another driver has the job


class Stopped(Exception):
    """Raised inside a session, between two batches or while one is waited for."""

    def __init__(self, reason: Stop) -> None:
        super().__init__(reason.value)
        self.reason = reason


class JobRunner:
    """One attempt at one job. `shutdown` is asked between batches whether this process must end;
    `cancel` ends the job from this side (Ctrl-C of a local search). A database that is away is
    waited for with `patience`."""

    def __init__(
        self,
        store: Store,
        lease: Lease,
        device: Device,
        shutdown: Callable[[], bool] = lambda: False,
        cancel: Callable[[], bool] = lambda: False,
        on_event: OnEvent | None = None,
        patience: Patience = IMPATIENT,
    ) -> None:
        self._store, self._lease, self._device = store, lease, device
        self._patience = patience
        self._shutdown, self._cancel, self._on_event = shutdown, cancel, on_event
        self._stop: Stop | None = None
        self._session: Session | None = None

    def run(self) -> JobState | None:
        """The state the job ended in; None if it goes on elsewhere (released, lease lost).

        Raises StoreAway where the store stays away: the job's lease then runs out.
        """
        published = self._patience(self._published_before)
        if published is not None:
            return self._finish(JobState.DONE, plan_id=published)
        finished = threading.Event()
        beats = threading.Thread(target=self._beat, args=(finished,), daemon=True)
        beats.start()
        self._device.watch(self._check_stop)
        try:
            return self._attempt()
        except LeaseLost:
            return None
        finally:
            self._device.watch(lambda: None)
            finished.set()
            beats.join()

    def _attempt(self) -> JobState | None:
        try:
            self._session = self._new_session()
            plan = self._session.run()
        except Stopped as stopped:
            return self._stopped(stopped.reason)
        except (LeaseLost, StoreAway):
            raise
        except GafError as error:
            code = "unavailable" if isinstance(error, Unavailable) else "invalid-input"
            return self._failed(code, str(error))
        except Exception as error:
            log.exception("job %s failed", self._lease.job_id)
            return self._failed("internal-error", f"{type(error).__name__}: {error}")
        plan_id = self._patience(lambda: self._store.plans.publish(plan, self._lease))
        return self._finish(JobState.DONE, plan_id=plan_id)

    def _new_session(self) -> Session:
        job = self._lease.job
        graph = self._patience(lambda: self._store.graphs.get(job.request.graph_digest))
        assignment = Assignment(graph, PlanKey.parse(job.key), job.request, job.spent_seconds)
        archive = StoreArchive(self._store, self._lease, self._on_event, self._patience)
        return Session(assignment, self._device, archive, self._check_stop)

    def _spent(self) -> float:
        """Seconds spent on the job, earlier attempts included."""
        session = self._session
        return self._lease.job.spent_seconds if session is None else session.spent_seconds

    def _published_before(self) -> str | None:
        """The plan that an earlier attempt of this job published before it could finish."""
        head = self._store.plans.head(self._lease.job.key)
        if head is None or self._store.plans.row(head).job_id != self._lease.job_id:
            return None
        return head

    def _check_stop(self) -> None:
        if self._stop is None and self._cancel():
            self._stop = Stop.CANCEL
        if self._stop is None and self._shutdown():
            self._stop = Stop.SHUTDOWN
        if self._stop is not None:
            raise Stopped(self._stop)

    def _beat(self, finished: threading.Event) -> None:
        while not finished.wait(_BEAT_SECONDS):
            try:
                beat = self._store.queue.heartbeat(self._lease, self._spent())
            except LeaseLost:
                self._stop = Stop.LEASE_LOST
                return
            except Unavailable as error:
                log.warning("no heartbeat of job %s: %s", self._lease.job_id, error)
                continue
            if beat.cancel_requested:
                self._stop = Stop.CANCEL

    def _stopped(self, reason: Stop) -> JobState | None:
        if reason is Stop.CANCEL:
            return self._finish(JobState.CANCELLED)
        if reason is Stop.SHUTDOWN:
            self._patience(lambda: self._store.queue.release(self._lease, self._spent()))
        return None

    def _failed(self, code: str, message: str) -> JobState:
        return self._finish(JobState.FAILED, error=Failure(Stage.RUN, code, message[:2000]))

    def _finish(
        self, state: JobState, *, plan_id: str | None = None, error: Failure | None = None
    ) -> JobState:
        spent = self._spent()
        job = self._patience(
            lambda: self._store.queue.finish(
                self._lease, state, spent_seconds=spent, plan_id=plan_id, error=error
            )
        )
        return job.state

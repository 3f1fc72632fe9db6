"""The queue as drivers see it: claim, keep, give back, finish.

queued --claim--> running --finish--> done | failed | cancelled
  ^                  |
  +---- release -----+  lease expired: queued again, failed as `poisoned` the third time
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from db.engine import AnyRow, Database
from db.events import insert_event
from db.jobs import job_of
from db.leases import LEASE_US, Lease, fence
from db.schema import jobs
from kernel_gen.codec import to_json
from kernel_gen.errors import InvalidInput
from kernel_gen.records import Failure, Job, JobState, Stage

MAX_ATTEMPTS = 3
POISONED = Failure(
    Stage.RUN, "poisoned", f"the driver was lost {MAX_ATTEMPTS} times while it ran this job"
)


@dataclass(frozen=True, slots=True)
class Beat:
    """What a heartbeat tells the holder."""

    cancel_requested: bool


def owner_of(pid: int) -> str:
    """The name under which a driver process of this machine claims jobs."""
    return f"{socket.gethostname()}:{pid}"


class Queue:
    """The `jobs` table, from the driver's side."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def claim(
        self, owner: str, devices: Sequence[str] | None = None, job_id: str | None = None
    ) -> Lease | None:
        """The most urgent queued job (of these devices, if given), or None. Expired ones count.

        `job_id` claims exactly this job, if it waits.

        `lease.job.spent_seconds` is what earlier attempts used of the budget.
        """
        with self._database.write() as connection:
            now = self._database.now_us(connection)
            self._expire(connection, now)
            row = self._next(connection, devices, job_id)
            if row is None:
                return None
            values = {
                "state": JobState.RUNNING.value,
                "attempts": row.attempts + 1,
                "lease_owner": owner,
                "lease_token": row.lease_token + 1,
                "lease_expires_us": now + LEASE_US,
            }
            stored = _change(connection, row.id, values, now)
            data = {"state": stored.state, "owner": owner, "attempt": stored.attempts}
            insert_event(connection, row.id, "state", data, now)
            return Lease(job_of(stored), owner, stored.lease_token)

    def heartbeat(self, lease: Lease, spent_seconds: float) -> Beat:
        """Keep the lease for another 30 s; `spent_seconds` is the job's total so far.

        Raises LeaseLost. Call it every 10 s or less.
        """
        with self._database.write() as connection:
            row = fence(self._database, connection, lease)
            now = self._database.now_us(connection)
            spent_us = max(row.spent_us, round(spent_seconds * 1e6))
            values = {"lease_expires_us": now + LEASE_US, "spent_us": spent_us}
            _change(connection, lease.job_id, values, now)
            return Beat(bool(row.cancel_requested))

    def release(self, lease: Lease, spent_seconds: float) -> None:
        """Give the job back unfinished (orderly shutdown): the attempt does not count.

        Raises LeaseLost.
        """
        with self._database.write() as connection:
            row = fence(self._database, connection, lease)
            now = self._database.now_us(connection)
            values = {
                "attempts": row.attempts - 1,
                "spent_us": max(row.spent_us, round(spent_seconds * 1e6)),
            }
            _requeue(connection, row, values, now)

    def finish(
        self,
        lease: Lease,
        state: JobState,
        *,
        spent_seconds: float = 0.0,
        plan_id: str | None = None,
        error: Failure | None = None,
    ) -> Job:
        """End the job as done, failed or cancelled; raises LeaseLost."""
        if not state.is_terminal:
            raise InvalidInput(f"a job cannot end as {state}")
        with self._database.write() as connection:
            row = fence(self._database, connection, lease)
            now = self._database.now_us(connection)
            values = {
                "spent_us": max(row.spent_us, round(spent_seconds * 1e6)),
                "plan_id": plan_id or row.plan_id,
            }
            return job_of(_end(connection, row.id, state, error, values, now))

    def expire(self) -> int:
        """Re-queue, end or poison the jobs whose lease has run out; returns how many.

        `claim` does it as well; an API process calls it so that jobs of a server without drivers
        do not seem to run.
        """
        with self._database.write() as connection:
            return self._expire(connection, self._database.now_us(connection))

    def lose(self, owner: str) -> int:
        """As `expire`, at once, for the jobs of an owner that is known to be dead."""
        with self._database.write() as connection:
            now = self._database.now_us(connection)
            return self._give_up(connection, jobs.c.lease_owner == owner, now)

    def _expire(self, connection: Connection, now: int) -> int:
        # No lease reaches further than this, unless the clock was set back meanwhile.
        longest = now + LEASE_US
        ahead = sa.update(jobs).where(jobs.c.lease_expires_us > longest)
        connection.execute(ahead.values(lease_expires_us=longest))
        return self._give_up(connection, jobs.c.lease_expires_us < now, now)

    def _give_up(self, connection: Connection, lost: sa.ColumnElement[bool], now: int) -> int:
        query = sa.select(jobs).where(jobs.c.state == JobState.RUNNING.value, lost)
        if not self._database.is_sqlite:
            query = query.with_for_update(skip_locked=True)
        rows = connection.execute(query).all()
        for row in rows:
            if row.cancel_requested:
                _end(connection, row.id, JobState.CANCELLED, None, {}, now)
            elif row.attempts >= MAX_ATTEMPTS:
                _end(connection, row.id, JobState.FAILED, POISONED, {}, now)
            else:
                _requeue(connection, row, {}, now)
        return len(rows)

    def _next(
        self, connection: Connection, devices: Sequence[str] | None, job_id: str | None
    ) -> AnyRow | None:
        query = (
            sa.select(jobs)
            .where(jobs.c.state == JobState.QUEUED.value)
            .order_by(jobs.c.priority.desc(), jobs.c.created_us, jobs.c.id)
            .limit(1)
        )
        if devices is not None:
            query = query.where(jobs.c.device.in_(devices))
        if job_id is not None:
            query = query.where(jobs.c.id == job_id)
        if not self._database.is_sqlite:
            query = query.with_for_update(skip_locked=True)
        return connection.execute(query).first()


def _change(connection: Connection, job_id: str, values: dict[str, Any], now: int) -> AnyRow:
    query = sa.update(jobs).where(jobs.c.id == job_id).values(**values, updated_us=now)
    return connection.execute(query.returning(*jobs.c)).one()


def _requeue(connection: Connection, row: AnyRow, values: dict[str, Any], now: int) -> None:
    cancelled = row.cancel_requested
    state = JobState.CANCELLED if cancelled else JobState.QUEUED
    # The token stays: the next claim raises it, and until then no write passes the fence.
    _change(
        connection,
        row.id,
        {"state": state.value, "lease_owner": None, "lease_expires_us": None, **values},
        now,
    )
    insert_event(connection, row.id, "state", {"state": state.value, "requeued": True}, now)


def _end(
    connection: Connection,
    job_id: str,
    state: JobState,
    error: Failure | None,
    values: dict[str, Any],
    now: int,
) -> AnyRow:
    ended = {
        "state": state.value,
        "error": None if error is None else to_json(error),
        "lease_owner": None,
        "lease_expires_us": None,
    }
    stored = _change(connection, job_id, ended | values, now)
    data = {
        "state": state.value,
        "plan": stored.plan_id,
        "error": None if error is None else {"code": error.code, "message": error.message},
    }
    insert_event(connection, job_id, "state", data, now)
    return stored

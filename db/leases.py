"""Leases: who may write on a job. Each claim raises the job's fencing token.

A write that carries an older token than the job's raises LeaseLost, however late it arrives.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from db.engine import AnyRow, Database
from db.errors import LeaseLost
from db.schema import jobs
from kernel_gen.records import Job, JobState

LEASE_US = 30_000_000


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write on a running job. `job` is its state when it was claimed."""

    job: Job
    owner: str
    token: int

    @property
    def job_id(self) -> str:
        return self.job.id


def fence(database: Database, connection: Connection, lease: Lease) -> AnyRow:
    """The job's row, locked until the transaction ends; raises LeaseLost."""
    row = lock_job(database, connection, lease.job_id)
    if row is None or row.lease_token != lease.token or row.state != JobState.RUNNING:
        raise LeaseLost(f"job {lease.job_id} is no longer held by {lease.owner}")
    return row


def lock_job(database: Database, connection: Connection, job_id: str) -> AnyRow | None:
    """The job's row, locked until the transaction ends (SQLite locks the whole file already)."""
    query = sa.select(jobs).where(jobs.c.id == job_id)
    return connection.execute(query if database.is_sqlite else query.with_for_update()).first()

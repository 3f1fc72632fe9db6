"""The history of jobs: append-only lines, read in order after a sequence number.

The row lock on the job that every writer holds makes sequence numbers of one job grow in commit
order, so that a reader who remembers the last number it saw misses nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from db.engine import AnyRow, Database
from db.leases import Lease, fence
from db.schema import job_events
from kernel_gen.records import JobEvent

Data = dict[str, Any]


class Events:
    """The `job_events` table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, lease: Lease, kind: str, data: Data) -> None:
        """One line by the holder of a job; raises LeaseLost."""
        self.append_many(lease, [(kind, data)])

    def append_many(self, lease: Lease, lines: Sequence[tuple[str, Data]]) -> None:
        """Several lines in one transaction; raises LeaseLost."""
        with self._database.write() as connection:
            fence(self._database, connection, lease)
            now = self._database.now_us(connection)
            for kind, data in lines:
                insert_event(connection, lease.job_id, kind, data, now)

    def after(self, job_id: str, sequence: int = 0, limit: int = 500) -> list[JobEvent]:
        """Events of a job with a greater sequence number, oldest first."""
        query = (
            sa.select(job_events)
            .where(job_events.c.job_id == job_id, job_events.c.sequence > sequence)
            .order_by(job_events.c.sequence)
            .limit(limit)
        )
        with self._database.read() as connection:
            return [_event(row) for row in connection.execute(query)]

    def latest(self, job_id: str, kind: str) -> JobEvent | None:
        """The newest event of a kind."""
        found = self.newest(job_id, (kind,), 1)
        return found[0] if found else None

    def newest(self, job_id: str, kinds: Sequence[str], limit: int) -> list[JobEvent]:
        """The last events of some kinds, newest first."""
        query = (
            sa.select(job_events)
            .where(job_events.c.job_id == job_id, job_events.c.kind.in_(kinds))
            .order_by(job_events.c.sequence.desc())
            .limit(limit)
        )
        with self._database.read() as connection:
            return [_event(row) for row in connection.execute(query)]


def insert_event(connection: Connection, job_id: str, kind: str, data: Data, now_us: int) -> None:
    """Append within a transaction that holds the job's row lock."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)
    row = {"job_id": job_id, "kind": kind, "data": text, "created_us": now_us}
    connection.execute(sa.insert(job_events).values(**row))


def _event(row: AnyRow) -> JobEvent:
    return JobEvent(row.sequence, row.job_id, row.kind, row.data, row.created_us)

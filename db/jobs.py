"""Jobs as clients see them: created once per key, listed, cancelled. Terminal states never change.

Drivers claim and finish jobs through `db.queue`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
import uuid_utils
from sqlalchemy.engine import Connection

from db.engine import AnyRow, Database
from db.errors import IdempotencyConflict, NotFound, QuotaExceeded
from db.events import insert_event
from db.leases import lock_job
from db.schema import (
    DEFAULT_TENANT,
    graphs,
    idempotency_keys,
    jobs,
    plan_artifacts,
    plan_heads,
    plans,
    tenants,
)
from kernel_gen.codec import from_json, to_json
from kernel_gen.errors import InvalidInput
from kernel_gen.records import Budget, Failure, Job, JobRequest, JobState
from kernel_gen.runtime.key import PlanKey
from kernel_gen.runtime.serialize import plan_from_json

LIVE = (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True, slots=True)
class Idempotency:
    """A client's key for one request, and the digest of the request's body."""

    key: str
    body_sha256: str


@dataclass(frozen=True, slots=True)
class Created:
    """The job that answers a request; `created` is False where it existed already."""

    job: Job
    created: bool


class Jobs:
    """The `jobs` table, from the client's side."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(
        self,
        request: JobRequest,
        key: PlanKey,
        tenant: str = DEFAULT_TENANT,
        idempotency: Idempotency | None = None,
    ) -> Created:
        """The job for a request: the one already in flight for `key`, one born done where `key`
        has a plan (unless `request.force`, or the request's budget outbids it), else a new one in
        the queue.

        Raises NotFound (graph), IdempotencyConflict, QuotaExceeded.
        """
        return self._database.transact(
            lambda connection: self._create(connection, request, key, tenant, idempotency)
        )

    def _create(
        self,
        connection: Connection,
        request: JobRequest,
        key: PlanKey,
        tenant: str,
        idempotency: Idempotency | None,
    ) -> Created:
        row = self._known(connection, request, key, tenant, idempotency)
        if row is not None:
            created = Created(job_of(row), False)
        else:
            created = Created(self._insert(connection, request, key, tenant), True)
        if idempotency is not None:
            values = {
                "tenant_id": tenant,
                "key": idempotency.key,
                "body_sha256": idempotency.body_sha256,
                "job_id": created.job.id,
                "created_us": self._database.now_us(connection),
            }
            self._database.insert_ignore(connection, idempotency_keys, values)
        return created

    def _known(
        self,
        connection: Connection,
        request: JobRequest,
        key: PlanKey,
        tenant: str,
        idempotency: Idempotency | None,
    ) -> AnyRow | None:
        if idempotency is not None:
            earlier = _earlier(connection, tenant, idempotency)
            if earlier is not None:
                return earlier
        if _answer(connection, request, key) is not None:
            return None  # born done: no need to wait for a job that is in flight by force
        return connection.execute(
            sa.select(jobs).where(
                jobs.c.key == str(key), jobs.c.state.in_(LIVE), ~jobs.c.cancel_requested
            )
        ).first()

    def _insert(
        self, connection: Connection, request: JobRequest, key: PlanKey, tenant: str
    ) -> Job:
        _require_graph(connection, request.graph_digest)
        plan_id = _answer(connection, request, key)
        if plan_id is None:
            _require_room(connection, tenant)
        now = self._database.now_us(connection)
        state = JobState.QUEUED if plan_id is None else JobState.DONE
        row = {
            "id": str(uuid_utils.uuid7()),
            "tenant_id": tenant,
            "graph_id": request.graph_digest,
            "key": str(key),
            "device": request.device,
            "request": to_json(request),
            "state": state.value,
            "priority": request.priority,
            "plan_id": plan_id,
            "created_us": now,
            "updated_us": now,
        }
        stored = connection.execute(sa.insert(jobs).values(**row).returning(*jobs.c)).one()
        insert_event(connection, stored.id, "state", {"state": state.value, "plan": plan_id}, now)
        return job_of(stored)

    def get(self, job_id: str) -> Job:
        """The job; raises NotFound."""
        with self._database.read() as connection:
            row = connection.execute(sa.select(jobs).where(jobs.c.id == job_id)).first()
        if row is None:
            raise NotFound(f"no job {job_id[:64]!r}")
        return job_of(row)

    def list(
        self,
        *,
        tenant: str | None = None,
        state: JobState | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[Job]:
        """Newest first; `before` is the id of the last job of the page before."""
        query = sa.select(jobs).order_by(jobs.c.id.desc()).limit(limit)
        if tenant is not None:
            query = query.where(jobs.c.tenant_id == tenant)
        if state is not None:
            query = query.where(jobs.c.state == state.value)
        if before is not None:
            query = query.where(jobs.c.id < before)
        with self._database.read() as connection:
            return [job_of(row) for row in connection.execute(query)]

    def cancel(self, job_id: str) -> Job:
        """Ask for an end: a queued job ends at once, a running one when its driver sees the wish.

        Idempotent; a job that has ended stays as it is. Raises NotFound.
        """
        with self._database.write() as connection:
            row = lock_job(self._database, connection, job_id)
            if row is None:
                raise NotFound(f"no job {job_id[:64]!r}")
            if JobState(row.state).is_terminal or row.cancel_requested:
                return job_of(row)
            now = self._database.now_us(connection)
            values: dict[str, Any] = {"cancel_requested": True, "updated_us": now}
            if row.state == JobState.QUEUED:
                values["state"] = JobState.CANCELLED.value
            query = sa.update(jobs).where(jobs.c.id == job_id).values(**values).returning(*jobs.c)
            stored = connection.execute(query).one()
            data = {"state": stored.state, "cancel_requested": True}
            insert_event(connection, job_id, "state", data, now)
            return job_of(stored)

    def counts(self) -> dict[str, int]:
        """State -> number of jobs; states without jobs are absent."""
        query = sa.select(jobs.c.state, sa.func.count()).group_by(jobs.c.state)
        with self._database.read() as connection:
            return {str(state): int(count) for state, count in connection.execute(query)}


def job_of(row: AnyRow) -> Job:
    """A row of `jobs` as a value."""
    return Job(
        id=row.id,
        tenant=row.tenant_id,
        key=row.key,
        request=from_json(JobRequest, row.request),
        state=JobState(row.state),
        attempts=row.attempts,
        spent_seconds=row.spent_us / 1e6,
        created_us=row.created_us,
        updated_us=row.updated_us,
        plan_id=row.plan_id,
        error=None if row.error is None else from_json(Failure, row.error),
        cancel_requested=bool(row.cancel_requested),
    )


def _earlier(connection: Connection, tenant: str, idempotency: Idempotency) -> AnyRow | None:
    """The job of the same idempotency key; raises IdempotencyConflict."""
    query = sa.select(idempotency_keys).where(
        idempotency_keys.c.tenant_id == tenant, idempotency_keys.c.key == idempotency.key
    )
    found = connection.execute(query).first()
    if found is None:
        return None
    if found.body_sha256 != idempotency.body_sha256:
        raise IdempotencyConflict(
            f"idempotency key {idempotency.key!r} came before with another body: use a new key"
        )
    return connection.execute(sa.select(jobs).where(jobs.c.id == found.job_id)).one()


def _answer(connection: Connection, request: JobRequest, key: PlanKey) -> str | None:
    """The plan that makes a search for the request needless."""
    if request.force:
        return None
    objects = sa.select(plan_artifacts.c.plan_id).where(plan_artifacts.c.plan_id == plans.c.id)
    query = (
        sa.select(plans.c.id, sa.case((~objects.exists(), plans.c.payload)).label("bare"))
        .join_from(plan_heads, plans)
        .where(plan_heads.c.key == str(key))
    )
    found = connection.execute(query).first()
    if found is None:
        return None
    if found.bare is not None and _is_outbid(found.bare, request.budget):
        return None
    return str(found.id)


def _is_outbid(text: str, budget: Budget) -> bool:
    """Whether the budget outbids a plan without objects: its text is all of it."""
    try:
        return plan_from_json(text, {}).is_outbid(budget)
    except InvalidInput:
        return True  # of another version: nobody here could run it


def _require_graph(connection: Connection, digest: str) -> None:
    if connection.scalar(sa.select(graphs.c.id).where(graphs.c.id == digest)) is None:
        raise NotFound(f"no graph {digest[:64]!r}: submit it first")


def _require_room(connection: Connection, tenant: str) -> None:
    limit = connection.scalar(sa.select(tenants.c.queue_limit).where(tenants.c.id == tenant))
    if limit is None:
        raise NotFound(f"no tenant {tenant!r}")
    live = sa.select(sa.func.count()).where(jobs.c.tenant_id == tenant, jobs.c.state.in_(LIVE))
    if int(connection.scalar(live) or 0) >= limit:
        raise QuotaExceeded(f"tenant {tenant} has {limit} live jobs, as many as it may have")

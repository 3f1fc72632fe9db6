"""Plans: immutable, published in one transaction with their objects and the head of their key.

published --newer plan of the key--> superseded
published | superseded --revoke--> revoked (its key then has no plan until the next publishing)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from db.engine import AnyRow, Database
from db.errors import NotFound
from db.leases import Lease, fence
from db.schema import (
    MAX_ARTIFACT_BYTES,
    PlanStatus,
    artifacts,
    head_epoch,
    plan_artifacts,
    plan_heads,
    plans,
)
from kernel_gen.errors import InternalError, InvalidInput
from kernel_gen.runtime.key import PlanKey
from kernel_gen.runtime.plan import Artifact, Plan, Provenance
from kernel_gen.runtime.plan_text import plan_to_json
from kernel_gen.runtime.requires import minor
from kernel_gen.runtime.serialize import plan_from_json


@dataclass(frozen=True, slots=True)
class PlanRow:
    """What lists show of a plan, without its payload."""

    id: str
    key: str
    target: str
    status: PlanStatus
    measured_us: float
    baseline_us: float
    improved: bool
    budget_seconds: float
    job_id: str | None
    note: str | None
    created_us: int


class Plans:
    """The `plans`, `plan_heads`, `plan_artifacts` and `artifacts` tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def publish(self, plan: Plan, lease: Lease | None = None) -> str:
        """Store a plan and make it the current one of its key; returns its id.

        With a lease the job must still be held (raises LeaseLost). A plan that is stored already
        becomes current again; one that was revoked raises InvalidInput.
        """
        _check_artifacts(plan.artifacts)
        row = _plan_row(plan, None if lease is None else lease.job_id)

        def work(connection: Connection) -> str:
            if lease is not None:
                fence(self._database, connection, lease)
            # The epoch's row lock makes publishers take turns.
            epoch = _next_epoch(connection)
            now = self._database.now_us(connection)
            self._put_artifacts(connection, plan.artifacts, now)
            if self._database.insert_ignore(connection, plans, row | {"created_us": now}):
                _link_artifacts(connection, row["id"], plan.artifacts)
            else:
                _reinstate(connection, row["id"])
            self._move_head(connection, row, epoch)
            return str(row["id"])

        return self._database.transact(work)

    def _put_artifacts(
        self, connection: Connection, built: Sequence[Artifact], now_us: int
    ) -> None:
        for artifact in built:
            row = {"id": artifact.sha256, "data": artifact.data, "created_us": now_us}
            self._database.insert_ignore(connection, artifacts, row)

    def _move_head(self, connection: Connection, row: dict[str, Any], epoch: int) -> None:
        superseded = (
            sa.update(plans)
            .where(plans.c.key == row["key"], plans.c.id != row["id"])
            .where(plans.c.status == PlanStatus.PUBLISHED.value)
            .values(status=PlanStatus.SUPERSEDED.value)
        )
        connection.execute(superseded)
        head = {"plan_id": row["id"], "epoch": epoch}
        moved = sa.update(plan_heads).where(plan_heads.c.key == row["key"]).values(**head)
        if connection.execute(moved).rowcount == 0:
            values = head | {"key": row["key"], "program": row["program"]}
            connection.execute(sa.insert(plan_heads).values(**values))

    def revoke(self, plan_id: str, reason: str) -> PlanRow:
        """Take a plan out of service for good. Idempotent; raises NotFound."""
        with self._database.write() as connection:
            epoch = _next_epoch(connection)
            found = _require(connection, plan_id)
            if found.status == PlanStatus.REVOKED:
                return _plan(found)
            connection.execute(sa.delete(plan_heads).where(plan_heads.c.plan_id == plan_id))
            values = {"status": PlanStatus.REVOKED.value, "note": f"{reason} (epoch {epoch})"}
            query = sa.update(plans).where(plans.c.id == plan_id).values(**values)
            return _plan(connection.execute(query.returning(*_LISTED)).one())

    def get(self, plan_id: str) -> Plan:
        """The whole plan with its objects; raises NotFound, InternalError, UntrustedBundle."""
        text = self.text(plan_id)
        query = (
            sa.select(artifacts.c.id, artifacts.c.data)
            .join_from(plan_artifacts, artifacts)
            .where(plan_artifacts.c.plan_id == plan_id)
        )
        with self._database.read() as connection:
            objects = {row.id: bytes(row.data) for row in connection.execute(query)}
        return plan_from_json(text, objects)

    def text(self, plan_id: str) -> str:
        """Canonical plan JSON without the bytes of its objects; raises NotFound."""
        query = sa.select(plans.c.payload).where(plans.c.id == plan_id)
        with self._database.read() as connection:
            text = connection.scalar(query)
        if text is None:
            raise NotFound(f"no plan {plan_id[:64]!r}")
        if _sha256(text.encode()) != plan_id:
            raise InternalError(f"plan {plan_id}: the stored text does not match its digest")
        return str(text)

    def row(self, plan_id: str) -> PlanRow:
        """What lists show of a plan; raises NotFound."""
        with self._database.read() as connection:
            return _plan(_require(connection, plan_id))

    def head(self, key: str) -> str | None:
        """Id of the current plan of a key."""
        with self._database.read() as connection:
            query = sa.select(plan_heads.c.plan_id).where(plan_heads.c.key == key)
            found = connection.scalar(query)
        return None if found is None else str(found)

    def list(
        self,
        *,
        status: PlanStatus | None = None,
        key: str | None = None,
        before: tuple[int, str] | None = None,
        limit: int = 50,
    ) -> list[PlanRow]:
        """Newest first; `before` is (created_us, id) of the last plan of the page before."""
        query = sa.select(*_LISTED).order_by(plans.c.created_us.desc(), plans.c.id.desc())
        if status is not None:
            query = query.where(plans.c.status == status.value)
        if key is not None:
            query = query.where(plans.c.key == key)
        if before is not None:
            query = query.where(sa.tuple_(plans.c.created_us, plans.c.id) < sa.tuple_(*before))
        with self._database.read() as connection:
            return [_plan(row) for row in connection.execute(query.limit(limit))]

    def artifact(self, sha256: str) -> bytes:
        """Bytes of a built object; raises NotFound."""
        with self._database.read() as connection:
            found = connection.scalar(sa.select(artifacts.c.data).where(artifacts.c.id == sha256))
        if found is None:
            raise NotFound(f"no artifact {sha256[:64]!r}")
        return bytes(found)


_LISTED = (
    plans.c.id,
    plans.c.key,
    plans.c.target,
    plans.c.status,
    plans.c.measured_us,
    plans.c.baseline_us,
    plans.c.improved,
    plans.c.budget_seconds,
    plans.c.job_id,
    plans.c.note,
    plans.c.created_us,
)


def _plan(row: AnyRow) -> PlanRow:
    values = {column.name: getattr(row, column.name) for column in _LISTED}
    return PlanRow(**values | {"status": PlanStatus(row.status), "improved": bool(row.improved)})


def _require(connection: Connection, plan_id: str) -> AnyRow:
    row = connection.execute(sa.select(*_LISTED).where(plans.c.id == plan_id)).first()
    if row is None:
        raise NotFound(f"no plan {plan_id[:64]!r}")
    return row


def _check_artifacts(built: Sequence[Artifact]) -> None:
    for artifact in built:
        if len(artifact.data) > MAX_ARTIFACT_BYTES:
            raise InvalidInput(
                f"artifact {artifact.name} of {len(artifact.data)} bytes: "
                f"at most {MAX_ARTIFACT_BYTES} are stored"
            )
        if _sha256(artifact.data) != artifact.sha256:
            raise InvalidInput(f"artifact {artifact.name} does not match its digest")


def _link_artifacts(connection: Connection, plan_id: str, built: Sequence[Artifact]) -> None:
    for artifact in built:
        row = {"plan_id": plan_id, "name": artifact.name, "artifact_id": artifact.sha256}
        connection.execute(sa.insert(plan_artifacts).values(**row))


def _reinstate(connection: Connection, plan_id: str) -> None:
    query = (
        sa.update(plans)
        .where(plans.c.id == plan_id, plans.c.status != PlanStatus.REVOKED.value)
        .values(status=PlanStatus.PUBLISHED.value)
    )
    if connection.execute(query).rowcount == 0:
        raise InvalidInput(f"plan {plan_id} was revoked and cannot be published again")


def _next_epoch(connection: Connection) -> int:
    query = sa.update(head_epoch).values(value=head_epoch.c.value + 1)
    return int(connection.execute(query.returning(head_epoch.c.value)).scalar_one())


def program_of(key: PlanKey) -> str:
    """The key without its target: plans of one program for several targets share it."""
    return f"{key.graph}:{key.shape}:{key.options}"


def _plan_row(plan: Plan, job_id: str | None) -> dict[str, Any]:
    payload = plan_to_json(plan)
    summary, provenance = plan.summary, plan.provenance
    row = {
        "id": _sha256(payload.encode()),
        "key": str(plan.key),
        "program": program_of(plan.key),
        "target": plan.key.target,
        "status": PlanStatus.PUBLISHED.value,
        "payload": payload,
        "requires": json.dumps(provenance.requires),
        "abi": provenance.abi,
        "torch": minor(provenance.torch),
        "libc": provenance.libc,
        "measured_us": summary.measured_us,
        "baseline_us": summary.baseline_us,
        "improved": summary.improved,
        "budget_seconds": summary.budget_seconds,
        "job_id": job_id,
    }
    return row | {"head": _head_document(row, provenance)}


def _head_document(row: dict[str, Any], provenance: Provenance) -> str:
    """The JSON object that answers a lookup, without the word on how it matched."""
    shown = ("id", "key", "abi", "torch", "libc", "measured_us", "baseline_us")
    document = {name: row[name] for name in (*shown, "improved", "budget_seconds")}
    document["requires"] = list(provenance.requires)
    document["bundle"] = f"/v1/plans/{row['id']}/bundle"
    return json.dumps(document, sort_keys=True, separators=(",", ":"))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()

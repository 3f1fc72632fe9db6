"""The deploy-time question: which plan is there for a key, and may this caller run it?

Answers come from memory; a miss costs one synchronous read on a connection that is held open.
Memory is dropped when the head epoch has moved, which is looked at twice a second at most, so that
every API process notices a published or revoked plan within a second.
"""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

from db.engine import AnyRow, Database
from db.plans import program_of
from db.schema import PlanStatus, head_epoch, jobs, plan_heads, plans
from kernel_gen.errors import Unavailable
from kernel_gen.records import JobState
from kernel_gen.runtime.key import PlanKey, stands_in
from kernel_gen.runtime.plan import Provenance
from kernel_gen.runtime.requires import Caller, unmet

_CAPACITY = 20_000
_EPOCH_SECONDS = 0.5


class MissReason(StrEnum):
    UNKNOWN = "unknown"  # nobody has asked for this program
    TUNING = "tuning"  # a job is on its way
    OTHER_TARGET = "other-target"  # plans exist, for machines that the caller's is not
    VERSION = "version"  # a plan exists, for other versions than the caller has
    REVOKED = "revoked"  # there was one


@dataclass(frozen=True, slots=True)
class Hit:
    """A plan that the caller may run. `match` is "exact", or "compatible": the same program tuned
    for another target whose requirements the caller meets. `body` is the JSON answer."""

    match: str
    plan_id: str
    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class Miss:
    """Why there is no plan; `job_id` is the job that is working on it."""

    reason: MissReason
    job_id: str | None = None


class Lookup:
    """Answers lookups of one process. Thread-safe."""

    def __init__(self, database: Database, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._hits: OrderedDict[tuple[str, Caller], Hit] = OrderedDict()
        self._epoch = -1
        self._looked = -1e9

    def __call__(self, key: str, caller: Caller | None = None) -> Hit | Miss:
        """The answer for a key; raises InvalidInput for a text that is no key."""
        asked = (key, caller or Caller())
        with self._lock:
            self._refresh()
            found = self._hits.get(asked)
            if found is not None:
                self._hits.move_to_end(asked)
                return found
            answer: Hit | Miss = self._read(lambda connection: _answer(connection, *asked))
            if isinstance(answer, Hit):
                self._remember(asked, answer)
            return answer

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _refresh(self) -> None:
        now = self._monotonic()
        if now - self._looked < _EPOCH_SECONDS:
            return
        epoch = self._read(lambda connection: connection.scalar(_EPOCH))
        if epoch != self._epoch:
            self._hits.clear()
            self._epoch = epoch
        self._looked = now

    def _remember(self, asked: tuple[str, Caller], hit: Hit) -> None:
        self._hits[asked] = hit
        if len(self._hits) > _CAPACITY:
            self._hits.popitem(last=False)

    def _read(self, work: Callable[[Connection], Any]) -> Any:
        """Run a read on the held connection, once more on a new one if that has died."""
        try:
            return work(self._held())
        except DBAPIError:
            self._drop()
        try:
            return work(self._held())
        except DBAPIError as error:
            self._drop()
            raise Unavailable(f"database: {str(error.orig).splitlines()[0][:300]}") from error

    def _held(self) -> Connection:
        if self._connection is None:
            self._connection = self._database.autocommitting()
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()
            self._connection = None


_EPOCH = sa.select(head_epoch.c.value)
_HEADS = (
    sa.select(
        plans.c.id,
        plans.c.key,
        plans.c.target,
        plans.c.requires,
        plans.c.abi,
        plans.c.torch,
        plans.c.libc,
        plans.c.head,
        plans.c.measured_us,
    )
    .join_from(plan_heads, plans)
    .where(plan_heads.c.program == sa.bindparam("program"))
)


def _answer(connection: Connection, key: str, caller: Caller) -> Hit | Miss:
    parsed = PlanKey.parse(key)
    rows = connection.execute(_HEADS, {"program": program_of(parsed)}).all()
    exact = [row for row in rows if row.key == key]
    if exact and _fits_exactly(exact[0], caller):
        return _hit(exact[0], "exact")
    compatible = [row for row in rows if row.key != key and _fits(row, parsed, caller)]
    if compatible:
        return _hit(max(compatible, key=_preference), "compatible")
    return _miss(connection, key, rows, exact)


def _fits_exactly(row: AnyRow, caller: Caller) -> bool:
    """The target is the caller's own, so features need no check where none were named."""
    reason = unmet(_provenance(row), caller)
    return reason is None or (reason == "target" and not caller.features)


def _fits(row: AnyRow, key: PlanKey, caller: Caller) -> bool:
    may = stands_in(row.target, key.target)
    return bool(caller.features) and may and unmet(_provenance(row), caller) is None


def _provenance(row: AnyRow) -> Provenance:
    requires = tuple(json.loads(row.requires))
    return Provenance("", (), "", row.abi, row.torch, row.libc, requires)


def _preference(row: AnyRow) -> tuple[int, float]:
    """The most demanding plan that fits, then the fastest."""
    return len(json.loads(row.requires)), -row.measured_us


def _hit(row: AnyRow, match: str) -> Hit:
    body = f'{{"match":"{match}",{row.head[1:]}'.encode()
    return Hit(match, row.id, body, f'"{row.id[:32]}-{match}"')


def _miss(
    connection: Connection, key: str, rows: Sequence[AnyRow], exact: Sequence[AnyRow]
) -> Miss:
    live = (JobState.QUEUED.value, JobState.RUNNING.value)
    query = sa.select(jobs.c.id).where(jobs.c.key == key, jobs.c.state.in_(live))
    job_id = connection.scalar(query.order_by(jobs.c.cancel_requested).limit(1))
    if job_id is not None:
        return Miss(MissReason.TUNING, str(job_id))
    if exact:
        return Miss(MissReason.VERSION)
    revoked = sa.select(plans.c.id).where(
        plans.c.key == key, plans.c.status == PlanStatus.REVOKED.value
    )
    if connection.scalar(revoked.limit(1)) is not None:
        return Miss(MissReason.REVOKED)
    return Miss(MissReason.OTHER_TARGET if rows else MissReason.UNKNOWN)

"""Trials with their measurements, and the loop nests they are about.

A nest's digest is the same wherever the nest recurs, so trials of one job help another.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
import uuid_utils

from db.engine import AnyRow, Database
from db.errors import NotFound
from db.leases import Lease, fence
from db.schema import groups, measurements, trials
from kernel_gen.codec import from_json, to_json
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.records import (
    Failure,
    Measurement,
    Stage,
    Trial,
    TrialKind,
    kind_of_trials,
)
from kernel_gen.runtime.key import PlanKey


class Trials:
    """The `trials`, `measurements` and `groups` tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, lease: Lease, batch: Sequence[Trial]) -> None:
        """Store trials of the held job in one transaction; raises LeaseLost.

        Group and number identify a trial of a job: one that is stored already is left as it is.
        """
        target = PlanKey.parse(lease.job.key).target
        with self._database.write() as connection:
            fence(self._database, connection, lease)
            now = self._database.now_us(connection)
            for trial in batch:
                row = _row(trial, lease.job_id, target, now)
                new = self._database.insert_ignore(connection, trials, row)
                if new and isinstance(trial.result, Measurement):
                    measured = _measurement_row(row["id"], trial.result)
                    connection.execute(sa.insert(measurements).values(**measured))

    def add_groups(self, nests: Sequence[tuple[str, LoopNest, tuple[str, ...]]]) -> None:
        """Store nests as (digest, nest, names of the fused ops); known ones are left alone."""
        with self._database.write() as connection:
            now = self._database.now_us(connection)
            for digest, nest, ops in nests:
                row = {
                    "id": digest,
                    "nest": to_json(nest),
                    "ops": json.dumps(ops),
                    "created_us": now,
                }
                self._database.insert_ignore(connection, groups, row)

    def nest(self, digest: str) -> LoopNest:
        """The nest of a digest; raises NotFound."""
        with self._database.read() as connection:
            found = connection.scalar(sa.select(groups.c.nest).where(groups.c.id == digest))
        if found is None:
            raise NotFound(f"no group {digest[:64]!r}")
        return from_json(LoopNest, found)

    def ops(self, job_id: str) -> dict[str, tuple[str, ...]]:
        """Group digest -> names of its ops, for the groups that a job has tried."""
        tried = sa.select(trials.c.group_id).where(trials.c.job_id == job_id)
        query = sa.select(groups.c.id, groups.c.ops).where(groups.c.id.in_(tried))
        with self._database.read() as connection:
            return {row.id: tuple(json.loads(row.ops)) for row in connection.execute(query)}

    def of_job(
        self, job_id: str, *, after: str = "", limit: int | None = None
    ) -> list[tuple[str, Trial]]:
        """(id, trial) in the order of storing; `after` is the last id of the page before."""
        query = (
            _joined()
            .where(trials.c.job_id == job_id, trials.c.id > after)
            .order_by(trials.c.id)
            .limit(limit)
        )
        with self._database.read() as connection:
            return [(row.id, _trial(row)) for row in connection.execute(query)]

    def of_group(self, digest: str, target: str | None = None, limit: int = 100) -> list[Trial]:
        """Measured trials of a nest from any job, fastest first, for one target if given."""
        query = (
            _joined()
            .where(trials.c.group_id == digest, trials.c.median_us.is_not(None))
            .order_by(trials.c.median_us, trials.c.id)
            .limit(limit)
        )
        if target is not None:
            query = query.where(trials.c.target == target)
        with self._database.read() as connection:
            return [_trial(row) for row in connection.execute(query)]

    def tally(self, job_id: str) -> Counter[tuple[TrialKind, str]]:
        """How many trials of a job, by what they ran and by failure code ("" for measured ones)."""
        columns = (trials.c.template, trials.c.failure_code)
        query = (
            sa.select(*columns, sa.func.count()).where(trials.c.job_id == job_id).group_by(*columns)
        )
        found: Counter[tuple[TrialKind, str]] = Counter()
        with self._database.read() as connection:
            for template, code, count in connection.execute(query):
                found[kind_of_trials(template), str(code or "")] += int(count)
        return found


def _joined() -> sa.Select[*tuple[Any, ...]]:
    return sa.select(*trials.c, measurements.c.payload).join_from(
        trials, measurements, isouter=True
    )


def _row(trial: Trial, job_id: str, target: str, now: int) -> dict[str, Any]:
    failure = trial.result if isinstance(trial.result, Failure) else None
    return {
        "id": str(uuid_utils.uuid7()),
        "job_id": job_id,
        "group_id": trial.group,
        "number": trial.number,
        "target": target,
        "template": trial.template,
        "point": json.dumps(trial.point),
        "predicted_us": trial.predicted_us,
        "median_us": trial.median_us,
        "build_seconds": trial.build_seconds,
        "failure_stage": failure and failure.stage.value,
        "failure_code": failure and failure.code,
        "failure_message": failure and failure.message,
        "created_us": now,
    }


def _measurement_row(trial_id: str, measurement: Measurement) -> dict[str, Any]:
    return {
        "trial_id": trial_id,
        "payload": to_json(measurement),
        "min_us": measurement.min_us,
        "spread": measurement.spread,
    }


def _trial(row: AnyRow) -> Trial:
    result: Measurement | Failure
    if row.payload is not None:
        result = from_json(Measurement, row.payload)
    else:
        result = Failure(Stage(row.failure_stage), row.failure_code, row.failure_message)
    return Trial(
        group=row.group_id,
        number=row.number,
        template=row.template,
        point=tuple((name, choice) for name, choice in json.loads(row.point)),
        result=result,
        predicted_us=row.predicted_us,
        build_seconds=row.build_seconds,
    )

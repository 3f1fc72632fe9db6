"""Tables. Instants are UTC microseconds, enums are text with a check, identifiers are text.

A change here needs a migration in `db/migrations/versions`; a test compares the two.
"""

from __future__ import annotations

from enum import StrEnum

import sqlalchemy as sa

from kernel_gen.records import JobState

_NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = sa.MetaData(naming_convention=_NAMES)

DEFAULT_TENANT = "default"
MAX_ARTIFACT_BYTES = 16 << 20

# SQLite numbers rows by itself only where the key's type is spelt INTEGER.
_Sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")


class Role(StrEnum):
    """What an API key may do; each role may do what those before it may."""

    READ = "read"
    SUBMIT = "submit"
    PUBLISH = "publish"
    ADMIN = "admin"

    @property
    def rank(self) -> int:
        return _RANKS[self]


_RANKS = {role: rank for rank, role in enumerate(Role)}


class PlanStatus(StrEnum):
    PUBLISHED = "published"
    SUPERSEDED = "superseded"
    REVOKED = "revoked"


def _one_of(column: str, values: type[StrEnum]) -> sa.CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return sa.CheckConstraint(f"{column} IN ({listed})", name=column)


def _text(name: str, *args: sa.schema.SchemaItem, key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, *args, primary_key=key, nullable=False)


def _maybe_text(name: str, *args: sa.schema.SchemaItem) -> sa.Column[str]:
    return sa.Column(name, sa.Text, *args, nullable=True)


def _int(name: str, default: str | None = None) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False, server_default=default)


def _maybe_int(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=True)


def _maybe_float(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=True)


def _float(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=False)


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())


tenants = sa.Table(
    "tenants",
    metadata,
    _text("id", key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    _int("queue_limit", "100"),
    _int("created_us"),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    _text("id", key=True),
    _text("tenant_id", sa.ForeignKey("tenants.id")),
    _text("name"),
    _text("role"),
    sa.Column("sha256", sa.Text, nullable=False, unique=True),
    _int("created_us"),
    _maybe_int("revoked_us"),
    _one_of("role", Role),
)

sessions = sa.Table(  # of the dashboard: a browser's cookie stands for a key
    "sessions",
    metadata,
    _text("sha256", key=True),
    _text("key_id", sa.ForeignKey("api_keys.id", ondelete="CASCADE")),
    _int("created_us"),
    _int("expires_us"),
)

graphs = sa.Table(
    "graphs",
    metadata,
    _text("id", key=True),  # digest of the canonical form
    _text("payload"),
    _int("nodes"),
    _int("created_us"),
)

jobs = sa.Table(
    "jobs",
    metadata,
    _text("id", key=True),
    _text("tenant_id", sa.ForeignKey("tenants.id")),
    _text("graph_id", sa.ForeignKey("graphs.id")),
    _text("key"),
    _text("device"),
    _text("request"),
    _text("state"),
    _int("priority", "0"),
    _int("attempts", "0"),
    _int("spent_us", "0"),
    _flag("cancel_requested"),
    _maybe_text("lease_owner"),
    _int("lease_token", "0"),
    _maybe_int("lease_expires_us"),
    _maybe_text("plan_id", sa.ForeignKey("plans.id")),
    _maybe_text("error"),
    _int("created_us"),
    _int("updated_us"),
    _one_of("state", JobState),
    sa.Index(
        # Equal keys in flight are one job. A job that is being cancelled takes nobody in.
        "uq_jobs_key_in_flight",
        "key",
        unique=True,
        sqlite_where=sa.text("state IN ('queued', 'running') AND NOT cancel_requested"),
        postgresql_where=sa.text("state IN ('queued', 'running') AND NOT cancel_requested"),
    ),
    sa.Index("ix_jobs_queue", "state", "priority", "created_us"),
    sa.Index("ix_jobs_tenant", "tenant_id", "id"),
    sa.Index("ix_jobs_graph", "graph_id"),
    sa.Index("ix_jobs_plan", "plan_id"),
)

job_events = sa.Table(
    "job_events",
    metadata,
    sa.Column("sequence", _Sequence, primary_key=True, autoincrement=True),
    _text("job_id", sa.ForeignKey("jobs.id", ondelete="CASCADE")),
    _text("kind"),
    _text("data"),
    _int("created_us"),
    sa.Index("ix_job_events_job", "job_id", "sequence"),
    sqlite_autoincrement=True,
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    _text("tenant_id", sa.ForeignKey("tenants.id"), key=True),
    _text("key", key=True),
    _text("body_sha256"),
    _text("job_id", sa.ForeignKey("jobs.id", ondelete="CASCADE")),
    _int("created_us"),
)

groups = sa.Table(
    "groups",
    metadata,
    _text("id", key=True),  # digest of the loop nest
    _text("nest"),
    _text("ops"),
    _int("created_us"),
)

trials = sa.Table(
    "trials",
    metadata,
    _text("id", key=True),
    _text("job_id", sa.ForeignKey("jobs.id", ondelete="CASCADE")),
    _text("group_id"),  # a nest's digest, or "cover"
    _int("number"),
    _text("target"),
    _text("template"),
    _text("point"),
    _maybe_float("predicted_us"),
    _maybe_float("median_us"),
    _float("build_seconds"),
    _maybe_text("failure_stage"),
    _maybe_text("failure_code"),
    _maybe_text("failure_message"),
    _int("created_us"),
    sa.UniqueConstraint("job_id", "group_id", "number"),
    sa.Index("ix_trials_transfer", "group_id", "target", "median_us"),
)

measurements = sa.Table(
    "measurements",
    metadata,
    _text("trial_id", sa.ForeignKey("trials.id", ondelete="CASCADE"), key=True),
    _text("payload"),  # samples and protocol
    _float("min_us"),
    _float("spread"),
)

plans = sa.Table(
    "plans",
    metadata,
    _text("id", key=True),  # digest of payload
    _text("key"),
    _text("program"),  # the key without its target
    _text("target"),
    _text("status"),
    _text("payload"),  # plan.json
    _text("head"),  # the small JSON document that lookups answer
    _text("requires"),
    _int("abi"),
    _text("torch"),
    _text("libc"),
    _float("measured_us"),
    _float("baseline_us"),
    _flag("improved"),
    _float("budget_seconds"),
    _maybe_text("job_id"),
    _maybe_text("note"),  # why it was revoked
    _int("created_us"),
    _one_of("status", PlanStatus),
    sa.Index("ix_plans_key", "key"),
    sa.Index("ix_plans_program", "program", "status"),
)

plan_heads = sa.Table(
    "plan_heads",
    metadata,
    _text("key", key=True),
    _text("program"),
    _text("plan_id", sa.ForeignKey("plans.id")),
    _int("epoch"),
    sa.Index("ix_plan_heads_program", "program"),
)

head_epoch = sa.Table(  # one row; grows with each change of a head
    "head_epoch",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    _int("value"),
)

artifacts = sa.Table(
    "artifacts",
    metadata,
    _text("id", key=True),  # sha256 of the bytes
    sa.Column("data", sa.LargeBinary, nullable=False),
    _int("created_us"),
    sa.CheckConstraint(f"length(data) <= {MAX_ARTIFACT_BYTES}", name="size"),
)

plan_artifacts = sa.Table(
    "plan_artifacts",
    metadata,
    _text("plan_id", sa.ForeignKey("plans.id", ondelete="CASCADE"), key=True),
    _text("name", key=True),
    _text("artifact_id", sa.ForeignKey("artifacts.id")),
    sa.Index("ix_plan_artifacts_artifact", "artifact_id"),
)

devices = sa.Table(
    "devices",
    metadata,
    _text("id", key=True),  # worker and device, "host:cpu"
    _text("worker"),
    _text("device"),
    _text("target"),
    _text("state"),
    _maybe_text("job_id"),
    _maybe_text("detail"),
    _int("started_us"),
    _int("heartbeat_us"),
)

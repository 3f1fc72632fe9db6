"""Databases of each released schema, with rows in all tables, brought to the newest one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from db import migrate
from db.engine import Database
from db.errors import SchemaMismatch
from db.migrate import differences, head_revision, upgrade
from db.schema import PlanStatus
from db.store import Store
from kernel_gen.records import Failure, JobState, Measurement
from service.app import create_app
from tests.db.released_rows import Rows, fill, read, stored
from tests.db.test_migrate import at_revision
from tests.fixtures.postgres import PostgresServer
from tests.fixtures.server import running, settings

STORED = stored()
# What a later version may do to a schema: a table rebuilt, rows rewritten, a table more.
_NEWER = """\
import sqlalchemy as sa
from alembic import op
revision, down_revision = "9000", {head!r}
def upgrade():
    with op.batch_alter_table("jobs") as jobs:
        jobs.add_column(sa.Column("note", sa.Text, nullable=False, server_default="none"))
    op.execute("UPDATE plans SET note = 'kept' WHERE note IS NULL")
    op.create_table("notes", sa.Column("job_id", sa.Text, sa.ForeignKey("jobs.id")))
"""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """URL of a database without a table."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.create()
    yield url
    server.drop(url)


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Within it the program knows one revision more."""
    scripts = tmp_path / "migrations"
    shutil.copytree(migrate.SCRIPTS, scripts)
    (scripts / "versions" / "v9000_notes.py").write_text(_NEWER.format(head=head_revision()))
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "SCRIPTS", scripts)
        yield patch


def made(url: str, revision: str) -> Rows:
    """A database of an older program, with rows; what it holds."""
    upgrade(url, revision)
    database = Database(url)
    fill(database, STORED[revision])
    rows = read(database)
    database.close()
    assert rows == STORED[revision]
    return rows


def rows_of(url: str) -> Rows:
    database = Database(url)
    try:
        return read(database)
    finally:
        database.close()


def test_each_revision_has_rows_of_each_table() -> None:
    scripts = ScriptDirectory(str(migrate.SCRIPTS))
    assert set(STORED) == {script.revision for script in scripts.walk_revisions()}
    assert all(all(rows.values()) for rows in STORED.values())


@pytest.mark.parametrize("revision", STORED)
def test_rows_of_each_revision_are_read_by_this_program(empty_url: str, revision: str) -> None:
    before = made(empty_url, revision)
    assert upgrade(empty_url) == head_revision()
    after = rows_of(empty_url)
    for table, rows in before.items():
        assert len(after[table]) == len(rows)
    with Store(empty_url) as store:
        assert differences(store.database) == []
        _assert_readable(store)
        _assert_usable(store)


def _assert_readable(store: Store) -> None:
    by_state = {job.state: job for job in store.jobs.list()}
    assert set(by_state) == {JobState.DONE, JobState.RUNNING, JobState.QUEUED}
    done = by_state[JobState.DONE]
    assert store.plans.get(done.plan_id or "").id == done.plan_id
    assert store.graphs.exists(done.request.graph_digest)
    results = [trial.result for _, trial in store.trials.of_job(done.id)]
    assert [type(result) for result in results] == [Measurement, Failure]
    assert store.trials.nest("g0").statements
    assert store.events.after(done.id)[-1].kind == "state"
    assert {row.status for row in store.plans.list()} == set(PlanStatus)
    assert [key.name for key in store.tenants.list_keys()] == ["ci"]
    assert [device.worker for device in store.devices.list()] == ["host"]


def _assert_usable(store: Store) -> None:
    """What waits is claimed, ended and told of behind the old events."""
    lease = store.queue.claim("driver-3")
    assert lease is not None
    assert store.queue.finish(lease, JobState.CANCELLED).state is JobState.CANCELLED
    assert "cancelled" in str(store.events.after(lease.job_id)[-1].data)


def test_a_newer_program_takes_the_rows_along(
    empty_url: str, newer: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Under a revision to come that rebuilds a table, rewrites rows and makes a table."""
    old = max(STORED)
    before = made(empty_url, old)
    assert upgrade(empty_url) == "9000"
    after = rows_of(empty_url)
    assert after.pop("notes") == []
    assert [row.pop("note") for row in after["jobs"]] == ["none"] * len(before["jobs"])
    for row in before["plans"]:
        row["note"] = row["note"] or "kept"
    assert after == before
    newer.undo()
    for use in (Store, upgrade):
        with pytest.raises(SchemaMismatch, match=r"9000, made by a newer version.*: upgrade it"):
            use(empty_url)
    if empty_url.startswith("sqlite"):
        assert rows_of(f"sqlite:///{tmp_path / f'store.db.{old}.bak'}") == STORED[old]


def test_a_service_upgrades_its_file_and_asks_for_the_command_elsewhere(
    empty_url: str, newer: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made(empty_url, max(STORED))
    chosen = settings(tmp_path, empty_url)
    if not empty_url.startswith("sqlite"):
        with pytest.raises(SchemaMismatch, match=r"needs 9000: run `gaf db upgrade`"):
            create_app(chosen)
        upgrade(empty_url)
    with running(chosen) as service:
        assert service.http.get("/v1/health/ready").json() == {"status": "ready"}
        assert len(service.store.jobs.list()) == 3
        assert service.http.get("/v1/jobs").status_code == 401  # its keys came along
    newer.undo()
    with pytest.raises(SchemaMismatch, match="made by a newer version"):
        create_app(chosen)


def test_a_service_whose_database_is_upgraded_under_it_is_not_ready(
    store_url: str, tmp_path: Path
) -> None:
    """Replicas of the old version go on, and tell their balancer to send no more."""
    with running(settings(tmp_path, store_url)) as service:
        assert service.http.get("/v1/health/ready").status_code == 200
        at_revision(store_url, "9000")
        answer = service.http.get("/v1/health/ready")
        assert answer.status_code == 503
        assert "made by a newer version" in answer.json()["detail"]
        assert service.http.get("/v1/jobs").status_code == 200

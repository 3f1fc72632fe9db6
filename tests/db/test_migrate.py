"""Migrations: both databases arrive at the schema, upgrades are guarded."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations

from db import migrate
from db.engine import Database, filesystem_of, parse_url, refuse_network_filesystem
from db.errors import SchemaMismatch
from db.migrate import back_up, current_revision, differences, head_revision, upgrade
from db.store import Store
from db.tenants import Role
from kernel_gen.errors import InternalError, InvalidInput, Unavailable
from tests.fixtures import samples
from tests.fixtures.postgres import PostgresServer

MOUNTS = """\
22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
40 22 0:50 / /mnt/team\\040share rw shared:1 - nfs4 server:/export rw
41 22 0:51 / /mnt/team\\040share/local rw - ext4 /dev/sdb1 rw
"""


def test_the_migrated_schema_is_the_declared_one(store_url: str) -> None:
    database = Database(store_url)
    try:
        assert differences(database) == []
        assert current_revision(database) == head_revision()
    finally:
        database.close()


def test_upgrading_twice_changes_nothing(store_url: str) -> None:
    assert upgrade(store_url) == upgrade(store_url) == head_revision()


def test_sqlite_upgrades_itself_when_opened(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "store.db"
    with Store(f"sqlite:///{path}") as store:
        assert store.jobs.list() == []
    assert path.exists()


def test_processes_that_open_a_new_file_together_all_succeed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"

    def opened(_: int) -> int:
        with Store(url) as store:
            return len(store.jobs.list())

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(opened, range(4))) == [0] * 4


def at_revision(url: str, revision: str) -> None:
    database = Database(url)
    with database.write() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :r"), {"r": revision})
    database.close()


def test_a_database_from_the_future_is_refused_untouched(store_url: str) -> None:
    """On both databases, by readers and by `gaf db upgrade`; upgrading it is no advice here."""
    at_revision(store_url, "9999")
    for use in (Store, upgrade):
        with pytest.raises(SchemaMismatch, match=r"9999, made by a newer version.*: upgrade it"):
            use(store_url)
    database = Database(store_url)
    assert current_revision(database) == "9999"
    database.close()


def test_an_older_sqlite_file_is_upgraded_after_a_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the only revision so far, under a program that knows one more."""
    path, newer, old = tmp_path / "store.db", tmp_path / "migrations", head_revision()
    with Store(f"sqlite:///{path}") as store:
        digest = store.graphs.put(samples.graph())
    shutil.copytree(Path(migrate.__file__).parent / "migrations", newer)
    (newer / "versions" / "v0002_note.py").write_text(
        "import sqlalchemy as sa\nfrom alembic import op\n"
        f"revision, down_revision = 'v0002', {old!r}\n"
        "def upgrade():\n    op.add_column('graphs', sa.Column('note', sa.Text))\n"
    )
    monkeypatch.setattr(migrate, "SCRIPTS", newer)
    with Store(f"sqlite:///{path}") as store:
        assert current_revision(store.database) == "v0002"
        assert store.graphs.exists(digest)
    monkeypatch.undo()
    with pytest.raises(SchemaMismatch, match="newer version"):
        Store(f"sqlite:///{path}")
    with Store(f"sqlite:///{path}.{old}.bak") as kept:
        assert kept.graphs.exists(digest)


@pytest.mark.postgres
def test_postgres_upgrades_only_when_asked(postgres: PostgresServer) -> None:
    url = postgres.create()
    try:
        with pytest.raises(SchemaMismatch, match="gaf db upgrade"):
            Store(url)
        with ThreadPoolExecutor(3) as pool:  # an advisory lock makes them take turns
            assert set(pool.map(upgrade, [url] * 3)) == {head_revision()}
        Store(url).close()
    finally:
        postgres.drop(url)


@pytest.mark.postgres
def test_a_database_without_an_encoding_holds_any_text(postgres: PostgresServer) -> None:
    options = "ENCODING SQL_ASCII LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    postgres.run(f"CREATE DATABASE no_encoding {options}")
    url = postgres.url("no_encoding")
    try:
        upgrade(url)
        with Store(url) as store:
            store.tenants.create_key(store.tenants.create("größer"), "schlüssel", Role.READ)
            assert [key.name for key in store.tenants.list_keys()] == ["schlüssel"]
    finally:
        postgres.drop(url)


def test_urls_name_a_driver() -> None:
    assert parse_url("postgresql://u@h/d").drivername == "postgresql+psycopg"
    assert parse_url("sqlite:////tmp/x.db").database == "/tmp/x.db"


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://h/d", "no url"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        parse_url(url)


def test_passwords_stay_out_of_errors() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_url("oracle://scott:tiger@host/db")
    assert "tiger" not in str(caught.value)


def test_the_file_system_of_a_path_is_its_deepest_mount() -> None:
    assert filesystem_of(Path("/data/a.db"), MOUNTS) == "ext4"
    assert filesystem_of(Path("/mnt/team share/a.db"), MOUNTS) == "nfs4"
    assert filesystem_of(Path("/mnt/team share/local/a.db"), MOUNTS) == "ext4"


def test_a_network_file_system_is_refused() -> None:
    with pytest.raises(InvalidInput, match="nfs4"):
        refuse_network_filesystem(Path("/mnt/team share/a.db"), MOUNTS)
    refuse_network_filesystem(Path("/data/a.db"), MOUNTS)


def test_sqlite_runs_with_a_write_ahead_log_and_foreign_keys(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'store.db'}") as store, store.database.read() as connection:
        assert connection.scalar(sa.text("PRAGMA journal_mode")) == "wal"
        assert connection.scalar(sa.text("PRAGMA foreign_keys")) == 1


def test_a_file_that_is_no_database_or_has_no_place_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    file.write_bytes(b"no database" * 1000)
    with pytest.raises(Unavailable, match="not a database: move the file away"):
        Store(f"sqlite:///{file}")
    with pytest.raises(Unavailable, match=r"folder .*: Not a directory"):
        Store(f"sqlite:///{file}/below/store.sqlite")


def test_rebuilding_a_table_keeps_the_rows_that_refer_to_it(store: Store) -> None:
    program = samples.graph()
    store.graphs.put(program)
    job = store.jobs.create(samples.request(program), samples.key(program)).job
    with store.database.rebuild() as connection:
        operations = Operations(MigrationContext.configure(connection))
        recreate = "always" if store.database.is_sqlite else "auto"
        with operations.batch_alter_table("jobs", recreate=recreate) as jobs:  # type: ignore[arg-type]
            jobs.add_column(sa.Column("extra", sa.Text))
    assert len(store.events.after(job.id)) == 1
    assert store.jobs.get(job.id) == job


def test_a_rebuild_that_breaks_references_changes_nothing(sqlite_url: str) -> None:
    with Store(sqlite_url) as store:
        program = samples.graph()
        store.graphs.put(program)
        with (
            pytest.raises(InternalError, match="refer to nothing"),
            store.database.rebuild() as connection,
        ):
            connection.exec_driver_sql(
                "INSERT INTO job_events (job_id, kind, data, created_us) VALUES ('no', '', '', 0)"
            )
        assert store.events.after("no") == []
        with pytest.raises(sa.exc.IntegrityError), store.database.write() as connection:
            connection.exec_driver_sql(
                "INSERT INTO job_events (job_id, kind, data, created_us) VALUES ('no', '', '', 0)"
            )


def test_sqlite_is_backed_up_while_an_upgrade_holds_its_lock(
    sqlite_url: str, tmp_path: Path
) -> None:
    with Store(sqlite_url) as store:
        digest = store.graphs.put(samples.graph())
        with store.database.rebuild():
            back_up(store.database, "0001")
    copy = f"sqlite:///{tmp_path / 'store.db.0001.bak'}"
    with Store(copy) as restored:
        assert restored.graphs.exists(digest)

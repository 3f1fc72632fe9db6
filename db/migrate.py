"""Schema revisions: what a database is at, and how it gets to the newest.

A private SQLite file upgrades itself when a store opens it, after a backup beside it. PostgreSQL
is upgraded only when asked (`gaf db upgrade`), by one process at a time.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection

from db.engine import Database
from db.errors import SchemaMismatch
from db.schema import metadata

SCRIPTS = Path(__file__).parent / "migrations"
_ADVISORY_LOCK = 0x6761_6631  # "gaf1": one upgrade at a time


def head_revision() -> str:
    """The newest revision that this program knows."""
    return str(ScriptDirectory.from_config(_config()).get_current_head())


def current_revision(database: Database) -> str | None:
    """The revision a database is at, None if it is empty."""
    with database.read() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def upgrade(url: str, revision: str = "head") -> str:
    """Bring the database to `revision`; returns the revision it is at. Raises Unavailable."""
    database = Database(url)
    try:
        return upgrade_database(database, revision)
    finally:
        database.close()


def upgrade_database(database: Database, revision: str = "head") -> str:
    """As `upgrade`, on an open database. Concurrent calls wait for one another."""
    wanted = head_revision() if revision == "head" else revision
    if current_revision(database) == wanted:
        return wanted
    with database.rebuild() as connection:
        _lock(database, connection)
        found = MigrationContext.configure(connection).get_current_revision()
        if found is not None and found != wanted:
            _refuse_unknown(found)
            back_up(database, found)
        command.upgrade(_config(connection), revision)
        return str(MigrationContext.configure(connection).get_current_revision())


def require_current(database: Database) -> None:
    """Raises SchemaMismatch unless the database is at the newest revision."""
    found = current_revision(database)
    if found is not None:
        _refuse_unknown(found)
    if found != head_revision():
        raise SchemaMismatch(
            f"database is at revision {found or 'none'}, this program needs {head_revision()}: "
            "run `gaf db upgrade`"
        )


def differences(database: Database) -> list[object]:
    """What the migrated database lacks against `db.schema`; empty if they agree."""
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, metadata))


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    config.attributes["connection"] = connection
    return config


def _lock(database: Database, connection: Connection) -> None:
    # SQLite's write transaction is lock enough.
    if not database.is_sqlite:
        connection.execute(sa.text("SELECT pg_advisory_xact_lock(:id)"), {"id": _ADVISORY_LOCK})


def _refuse_unknown(found: str) -> None:
    known = {script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()}
    if found not in known:
        raise SchemaMismatch(
            f"database is at revision {found}, made by a newer version of graph-autofusion than "
            "this one: upgrade it, or name another store"
        )


def back_up(database: Database, revision: str) -> None:
    """Copy a SQLite file to FILE.REVISION.bak before it is changed."""
    if not database.is_sqlite:
        return
    source = Path(str(database.url.database))
    target = source.with_name(f"{source.name}.{revision}.bak")
    with sqlite3.connect(source) as old, sqlite3.connect(target) as new:
        old.backup(new)
    old.close()
    new.close()

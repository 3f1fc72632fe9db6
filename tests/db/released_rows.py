"""Databases as released schemas hold them: rows of each revision in a file beside, and back.

`python -m tests.db.released_rows` writes the file of the newest revision; files of older ones stay
as they were written.
"""

from __future__ import annotations

import base64
import json
import tempfile
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from db.engine import Database
from db.jobs import Idempotency
from db.migrate import head_revision
from db.schema import Role
from db.store import Store
from kernel_gen.ir.graph import Graph
from kernel_gen.records import JobState
from tests.fixtures import samples

FOLDER = Path(__file__).parent / "revisions"
Rows = dict[str, list[dict[str, Any]]]


def stored() -> dict[str, Rows]:
    """Revision -> table -> rows, of all files."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}


def fill(database: Database, rows: Rows) -> None:
    """Inserts the rows; the database is at their revision and has only what that made itself."""
    known = _tables(database)
    with database.write() as connection:
        for name in reversed([table.name for table in known.sorted_tables]):
            connection.execute(known.tables[name].delete())
        for table in known.sorted_tables:
            for row in rows.get(table.name, ()):
                connection.execute(table.insert(), _decoded(row))
            _count_on(connection, table)


def _count_on(connection: Connection, table: sa.Table) -> None:
    """PostgreSQL goes on counting behind the rows, as where it has numbered them itself."""
    if connection.dialect.name != "postgresql" or table.name != "job_events":
        return
    connection.exec_driver_sql(
        "SELECT setval(pg_get_serial_sequence('job_events', 'sequence'), max(sequence)) "
        "FROM job_events"
    )


def read(database: Database) -> Rows:
    """All rows of all tables, but for Alembic's own."""
    known = _tables(database)
    with database.read() as connection:
        return {
            table.name: [
                {key: _encoded(item) for key, item in row._mapping.items()}
                for row in connection.execute(table.select().order_by(*table.primary_key))
            ]
            for table in known.sorted_tables
        }


def _tables(database: Database) -> sa.MetaData:
    known = sa.MetaData()
    with database.read() as connection:
        known.reflect(connection)
    known.remove(known.tables["alembic_version"])
    return known


def _encoded(item: Any) -> Any:
    return {"base64": base64.b64encode(item).decode()} if isinstance(item, bytes) else item


def _decoded(row: dict[str, Any]) -> dict[str, Any]:
    return {
        key: base64.b64decode(item["base64"]) if isinstance(item, dict) else item
        for key, item in row.items()
    }


def populate(store: Store) -> None:
    """Something in each table: a key with a session, a device, a job that is done with its trials,
    one that runs and one that waits, plans of which one is superseded and one revoked."""
    tenant = store.tenants.create("team")
    store.tenants.create_session(store.tenants.create_key(tenant, "ci", Role.SUBMIT))
    programs = [samples.graph(rows) for rows in (4, 5, 6)]
    for program in programs:
        store.graphs.put(program)
    _tune(store, programs[0], tenant)
    store.plans.publish(samples.plan(measured_us=8.0))
    revoked = store.plans.publish(samples.plan(target=samples.OTHER_TARGET))
    store.plans.revoke(revoked, "wrong on Tuesdays")
    for program in programs[1:]:
        store.jobs.create(samples.request(program), samples.key(program), tenant)
    running = store.queue.claim("driver-2")
    assert running is not None
    store.devices.heartbeat("host", "cpu", samples.TARGET, "measuring", job_id=running.job_id)


def _tune(store: Store, program: Graph, tenant: str) -> None:
    """A job from its request to its plan."""
    idempotency = Idempotency("key-1", "0" * 64)
    store.jobs.create(samples.request(program), samples.key(program), tenant, idempotency)
    lease = store.queue.claim("driver-1")
    assert lease is not None
    store.trials.add_groups([("g0", samples.nest(), ("add", "relu"))])
    store.trials.add(lease, [samples.trial(0), samples.trial(1, None)])
    plan = store.plans.publish(samples.plan(program), lease)
    store.queue.finish(lease, JobState.DONE, spent_seconds=9.0, plan_id=plan)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/store.db") as store:
        populate(store)
        rows = read(store.database)
    path = FOLDER / f"{head_revision()}.json"
    path.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

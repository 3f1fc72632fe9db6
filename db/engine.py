"""Connections: URLs, engines, transactions and the clock, for SQLite and PostgreSQL.

Everything that differs between the two databases is here or in `db.migrate`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, Connection, Engine, Row, make_url
from sqlalchemy.exc import (
    DatabaseError,
    DataError,
    IntegrityError,
    InterfaceError,
    OperationalError,
)

from kernel_gen.errors import InternalError, InvalidInput, Unavailable

# Execution option of a connection: the statement that begins its transactions on SQLite.
_MODE = "gaf_begin"
_BUSY_MS = 15_000
_RETRIES = 6
# A server that vanished without a word must not hold its callers for the system's minutes. Text is
# UTF-8 also where the database names no encoding (SQL_ASCII), whose text would come back as bytes.
_POSTGRES_OPTIONS = {
    "client_encoding": "utf8",
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
Result = TypeVar("Result")
AnyRow = Row[*tuple[Any, ...]]
# Write-ahead logging shares memory between processes through the file system: not over a network.
_NETWORK_FILESYSTEMS = frozenset(
    """
    nfs nfs4 cifs smb2 smb3 smbfs ncpfs afs ceph glusterfs fuse.glusterfs fuse.sshfs fuse.s3fs
    fuse.rclone davfs lustre gfs gfs2 ocfs2 beegfs gpfs
    """.split()  # noqa: SIM905 - one name a line would fill a page
)


def parse_url(url: str) -> URL:
    """The URL with its driver: bare `postgresql://` means psycopg 3. Raises InvalidInput."""
    try:
        parsed = make_url(url)
    except sa.exc.ArgumentError as error:
        raise InvalidInput(
            "database URL cannot be read; expected sqlite:///FILE or postgresql://USER@HOST/NAME"
        ) from error
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.drivername not in ("sqlite", "sqlite+pysqlite", "postgresql+psycopg"):
        raise InvalidInput(
            f"database {parsed.drivername!r}: expected sqlite:///FILE or postgresql://…"
        )
    if is_sqlite(parsed) and parsed.database in (None, "", ":memory:"):
        raise InvalidInput("SQLite in memory cannot be shared between processes: name a file")
    return parsed


def is_sqlite(url: URL) -> bool:
    return url.get_backend_name() == "sqlite"


def filesystem_of(path: Path, mounts: str) -> str:
    """Type of the file system that holds `path`, from the text of /proc/self/mountinfo."""
    best, kind = "", ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split()
        if len(fields) < 5 or not right:
            continue
        # The kernel writes blanks of a path as octal escapes.
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields[4])
        if path.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, right.split()[0]
    return kind


def refuse_network_filesystem(database: Path, mounts: str | None = None) -> None:
    """Raises InvalidInput where SQLite's write-ahead log would lie on a network file system."""
    if mounts is None:
        source = Path("/proc/self/mountinfo")
        mounts = source.read_text() if source.exists() else ""
    kind = filesystem_of(database.resolve(), mounts)
    if kind in _NETWORK_FILESYSTEMS:
        raise InvalidInput(
            f"{database} lies on a network file system ({kind}), where SQLite's write-ahead log "
            "is not safe: use a local disk or PostgreSQL"
        )


def create_engine(url: URL) -> Engine:
    """An engine with the settings that the store relies on."""
    if not is_sqlite(url):
        engine = sa.create_engine(
            url, pool_size=10, max_overflow=20, pool_pre_ping=True, connect_args=_POSTGRES_OPTIONS
        )
        sa.event.listen(engine, "do_connect", _connect_postgres)
        return engine
    database = Path(str(url.database))
    refuse_network_filesystem(database)
    try:
        database.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(f"database: folder {database.parent}: {error.strerror}") from error
    engine = sa.create_engine(url, connect_args={"timeout": _BUSY_MS / 1000}, max_overflow=20)
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _connect_postgres(_dialect: object, _record: object, given: Any, named: Any) -> Any:
    from db.answering import AnsweringConnection  # loads psycopg, which SQLite goes without

    return AnsweringConnection.connect(*given, **named)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver would begin transactions late and without a lock; `_begin_sqlite` does it.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    mode = connection.get_execution_options().get(_MODE, "BEGIN")
    if mode:
        connection.exec_driver_sql(mode)


_POSTGRES_NOW = sa.text("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")


class Database:
    """An engine with read and write transactions. Thread-safe; not to be used after a fork.

    `clock` gives UTC microseconds; None takes the database server's clock, so that leases do not
    depend on the clocks of several hosts.
    """

    def __init__(self, url: str, clock: Callable[[], int] | None = None) -> None:
        self.url = parse_url(url)
        self.engine = create_engine(self.url)
        self._clock = clock

    @property
    def is_sqlite(self) -> bool:
        return is_sqlite(self.url)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that writes nothing."""
        with _typed_errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction, committed at the end; on SQLite it holds the write lock at once."""
        with (
            _typed_errors(),
            # One that reads first and writes later would fail with "locked" in between.
            self.engine.connect().execution_options(**{_MODE: "BEGIN IMMEDIATE"}) as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def rebuild(self) -> Iterator[Connection]:
        """As `write`, for changes of the schema.

        SQLite changes a table by copying, dropping and renaming it; dropping must not cascade to
        the rows that refer to it. What refers to nothing afterwards raises InternalError.
        """
        if not self.is_sqlite:
            with self.write() as connection, _patient(connection):
                yield connection
            return
        with (
            _typed_errors(),
            self.engine.connect().execution_options(**{_MODE: "BEGIN IMMEDIATE"}) as connection,
        ):
            driver: Any = connection.connection.driver_connection
            driver.execute("PRAGMA foreign_keys=OFF")  # has no effect within a transaction
            try:
                with connection.begin():
                    yield connection
                    if connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
                        raise InternalError("a migration left rows that refer to nothing")
            finally:
                driver.execute("PRAGMA foreign_keys=ON")

    def autocommitting(self) -> Connection:
        """A connection to hold: each read sees what is committed now. The caller closes it."""
        # SQLAlchemy's AUTOCOMMIT would leave the driver in its own mode when it comes back.
        if self.is_sqlite:
            return self.engine.connect().execution_options(**{_MODE: ""})
        return self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")

    def transact(self, work: Callable[[Connection], Result]) -> Result:
        """`work` in a write transaction, run again where another one inserted the same row."""
        for attempt in range(_RETRIES):
            try:
                with self.write() as connection:
                    return work(connection)
            except IntegrityError:
                if attempt == _RETRIES - 1:
                    raise
        raise AssertionError("unreachable")

    def now_us(self, connection: Connection) -> int:
        """UTC microseconds."""
        if self._clock is not None:
            return self._clock()
        if self.is_sqlite:
            return time.time_ns() // 1000
        return int(connection.scalar(_POSTGRES_NOW) or 0)

    def insert_ignore(self, connection: Connection, table: sa.Table, row: dict[str, Any]) -> bool:
        """Insert a row unless one with its primary or unique key exists; True if inserted."""
        insert = sqlite.insert(table) if self.is_sqlite else postgresql.insert(table)
        query = insert.values(**row).on_conflict_do_nothing()
        return connection.execute(query.returning(*table.primary_key.columns)).first() is not None

    def close(self) -> None:
        self.engine.dispose()


@contextmanager
def _patient(connection: Connection) -> Iterator[None]:
    """PostgreSQL may take its time in this block: for another upgrade, or to rewrite a table."""
    driver: Any = connection.connection.driver_connection
    limit, driver.answer_seconds = driver.answer_seconds, None
    try:
        yield
    finally:
        driver.answer_seconds = limit


@contextmanager
def _typed_errors() -> Iterator[None]:
    try:
        yield
    except (OperationalError, InterfaceError) as error:
        raise Unavailable(f"database: {str(error.orig).splitlines()[0][:300]}") from error
    except sa.exc.TimeoutError as error:
        raise Unavailable("database: all connections are busy; try again") from error
    except (DataError, UnicodeEncodeError) as error:
        # A zero character or half a surrogate pair, say.
        raise InvalidInput("a text holds characters that the database cannot store") from error
    except DatabaseError as error:
        if type(error) is not DatabaseError:
            raise
        # SQLite's word for a damaged file has no class of its own.
        raise Unavailable(
            f"database: {error.orig}: move the file away, a new one is made, or put a backup in "
            "its place"
        ) from error

"""`Store`: everything that is kept, behind one object per database."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from db.devices import Devices
from db.engine import Database
from db.events import Events
from db.graphs import Graphs
from db.jobs import Jobs
from db.lookup import Lookup
from db.migrate import require_current, upgrade_database
from db.plans import Plans
from db.queue import Queue
from db.tenants import Tenants
from db.trials import Trials


class Store:
    """One database. Thread-safe; each process opens its own.

    A SQLite file is made or upgraded (after a backup) as needed; PostgreSQL must have been
    upgraded by `gaf db upgrade`, else SchemaMismatch is raised. `clock` gives UTC microseconds
    (tests); by default it is the database server's.
    """

    def __init__(self, url: str, *, clock: Callable[[], int] | None = None) -> None:
        self.database = Database(url, clock)
        try:
            (upgrade_database if self.database.is_sqlite else require_current)(self.database)
        except BaseException:
            self.database.close()
            raise
        self.graphs = Graphs(self.database)
        self.jobs = Jobs(self.database)
        self.queue = Queue(self.database)
        self.events = Events(self.database)
        self.trials = Trials(self.database)
        self.plans = Plans(self.database)
        self.devices = Devices(self.database)
        self.tenants = Tenants(self.database)
        self.lookup = Lookup(self.database)

    def require_current(self) -> None:
        """Raises SchemaMismatch if another version has changed the schema since it was opened."""
        require_current(self.database)

    def close(self) -> None:
        self.lookup.close()
        self.database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

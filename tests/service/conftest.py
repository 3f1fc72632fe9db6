"""Services for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.server import Service, running, settings


@pytest.fixture
def service(store_url: str, tmp_path: Path) -> Iterator[Service]:
    """A service without keys on an empty database, of each kind."""
    with running(settings(tmp_path, store_url)) as started:
        yield started


@pytest.fixture
def sqlite_service(sqlite_url: str, tmp_path: Path) -> Iterator[Service]:
    """A service without keys on an empty SQLite file."""
    with running(settings(tmp_path, sqlite_url)) as started:
        yield started

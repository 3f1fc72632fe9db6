"""Services for the tests of this folder, and a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.fixtures.server import Service, running, settings
from tests.service.browsing import opened

_CHROMIUM = "/usr/bin/chromium"


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


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The system's Chromium; what is expected of a page may take its time on a busy machine."""
    if shutil.which(_CHROMIUM) is None:
        reason = "no Chromium: install the system's chromium package"
        if os.environ.get("GAF_TEST_NO_SKIP") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-background-networking"]
        opened = playwright.chromium.launch(executable_path=_CHROMIUM, args=arguments)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser, sqlite_service: Service) -> Iterator[Page]:
    """A blank page of the service with an empty database."""
    with opened(browser, sqlite_service) as blank:
        yield blank

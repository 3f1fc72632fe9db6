"""Services for the tests of this folder, and a browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.fixtures.server import Service, running, settings

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
    """The system's Chromium."""
    if shutil.which(_CHROMIUM) is None:
        reason = "no Chromium: install the system's chromium package"
        if os.environ.get("GAF_TEST_NO_SKIP") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-background-networking"]
        opened = playwright.chromium.launch(executable_path=_CHROMIUM, args=arguments)
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser, sqlite_service: Service) -> Iterator[Page]:
    """A blank page whose relative URLs are the service's. Errors in the page fail the test, and
    so do requests to any other host."""
    context = browser.new_context(base_url=sqlite_service.url)
    context.set_default_timeout(15_000)
    opened = context.new_page()
    troubles: list[str] = []
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.on("console", lambda line: troubles.append(line.text) if line.type == "error" else None)
    opened.on(
        "request",
        lambda asked: (
            None if asked.url.startswith(sqlite_service.url) else troubles.append(asked.url)
        ),
    )
    yield opened
    context.close()
    assert troubles == []

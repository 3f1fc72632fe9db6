"""A page of a service, watched: errors in it fail the test, and so do requests to other hosts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page

from tests.fixtures.server import Service


@contextmanager
def opened(browser: Browser, service: Service) -> Iterator[Page]:
    """A blank page whose relative URLs are the service's."""
    context = browser.new_context(base_url=service.url)
    context.set_default_timeout(60_000)
    page = context.new_page()
    troubles: list[str] = []
    page.troubles = troubles  # type: ignore[attr-defined] # for tests that provoke some
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda line: troubles.append(line.text) if line.type == "error" else None)
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(service.url) else troubles.append(asked.url),
    )
    yield page
    context.close()
    assert troubles == []


def assert_no_sideways_scroll(page: Page) -> None:
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), page.url


def each_scheme(page: Page, first: str) -> Iterator[str]:
    """Shows the page in the scheme that it was loaded in, and then in the other one."""
    for scheme in sorted(("light", "dark"), key=lambda scheme: scheme != first):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        yield scheme

"""Every address that a page of the dashboard names leads somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from tests.fixtures.searches import searched
from tests.fixtures.server import Service, running, settings

_NAMED = re.compile(r'(?:href|src|data-src|data-fragment|data-refresh)="(/[^"]*)"')


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("links")
    with running(settings(folder, f"sqlite:///{folder}/store.sqlite")) as service:
        searched(service.store, trials=20)
        yield service


def test_links_lead_somewhere(stocked: Service) -> None:
    open_, seen = ["/", "/jobs", "/compare"], set()
    while open_:
        path = open_.pop().partition("#")[0]
        if path in seen:
            continue
        seen.add(path)
        answer = stocked.http.get(path, follow_redirects=True, headers={"accept": "text/html"})
        assert answer.status_code == 200, path
        if answer.headers["content-type"].startswith("text/html"):
            open_ += [unescape(found) for found in _NAMED.findall(answer.text)]
    assert any("/nests/" in path for path in seen)
    assert any("/groups/" in path for path in seen)


def test_the_list_of_jobs_is_found_under_its_own_name_too(stocked: Service) -> None:
    moved = stocked.http.get("/jobs?state=done")
    assert (moved.status_code, moved.headers["location"]) == (308, "/?state=done")

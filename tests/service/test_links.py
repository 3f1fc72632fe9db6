"""Every address that a page of the dashboard names leads somewhere."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from kernel_gen.fusion.group import FrameworkGroup, FusionPlan
from kernel_gen.runtime.plan import UNMEASURED, Unfused
from tests.fixtures import samples
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


def test_a_plan_whose_search_measured_nothing_says_so(stocked: Service) -> None:
    plan = samples.plan()
    bare = (Unfused("add", UNMEASURED, "."),)
    summary = dataclasses.replace(plan.summary, improved=False, unfused=bare)
    groups = tuple(
        FrameworkGroup(g.nodes, g.inputs, g.outputs, UNMEASURED, ".") for g in plan.cover.groups
    )
    poor = dataclasses.replace(
        plan, cover=FusionPlan(groups), kernels=(), artifacts=(), summary=summary
    )
    stocked.store.graphs.put(plan.graph)
    page = stocked.http.get(f"/plans/{stocked.store.plans.publish(poor)}").text
    assert "measured no kernel" in page
    assert "no gain, the framework runs both" in page
    assert "as fast" not in page
    assert "No plan beat the framework" not in page


def test_the_list_of_jobs_is_found_under_its_own_name_too(stocked: Service) -> None:
    moved = stocked.http.get("/jobs?state=done")
    assert (moved.status_code, moved.headers["location"]) == (308, "/?state=done")

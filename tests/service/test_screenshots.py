"""The pictures of docs/dashboard.md.

`make screenshots` tunes a model here and writes them into docs/images, so that the figures in them
are measured. A usual run takes the same pictures of made-up times, to see that it can.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from db.leases import Lease
from kernel_gen.records import COVER_GROUP, Job, JobState
from kernel_gen.runtime.key import PlanKey
from tests.fixtures import samples
from tests.fixtures.searches import network, searched, wide_plan
from tests.fixtures.server import Service, running, settings
from tests.service.browsing import opened

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

DOCS = Path(__file__).parents[2] / "docs"
MEASURED = os.environ.get("GAF_SCREENSHOTS", "")  # URL of a store whose searches were real
_MOST_BYTES = 300_000


@dataclass(frozen=True, slots=True)
class Shot:
    """One picture: `page` names a path of `paths`, `part` the section that is shown, all if
    empty."""

    name: str
    page: str
    part: str = ""
    width: int = 1280
    scheme: str = "light"
    height: int = 900


SHOTS = (
    Shot("live", "running", height=960),
    Shot("nests", "job", "nests-title"),
    Shot("times", "plan", "times-title"),
    Shot("graph", "plan", "graph-title"),
    Shot("graph-dark", "plan", "graph-title", scheme="dark"),
    Shot("roofline", "plan", "roofline-title"),
    Shot("refused", "plan", "unfused-title"),
    Shot("parameters", "nest", "parameters-title"),
    Shot("spread", "nest", "spread-title"),
    Shot("compare", "compare", "pairs-title"),
    Shot("devices", "devices"),
    Shot("narrow", "plan", "times-title", width=360, scheme="dark"),
)


@dataclass(frozen=True, slots=True)
class Pictured:
    """A service, and the lease of the job that runs in it."""

    service: Service
    lease: Lease


@pytest.fixture(scope="module")
def pictured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pictured]:
    """A service with a finished search, two plans, a device, a queue and some lookups."""
    folder: Path = tmp_path_factory.mktemp("pictured")
    with running(settings(folder, MEASURED or f"sqlite:///{folder}/store.sqlite")) as service:
        if not MEASURED:
            searched(service.store, trials=40)
            service.store.plans.publish(wide_plan(nodes=16))
        lease = _repeat(service)
        _occupy(service)
        yield Pictured(service, lease)


def _repeat(service: Service) -> Lease:
    """A running job: what was recorded of a finished one, up to three quarters of its trials."""
    store = service.store
    done = _searched_job(service)
    store.jobs.create(dataclasses.replace(done.request, force=True), PlanKey.parse(done.key))
    lease = store.queue.claim("driver-1")
    assert lease is not None
    tuned = [t for _, t in store.trials.of_job(done.id) if t.group != COVER_GROUP]
    store.trials.add(lease, tuned[: len(tuned) * 3 // 4])
    told = [e for e in store.events.after(done.id) if e.kind in ("progress", "cover")]
    for event in told[: len(told) * 3 // 4]:
        store.events.append(lease, event.kind, json.loads(event.data))
    return lease


def _searched_job(service: Service) -> Job:
    """The job that published the newest plan."""
    row = next(row for row in service.store.plans.list(limit=10) if row.job_id)
    job = service.store.jobs.get(row.job_id or "")
    assert job.state is JobState.DONE
    return job


def _occupy(service: Service) -> None:
    store, program = service.store, network(rows=32)
    store.devices.heartbeat("host-1", "cpu", samples.TARGET, "measuring")
    store.devices.heartbeat("host-2", "cpu", samples.OTHER_TARGET, "idle")
    store.graphs.put(program)
    for target in (samples.TARGET, samples.OTHER_TARGET):
        store.jobs.create(samples.request(program), samples.key(program, target))
    known = [store.plans.list(limit=1)[0].key] * 9
    for key in (*known, str(samples.key(network(8)))):
        service.http.get("/v1/plans/lookup", params={"key": key})


def _paths(pictured: Pictured) -> dict[str, str]:
    """The pages by name; of the stored plans the newest that a job has published."""
    service, store = pictured.service, pictured.service.store
    plans = store.plans.list(limit=10)
    row = next(row for row in plans if row.job_id)
    other = next(plan for plan in plans if plan.id != row.id)
    job = _searched_job(service)
    counts: dict[str, int] = {}
    for _, trial in store.trials.of_job(job.id):
        if trial.median_us is not None and len(trial.point) > 1:
            counts[trial.group] = counts.get(trial.group, 0) + 1
    busiest = max(counts, key=lambda digest: counts[digest])
    return {
        "job": f"/jobs/{job.id}",
        "running": f"/jobs/{pictured.lease.job_id}",
        "plan": f"/plans/{row.id}",
        "nest": f"/jobs/{job.id}/nests/{busiest}",
        "compare": f"/compare?plan={other.id}&plan={row.id}",
        "devices": "/devices",
    }


@pytest.mark.parametrize("shot", SHOTS, ids=lambda shot: shot.name)
def test_a_picture_is_taken(
    browser: Browser, pictured: Pictured, tmp_path: Path, shot: Shot
) -> None:
    folder = DOCS / "images" if MEASURED else tmp_path
    path = folder / f"dashboard-{shot.name}.png"
    pictured.service.store.queue.heartbeat(pictured.lease, 0.0)
    with opened(browser, pictured.service) as page:
        page.emulate_media(color_scheme=shot.scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": shot.width, "height": shot.height})
        page.goto(_paths(pictured)[shot.page])
        if page.locator(".graph").count():
            page.locator(".choice[tabindex]").first.focus()
            page.keyboard.press("Enter")
            expect(page.locator(".detail h3")).to_be_visible()
        if page.locator("#chart").count():
            expect(page.locator("#chart canvas")).to_be_visible()
        if shot.part:
            section = page.locator("section").filter(has=page.locator(f"#{shot.part}"))
            section.screenshot(path=path, animations="disabled")
        else:
            page.evaluate("scrollTo(0, 0)")
            page.screenshot(path=path, animations="disabled")
    data = path.read_bytes()
    width = struct.unpack(">I", data[16:20])[0]
    assert 300 <= width <= shot.width
    assert len(data) < _MOST_BYTES


def test_the_page_on_the_dashboard_shows_each_picture_once() -> None:
    shown = re.findall(r"images/dashboard-([a-z-]+)\.png", (DOCS / "dashboard.md").read_text())
    assert sorted(shown) == sorted(shot.name for shot in SHOTS)
    assert all((DOCS / "images" / f"dashboard-{name}.png").exists() for name in shown)

"""The dashboard in a real browser, against a real server with seeded data."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from db.leases import Lease
from db.schema import DEFAULT_TENANT, Role
from db.store import Store
from kernel_gen.records import Failure, JobState, Stage
from tests.fixtures import samples
from tests.fixtures.server import Service, running, settings
from tests.service.browsing import assert_no_sideways_scroll, each_scheme, opened

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

HOSTILE = "<script>document.title='stolen'</script>"


def claimed(service: Service, rows: int = 4) -> Lease:
    program = samples.graph(rows)
    service.store.graphs.put(program)
    service.store.jobs.create(samples.request(program), samples.key(program))
    lease = service.store.queue.claim("driver-1")
    assert lease is not None
    return lease


def progress(service: Service, lease: Lease, done: int, best_us: float) -> None:
    data = {"phase": "tune-groups", "done": done, "total": 20, "best_us": best_us}
    service.store.events.append(lease, "progress", data | {"remaining_seconds": 4.0})


def test_jobs_are_listed_and_followed_live(page: Page, sqlite_service: Service) -> None:
    page.goto("/")
    expect(page.get_by_text("No jobs")).to_be_visible()
    lease = claimed(sqlite_service)
    row = page.get_by_role("row").filter(has_text="running")  # the list refreshes by itself
    expect(row).to_be_visible()
    row.get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(lease.job_id))
    expect(page.locator("#summary .badge")).to_have_text("running")
    expect(page.locator("#chart-empty")).to_be_visible()

    sqlite_service.store.trials.add(
        lease, [samples.trial(0, 20.0), samples.trial(1, None), samples.trial(2, 12.5)]
    )
    for done, best_us in ((1, 20.0), (3, 12.5)):
        progress(sqlite_service, lease, done, best_us)
    expect(page.locator("#summary")).to_contain_text("12.5 µs expected")
    cover = {"best_us": 14.0, "baseline_us": 30.0, "groups": 2, "remaining_seconds": 4.0}
    sqlite_service.store.events.append(lease, "cover", cover)
    chart = page.locator("#chart")
    expect(chart.locator("canvas")).to_be_visible()
    expect(chart).to_have_attribute("aria-label", "Best latency after 3 trials: 14.0 µs")
    expect(chart.locator(".u-legend")).to_contain_text(re.compile("14.0 µs.*12.5 µs.*30.0 µs"))
    expect(page.get_by_role("row", name="wrong-result kernel 1")).to_be_visible()
    expect(page.locator("#summary")).to_contain_text("4.0 s remaining")
    expect(page.locator("#summary")).to_contain_text("tuning kernels")
    expect(page.locator("#summary")).to_contain_text("14.0 µs from 30.0 µs")

    plan_id = sqlite_service.store.plans.publish(samples.plan(), lease)
    sqlite_service.store.queue.finish(lease, JobState.DONE, plan_id=plan_id)
    expect(page.locator("#summary .badge")).to_have_text("done")
    expect(page.locator("#summary")).to_contain_text("3.00× as fast")
    expect(page.locator(".canvas .cluster")).to_have_count(2)  # the plan replaced the bare graph
    page.locator("#summary").get_by_role("link", name=plan_id[:12]).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(plan_id[:16])


def test_a_failed_job_says_why(page: Page, sqlite_service: Service) -> None:
    lease = claimed(sqlite_service)
    error = Failure(Stage.BUILD, "no-compiler", f"g++ is missing {HOSTILE}")
    sqlite_service.store.queue.finish(lease, JobState.FAILED, error=error)
    page.goto(f"/jobs/{lease.job_id}")
    expect(page.locator("p.error")).to_contain_text("g++ is missing <script>")
    expect(page.get_by_text("no-compiler").first).to_be_visible()
    assert "stolen" not in page.title()


def test_devices_and_filters(page: Page, sqlite_service: Service) -> None:
    sqlite_service.store.devices.heartbeat("host-1", "cpu", samples.TARGET, "measuring")
    claimed(sqlite_service)
    page.goto("/devices")
    expect(page.get_by_role("row").filter(has_text="host-1")).to_contain_text("x86-64-v3")
    page.get_by_role("link", name="Jobs").click()
    page.get_by_role("link", name="failed").click()
    expect(page.get_by_text("No jobs that are failed")).to_be_visible()


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_pages_fit_narrow_and_wide_screens_in_light_and_dark(
    page: Page, sqlite_service: Service, scheme: str, width: int
) -> None:
    lease = claimed(sqlite_service)
    plan_id = sqlite_service.store.plans.publish(samples.plan(), lease)
    progress(sqlite_service, lease, 1, 20.0)
    page.set_viewport_size({"width": width, "height": 800})
    backgrounds = {"light": "rgb(246, 247, 249)", "dark": "rgb(16, 21, 28)"}
    for path in ("/", f"/jobs/{lease.job_id}", "/plans", f"/plans/{plan_id}", "/devices"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        body = page.locator("body")
        for shown in each_scheme(page, scheme):
            assert_no_sideways_scroll(page)
            background = body.evaluate("e => getComputedStyle(e).backgroundColor")
            assert background == backgrounds[shown]


def test_the_keyboard_reaches_content_and_pages(page: Page, sqlite_service: Service) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    current = page.get_by_role("navigation", name="Pages").locator("[aria-current=page]")
    expect(current).to_have_text("Jobs")


def test_every_link_of_the_pages_leads_somewhere(page: Page, sqlite_service: Service) -> None:
    lease = claimed(sqlite_service)
    plan_id = sqlite_service.store.plans.publish(samples.plan(), lease)
    seen, waiting = {"/"}, ["/", f"/jobs/{lease.job_id}", f"/plans/{plan_id}"]
    while waiting:
        path = waiting.pop()
        answer = sqlite_service.http.get(path, headers={"Accept": "text/html"})
        assert answer.status_code == 200, path
        for found in re.findall(r'(?:href|src)="([^"#]+)"', answer.text):
            link = urljoin(path, found.replace("&amp;", "&"))
            assert link.startswith("/"), link
            if link not in seen:
                seen.add(link)
                waiting.append(link)
    assert len(seen) > 15


def test_a_missing_page_is_a_page(page: Page, sqlite_service: Service) -> None:
    answer = sqlite_service.http.get("/jobs/none", headers={"Accept": "text/html"})
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "no job" in answer.text


def test_a_job_is_cancelled_from_its_page(page: Page, sqlite_service: Service) -> None:
    lease = claimed(sqlite_service)
    page.goto(f"/jobs/{lease.job_id}")
    page.get_by_role("button", name="Cancel the job").click()
    expect(page.locator("#summary")).to_contain_text("cancelling")
    assert sqlite_service.store.jobs.get(lease.job_id).cancel_requested
    expect(page.get_by_role("button", name="Cancel the job")).to_have_count(0)


def test_a_click_counts_though_the_summary_changes_meanwhile(
    page: Page, sqlite_service: Service
) -> None:
    lease = claimed(sqlite_service)
    page.goto(f"/jobs/{lease.job_id}")
    page.get_by_role("button", name="Cancel the job").hover()
    page.mouse.down()
    progress(sqlite_service, lease, 1, 20.0)
    expect(page.locator("#chart")).to_have_attribute("aria-label", re.compile("after 1 trial"))
    page.wait_for_timeout(800)  # twice as long as a summary waits for more to show
    page.mouse.up()
    expect(page.locator("#summary")).to_contain_text("cancelling")


def test_the_drawing_of_the_plan_stays_though_that_of_the_graph_comes_later(
    page: Page, sqlite_service: Service
) -> None:
    lease, held = claimed(sqlite_service), list[Route]()
    page.route("**/v1/graphs/*/svg", lambda route: held.append(route))
    page.goto(f"/jobs/{lease.job_id}")
    plan_id = sqlite_service.store.plans.publish(samples.plan(), lease)
    sqlite_service.store.queue.finish(lease, JobState.DONE, plan_id=plan_id)
    expect(page.locator(".canvas .cluster")).to_have_count(2)
    with page.expect_response("**/v1/graphs/*/svg"):
        held.pop().continue_()
    expect(page.locator("#summary .badge")).to_have_text("done")
    expect(page.locator(".canvas .cluster")).to_have_count(2)


def test_the_list_of_jobs_says_what_came_of_them(page: Page, sqlite_service: Service) -> None:
    lease = claimed(sqlite_service)
    plan_id = sqlite_service.store.plans.publish(samples.plan(), lease)
    sqlite_service.store.queue.finish(lease, JobState.DONE, plan_id=plan_id)
    page.goto("/")
    expect(page.get_by_role("row").filter(has_text="done")).to_contain_text("10.0 µs 3.00×")
    page.goto(f"/graphs/{lease.job.request.graph_digest}")
    page.get_by_role("link", name=f"job {lease.job_id[:8]}").click()
    expect(page).to_have_url(re.compile(lease.job_id))


def test_a_reader_logs_in_looks_and_logs_out(
    browser: Browser, sqlite_url: str, tmp_path: Path
) -> None:
    with Store(sqlite_url) as store:
        key = store.tenants.create_key(DEFAULT_TENANT, "reader", Role.READ)
    with running(settings(tmp_path, sqlite_url)) as locked, opened(browser, locked) as page:
        lease = claimed(locked)
        page.goto(f"/jobs/{lease.job_id}")
        page.get_by_label("API key").fill(key)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(lease.job_id)
        expect(page.get_by_role("button", name="Cancel the job")).to_have_count(0)
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("API key")).to_be_visible()


def test_what_a_reader_has_focused_stays_focused(page: Page, sqlite_service: Service) -> None:
    lease = claimed(sqlite_service)
    page.goto(f"/jobs/{lease.job_id}")
    button = page.get_by_role("button", name="Cancel the job")
    button.focus()
    progress(sqlite_service, lease, 1, 20.0)
    expect(page.locator("#summary")).to_contain_text("4.0 s remaining")  # it was replaced
    expect(button).to_be_focused()
    sqlite_service.store.queue.finish(lease, JobState.CANCELLED)
    expect(page.locator("#said")).to_have_text("The job is cancelled")

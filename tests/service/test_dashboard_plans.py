"""Pages of plans in a real browser: large, narrow, by keyboard, in light and dark."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.types import TensorType
from tests.fixtures import samples
from tests.fixtures.searches import Searched, residual, searched, wide_plan
from tests.fixtures.server import Service, running, settings
from tests.service.browsing import assert_no_sideways_scroll, each_scheme, opened

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]

HOSTILE = '<script>document.title="stolen"</script><img src=x onerror=alert(1)>"&'


@dataclasses.dataclass(frozen=True)
class Stocked:
    """A service with the record of a search, and a plan of 400 ops."""

    service: Service
    found: Searched
    wide: str


@pytest.fixture(scope="module")
def stocked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stocked]:
    folder: Path = tmp_path_factory.mktemp("stocked")
    with running(settings(folder, f"sqlite:///{folder}/store.sqlite")) as service:
        found = searched(service.store, trials=40)
        yield Stocked(service, found, service.store.plans.publish(wide_plan()))


@pytest.fixture
def page(browser: Browser, stocked: Stocked) -> Iterator[Page]:
    with opened(browser, stocked.service) as blank:
        yield blank


def test_the_page_leads_from_a_slow_group_to_its_source_and_its_trials(
    page: Page, stocked: Stocked
) -> None:
    page.goto(f"/plans/{stocked.found.plan_id}")
    times = page.get_by_role("region", name="Time by group")
    expect(times.get_by_role("row").filter(has_text="aten.sort.default")).to_contain_text("1.00×")
    expect(page.get_by_role("group", name="kernels against the roofline")).to_be_visible()
    times.get_by_role("row").filter(has_text="compute").get_by_role("link").first.click()
    detail = page.locator(".detail")
    expect(detail).to_be_focused()
    expect(detail.get_by_role("heading", name="Schedule")).to_be_visible()
    expect(detail.get_by_text("Why not one kernel with its neighbours")).to_be_visible()
    expect(page.locator(".cluster.chosen")).to_have_count(1)
    source = detail.locator("details pre").first
    expect(source).to_be_hidden()
    detail.locator("summary").first.click()
    expect(source).to_contain_text("gaf_")
    detail.get_by_role("link", name="What the search tried for it").click()
    expect(page.get_by_role("heading", name="Fastest trials")).to_be_visible()
    expect(page.locator("figure.plot svg circle").first).to_be_visible()
    page.get_by_role("navigation", name="Where this page is").get_by_text("Job").last.click()
    expect(page).to_have_url(re.compile(f"/jobs/{stocked.found.job_id}"))


@pytest.mark.parametrize("answer", ["continue_", "abort"])
def test_a_group_is_shown_though_its_drawing_is_late_or_missing(
    page: Page, stocked: Stocked, answer: str
) -> None:
    held: list[Route] = []
    page.route("**/svg", lambda route: held.append(route))
    page.goto(f"/plans/{stocked.found.plan_id}")
    page.get_by_role("searchbox").fill("sort")
    link = page.get_by_role("region", name="Time by group").get_by_role("link").first
    link.click()
    expect(page.locator(".detail")).to_be_focused()
    expect(page.locator(".found")).to_be_empty()
    getattr(held.pop(), answer)()
    expect(page.locator(".detail").get_by_role("heading").first).to_contain_text(link.inner_text())
    expect(page.locator(".cluster.chosen")).to_have_count(1 if answer == "continue_" else 0)
    expect(page.locator(".found")).to_have_text("1 found" if answer == "continue_" else "")
    page.troubles.clear()  # type: ignore[attr-defined] # the drawing that was refused


def test_four_hundred_ops_are_searched_zoomed_and_chosen(page: Page, stocked: Stocked) -> None:
    page.goto(f"/plans/{stocked.wide}")
    svg = page.locator(".canvas svg")
    expect(svg.locator(".cluster.choice")).to_have_count(100)
    width = float((svg.get_attribute("viewBox") or "").split()[2])
    page.get_by_role("button", name="Zoom in").click()
    assert float((svg.get_attribute("viewBox") or "").split()[2]) < width
    page.get_by_role("searchbox").fill("tanh")
    expect(page.locator(".found")).to_have_text("100 found")
    expect(svg.locator(".node.hit")).to_have_count(100)
    for number in (1, 2):
        page.get_by_role("searchbox").press("Enter")
        expect(page.locator(".found")).to_have_text(f"{number} of 100")
    expect(svg.locator(".node.now")).to_be_in_viewport()
    expect(page.locator(".detail h3")).to_contain_text("1 relu + exp + neg + tanh")
    page.get_by_role("searchbox").fill("nothing like this")
    expect(page.locator(".found")).to_have_text("0 found")


def test_the_graph_is_walked_by_keyboard(page: Page, stocked: Stocked) -> None:
    page.goto(f"/plans/{stocked.wide}")
    canvas = page.locator(".canvas")
    expect(canvas.locator(".cluster.choice")).to_have_count(100)
    canvas.focus()
    before = canvas.locator("svg").get_attribute("viewBox")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("+")
    assert canvas.locator("svg").get_attribute("viewBox") != before
    for _ in range(3):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".detail h3")).to_contain_text("2 relu")
    expect(canvas.locator("#group2")).to_be_in_viewport()
    page.reload()  # the address remembers the group
    expect(page.locator(".detail h3")).to_contain_text("2 relu")


def test_a_mouse_drags_the_drawing_without_choosing(page: Page, stocked: Stocked) -> None:
    page.goto(f"/plans/{stocked.wide}")
    page.locator(".node.choice").first.hover()
    before = page.locator(".canvas svg").get_attribute("viewBox")
    page.mouse.down()
    page.mouse.move(300, 300, steps=4)
    page.mouse.up()
    assert page.locator(".canvas svg").get_attribute("viewBox") != before
    expect(page.locator(".chosen")).to_have_count(0)


def test_two_plans_are_compared_from_the_list(page: Page, stocked: Stocked) -> None:
    page.goto("/plans")
    for plan_id in (stocked.found.plan_id, stocked.wide):
        page.get_by_role("checkbox", name=f"Compare {plan_id[:12]}").check()
    page.get_by_role("button", name="Compare the chosen two").click()
    expect(page.get_by_role("heading", name="Two plans side by side")).to_be_visible()
    expect(page.get_by_text("different programs")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="only in the")).not_to_have_count(0)
    page.goto(f"/compare?plan={stocked.wide}")
    expect(page.get_by_label("First")).to_have_value(stocked.wide)


def test_lookups_are_counted_where_the_queue_is(page: Page, stocked: Stocked) -> None:
    http = stocked.service.http
    keys = [stocked.service.store.plans.row(stocked.wide).key, str(samples.key(samples.graph(77)))]
    for key in keys:
        http.get("/v1/plans/lookup", params={"key": key})
    page.goto("/devices")
    expect(page.get_by_text("of 2 lookups found a plan")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="unknown")).to_contain_text("no plan and no job")


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_every_page_fits(page: Page, stocked: Stocked, scheme: str, width: int) -> None:
    """Loaded in one scheme, and switched to the other."""
    job, plan = stocked.found.job_id, stocked.found.plan_id
    nest = next(iter(stocked.service.store.trials.ops(job)))
    page.set_viewport_size({"width": width, "height": 800})
    paths = [
        f"/plans/{plan}", f"/plans/{stocked.wide}", f"/plans/{plan}/groups/0", f"/jobs/{job}",
        f"/jobs/{job}/nests/{nest}", f"/compare?plan={plan}&plan={stocked.wide}", "/compare",
        f"/graphs/{stocked.found.graph.digest}", "/devices", "/plans", "/",
    ]  # fmt: skip
    for path in paths:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.goto(path)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        if page.locator(".graph").count():
            expect(page.locator(".canvas .node").first).to_be_attached()
        for _ in each_scheme(page, scheme):
            assert_no_sideways_scroll(page)


def hostile_graph() -> Graph:
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (4,)), name=HOSTILE)
    b.output(b.op("relu", x, name=HOSTILE))
    return b.build()


def test_names_of_users_stay_text(page: Page, stocked: Stocked) -> None:
    program = hostile_graph()
    stocked.service.store.graphs.put(program)
    page.goto(f"/graphs/{program.digest}")
    page.locator(".node.choice").first.click()
    expect(page.locator(".detail")).to_contain_text("relu")
    assert page.locator("main script, .canvas script, .canvas image").count() == 0
    assert "stolen" not in page.title()


def test_a_drawing_that_fails_says_so(page: Page, stocked: Stocked) -> None:
    def refuse(route: object) -> None:
        problem = '{"detail": "no Graphviz: install the graphviz-pure package"}'
        route.fulfill(status=503, body=problem)  # type: ignore[attr-defined]

    page.route("**/svg", refuse)
    page.goto(f"/plans/{stocked.wide}")
    expect(page.locator(".canvas .error")).to_contain_text("install the graphviz-pure package")
    page.troubles.clear()  # type: ignore[attr-defined] # the browser logs the 503


def test_a_group_that_cannot_be_fetched_says_so(page: Page, stocked: Stocked) -> None:
    page.route("**/fragment", lambda route: route.abort())
    page.goto(f"/plans/{stocked.wide}")
    page.locator(".cluster.choice").first.click()
    expect(page.locator(".detail .error")).to_have_text("The service does not answer.")
    page.troubles.clear()  # type: ignore[attr-defined] # the browser logs the request


def test_pages_hold_no_inline_code_and_the_policy_allows_none(stocked: Stocked) -> None:
    job, plan = stocked.found.job_id, stocked.found.plan_id
    for path in (f"/plans/{plan}", f"/plans/{plan}/groups/0", f"/jobs/{job}", "/devices"):
        answer = stocked.service.http.get(path, headers={"Accept": "text/html"})
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert not re.search(r"\sstyle=|\son[a-z]+=|<style|<script(?! src=)", answer.text), path


def test_what_is_missing_is_said_in_words(stocked: Stocked) -> None:
    plan, headers = stocked.found.plan_id, {"Accept": "text/html"}
    for path, text in (
        (f"/plans/{plan}/groups/99", "has no group 99"),
        (f"/jobs/{stocked.found.job_id}/nests/none", "has no trials of"),
        (f"/graphs/{stocked.found.graph.digest}/nodes/999/fragment", "has no node 999"),
        (f"/compare?plan={plan}&plan=none", "no plan"),
    ):
        answer = stocked.service.http.get(path, headers=headers)
        assert answer.status_code == 404
        assert text in answer.text
        assert "/plans" in answer.text
    graph = stocked.service.http.get(f"/plans/{plan}/groups/x", headers=headers)
    assert graph.status_code == 422


def test_ten_thousand_ops_are_drawn_searched_and_chosen(page: Page, stocked: Stocked) -> None:
    graph = residual(10_000)
    stocked.service.store.graphs.put(graph)
    page.goto(f"/graphs/{graph.digest}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    picture = page.locator(".canvas svg")
    expect(picture.locator(".node").first).to_be_visible(timeout=120_000)
    page.get_by_role("searchbox").fill("add")
    found = page.locator(".found")
    expect(found).to_have_text("1000 found")
    page.get_by_role("button", name="Next").click()
    expect(found).to_have_text("1 of 1000")
    expect(page.locator(".detail").get_by_role("heading", name="add")).to_be_visible()
    now = page.locator(".canvas .node.now")
    expect(now).to_be_in_viewport()
    before = picture.get_attribute("viewBox")
    page.get_by_role("button", name="Whole").click()
    assert picture.get_attribute("viewBox") != before
    expect(now).to_be_in_viewport()

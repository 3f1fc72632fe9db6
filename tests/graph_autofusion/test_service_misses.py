"""`on_miss` with a real service: eager now and the plan later, errors, a service that is away."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import graph_autofusion as gaf
from graph_autofusion.client import Client
from graph_autofusion.notices import GafWarning
from graph_autofusion.paths import bundle_cache_root
from kernel_gen.ir.graph import Graph
from kernel_gen.records import Failure, JobState, Stage
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.cache import BundleCache
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.trust import Trust
from tests.fixtures.server import Service, running, settings
from tests.fixtures.waits import Waits
from tests.graph_autofusion.quick_plans import SUMMARY, framework_plan, quick_plan

pytestmark = pytest.mark.usefixtures("no_grad")


@pytest.fixture
def no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture
def service(home: Path) -> Iterator[Service]:
    """A trusted service without a driver."""
    db = f"sqlite:///{home}/service/service.sqlite"
    (home / "service").mkdir()
    with running(settings(home / "service", db)) as started:
        with Client(started.url) as client:
            Trust.of_user().add("service", client.public_key())
        yield started


def _drive(service: Service, compiler: Compiler) -> None:
    """What a driver does to the queued job."""
    lease = service.store.queue.claim("driver-1")
    assert lease is not None
    graph = service.store.graphs.get(lease.job.request.graph_digest)
    plan_id = service.store.plans.publish(quick_plan(graph, compiler), lease)
    service.store.queue.finish(lease, JobState.DONE, plan_id=plan_id)


def _model() -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(6)
    return nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval(), torch.randn(4, 8)


def _store(home: Path) -> str:
    return f"sqlite:///{home}/own/store.sqlite"


def _publish(service: Service, plan: Plan) -> None:
    service.store.graphs.put(plan.graph)
    service.store.plans.publish(plan)


def _call_until_hit(fast: gaf.OptimizedModule, x: torch.Tensor, model: nn.Module) -> None:
    deadline = time.monotonic() + 60
    while fast.report.cache == "pending":
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_queue_runs_the_model_and_swaps_the_plan_in(
    service: Service, home: Path, gaf_compiler: Compiler
) -> None:
    model, x = _model()
    fast = gaf.optimize(model, x, service=service.url, store=_store(home), strict=True)
    assert fast.report.cache == "pending"
    torch.testing.assert_close(fast(x), model(x))
    twin = gaf.optimize(model, x, service=service.url, store=_store(home), strict=True)
    assert twin.report.cache == "pending"
    states = [job.state for job in service.store.jobs.list()]
    assert states.count(JobState.QUEUED) == 1
    _drive(service, gaf_compiler)
    for waiting in (fast, twin):
        _call_until_hit(waiting, x, model)
        assert waiting.report.cache == "hit"
        torch.testing.assert_close(waiting(x), model(x), rtol=1e-4, atol=1e-5)


def test_a_fetched_plan_is_kept_as_the_service_signed_it(
    service: Service, home: Path, gaf_compiler: Compiler
) -> None:
    model, x = _model()
    with Client(service.url) as client:
        client.submit(model, x)
    _drive(service, gaf_compiler)
    fast = gaf.optimize(model, x, service=service.url, store=_store(home), on_miss="error")
    assert fast.report.cache == "hit"
    (kept,) = (home / "own" / "bundles" / "plans").iterdir()
    with Client(service.url) as client:
        assert (
            client.bundle(fast.plan.id)["signature.json"] == (kept / "signature.json").read_bytes()
        )
    away = gaf.optimize(model, x, service="http://127.0.0.1:9", store=_store(home), on_miss="error")
    assert away.report.cache == "hit"


def test_a_job_without_a_plan_ends_the_wait(service: Service, home: Path) -> None:
    model, x = _model()
    fast = gaf.optimize(model, x, service=service.url, store=_store(home))
    lease = service.store.queue.claim("driver-1")
    assert lease is not None
    failure = Failure(Stage.BUILD, "no-compiler", "g++ is missing")
    service.store.queue.finish(lease, JobState.FAILED, error=failure)
    with pytest.warns(GafWarning, match="without a plan"):
        _call_until_hit(fast, x, model)
    assert fast.report.cache == "fallback"
    assert "without a plan" in fast.report.reason
    torch.testing.assert_close(fast(x), model(x))


def test_tune_waits_for_the_service(service: Service, home: Path, gaf_compiler: Compiler) -> None:
    model, x = _model()

    def drive_when_queued() -> None:
        while not service.store.jobs.list():
            time.sleep(0.02)
        _drive(service, gaf_compiler)

    driver = threading.Thread(target=drive_when_queued)
    driver.start()
    fast = gaf.optimize(
        model, x, service=service.url, store=_store(home), on_miss="tune", strict=True
    )
    driver.join()
    assert fast.report.cache == "tuned"
    torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)


def test_error_and_eager(service: Service, home: Path) -> None:
    model, x = _model()
    with pytest.raises(gaf.InvalidInput, match="on_miss is 'error'"):
        gaf.optimize(model, x, service=service.url, store=_store(home), on_miss="error")
    fast = gaf.optimize(model, x, service=service.url, store=_store(home), on_miss="eager")
    assert fast.report.cache == "fallback"
    assert "on_miss is 'eager'" in fast.report.reason
    torch.testing.assert_close(fast(x), model(x))
    assert service.store.jobs.list() == []


def test_queue_without_a_service_says_what_is_missing(home: Path) -> None:
    model, x = _model()
    with pytest.raises(gaf.InvalidInput, match="GAF_SERVICE"):
        gaf.optimize(model, x, store=_store(home), on_miss="queue", strict=True)


def test_a_service_that_is_away_or_silent_costs_three_seconds_at_most(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x = _model()
    waits = Waits(monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        for url in ("http://127.0.0.1:9", f"http://127.0.0.1:{silent.getsockname()[1]}"):
            fast = gaf.optimize(model, service=url, store=_store(home))
            waits.seconds = 0.0
            with pytest.warns(GafWarning, match="gave no plan: service .* cannot be reached"):
                y = fast(x)
            assert 0.0 < waits.seconds <= 3.0
            torch.testing.assert_close(y, model(x))
            assert fast.report.cache == "fallback"
            assert "cannot be reached" in fast.report.reason


def test_an_untrusted_service_is_not_run(
    service: Service, home: Path, gaf_compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x = _model()
    with Client(service.url) as client:
        client.submit(model, x)
    _drive(service, gaf_compiler)
    monkeypatch.setenv("GAF_TRUST", str(home / "nobody"))
    with pytest.warns(GafWarning, match="the service gave no plan"):
        fast = gaf.optimize(model, x, service=service.url, store=_store(home))
    assert fast.report.cache == "fallback"
    torch.testing.assert_close(fast(x), model(x))
    with pytest.raises(gaf.UntrustedBundle):
        gaf.optimize(model, x, service=service.url, store=_store(home), on_miss="error")


def test_a_broken_source_falls_back_with_one_warning(home: Path) -> None:
    class Broken:
        def resolve(self, graph: Graph, accepts: object) -> object:
            raise OSError("disk full")

    model, x = _model()
    fast = gaf.optimize(model, store=_store(home))
    fast._gaf_runner.programs.source = Broken()
    with pytest.warns(GafWarning, match="disk full"):
        fast(x)
    fast(x)  # warnings are errors in tests: it does not warn again


def test_a_plan_that_a_longer_search_would_better_is_asked_for_again(
    service: Service, home: Path, gaf_compiler: Compiler
) -> None:
    """Its search had one second and measured nothing; it serves those who would not search more."""
    model, x = _model()
    poor = framework_plan(gaf.capture(model, x), gaf_compiler, SUMMARY)
    _publish(service, poor)

    def optimized(**options: object) -> gaf.OptimizedModule:
        return gaf.optimize(model, x, service=service.url, store=_store(home), **options)

    for options in ({"budget": 1}, {"on_miss": "eager"}, {"on_miss": "error"}):
        assert optimized(**options).report.cache == "hit", options
    assert service.store.jobs.list() == []
    fast = optimized(strict=True)
    assert fast.report.cache == "pending"
    _drive(service, gaf_compiler)
    _call_until_hit(fast, x, model)
    assert fast.plan.kernels
    assert optimized().report.cache == "hit"
    assert len(service.store.jobs.list()) == 1


@pytest.mark.parametrize("options", [{"budget": 1}, {"on_miss": "eager"}, {"on_miss": "error"}])
def test_a_service_is_asked_again_for_a_plan_that_is_no_gain_here(
    service: Service, home: Path, gaf_compiler: Compiler, options: dict[str, Any]
) -> None:
    model, x = _model()
    graph = gaf.capture(model, x)
    own = BundleCache(bundle_cache_root(_store(home)))
    own.put(framework_plan(graph, gaf_compiler, SUMMARY))

    def optimized(url: str) -> gaf.OptimizedModule:
        return gaf.optimize(model, x, service=url, store=_store(home), **options)

    for url in ("http://127.0.0.1:9", service.url):  # one is away, one knows nothing
        assert not optimized(url).plan.kernels
    _publish(service, quick_plan(graph, gaf_compiler))
    assert optimized(service.url).plan.kernels
    assert service.store.jobs.list() == []


def test_a_services_plan_that_is_no_gain_either_takes_no_ones_place(
    service: Service, home: Path, gaf_compiler: Compiler
) -> None:
    model, x = _model()
    graph = gaf.capture(model, x)
    own = framework_plan(graph, gaf_compiler, SUMMARY)
    BundleCache(bundle_cache_root(_store(home))).put(own)
    _publish(service, framework_plan(graph, gaf_compiler, replace(SUMMARY, trials=9)))
    found = gaf.optimize(model, x, service=service.url, store=_store(home), on_miss="error")
    assert found.plan == own

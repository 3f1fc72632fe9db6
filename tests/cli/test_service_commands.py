"""Commands that talk to a service, with and without --json."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

import graph_autofusion as gaf_api
from kernel_gen.records import COVER_GROUP, LIBRARY_TEMPLATE, Failure, JobState, Stage
from kernel_gen.runtime.build import Compiler
from tests.cli.conftest import Gaf
from tests.fixtures import samples
from tests.fixtures.server import Service
from tests.graph_autofusion.quick_plans import quick_plan


@pytest.fixture
def graph_file(home: Path) -> Path:
    graph = gaf_api.capture(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), torch.randn(4, 8))
    path = home / "graph.json"
    path.write_text(graph.to_json())
    return path


def _drive(service: Service, compiler: Compiler) -> str:
    lease = service.store.queue.claim("driver-1")
    assert lease is not None
    graph = service.store.graphs.get(lease.job.request.graph_digest)
    plan_id = service.store.plans.publish(quick_plan(graph, compiler), lease)
    service.store.queue.finish(lease, JobState.DONE, plan_id=plan_id)
    return plan_id


def test_a_job_from_submit_to_revoke(
    gaf: Gaf, service: Service, graph_file: Path, home: Path, gaf_compiler: Compiler
) -> None:
    at = ("--service", service.url)
    job = gaf("submit", graph_file, "--seconds", 3, "--trials", 5, *at, "--json").json
    assert job["state"] == "queued"
    assert job["budget"] == {"seconds": 3.0, "trials": 5}
    key = job["key"]
    missed = gaf("lookup", key, *at, "--json")
    assert (missed.code, missed.json["reason"], missed.json["job_id"]) == (1, "tuning", job["id"])
    assert "works on it" in gaf("lookup", key, *at).output
    assert [row["id"] for row in gaf("jobs", *at, "--json").json] == [job["id"]]
    assert gaf("jobs", "--state", "done", *at, "--json").json == []
    assert job["id"] in gaf("jobs", *at).output
    plan_id = _drive(service, gaf_compiler)
    assert gaf("jobs", job["id"], *at, "--json").json["state"] == "done"
    assert "done" in gaf("jobs", job["id"], *at).output
    assert gaf("lookup", key, *at, "--json").json["plan_id"] == plan_id
    assert [plan["id"] for plan in gaf("plans", *at, "--json").json] == [plan_id]
    assert plan_id[:12] in gaf("plans", "--limit", 5, *at).output
    done = gaf("submit", graph_file, "--wait", *at, "--json")
    assert (done.code, done.json["state"]) == (0, "done")
    assert done.json["report"]["speedup"] == 2.0
    assert service.http.get(done.json["dashboard"]).status_code == 200
    shown = gaf("submit", graph_file, "--wait", *at)  # the service's key is not trusted here
    assert shown.code == 0
    for line in (f"plan id {plan_id}", f"plan {key}", f"dashboard {service.url}/jobs/"):
        assert line in shown.output
    assert "2.0 µs before, 1.0 µs after, speedup 2.00x" in shown.output
    again = gaf("submit", graph_file, "--force", *at, "--json").json
    assert (again["state"], again["force"]) == ("queued", True)
    assert gaf("jobs", again["id"], "--cancel", *at).code == 0
    exported = gaf("export", plan_id, home / "bundle", *at, "--json").json
    assert Path(exported["folder"], "plan.json").is_file()
    assert gaf("export", plan_id, home / "bundle", *at).code == 2
    assert gaf("import", home / "bundle", *at, "--json").json == {"id": plan_id}
    revoked = gaf("plans", "revoke", plan_id, "--reason", "a test", *at, "--json")
    assert revoked.json == {"id": plan_id, "state": "revoked"}
    assert gaf("lookup", key, *at).code == 1


def test_a_failed_job_says_why_and_what_failed_on_its_way(
    gaf: Gaf, service: Service, graph_file: Path
) -> None:
    at = ("--service", service.url)
    job = gaf("submit", graph_file, *at, "--json").json
    lease = service.store.queue.claim("driver-1")
    assert lease is not None
    tried = [samples.trial(0), samples.trial(1, None), samples.trial(2, None)]
    whole = [replace(samples.trial(3), group=COVER_GROUP, template=COVER_GROUP)]
    timed = [replace(samples.trial(4), template=LIBRARY_TEMPLATE)]
    service.store.trials.add(lease, [*tried, *whole, *timed])
    error = Failure(Stage.BUILD, "no-compiler", "g++ is missing")
    service.store.queue.finish(lease, JobState.FAILED, error=error)
    found = gaf("jobs", job["id"], *at, "--json").json
    assert (found["trials"], found["programs"]) == (3, 1)
    (failure,) = found["failures"]
    assert (failure["kind"], failure["code"], failure["count"]) == ("kernel", "wrong-result", 2)
    shown = gaf("jobs", job["id"], *at).output
    for text in ("g++ is missing [no-compiler]", "3 trials of kernels", "wrong-result"):
        assert text in shown
    assert "no-compiler" in gaf("jobs", *at).output
    page = service.http.get(f"/jobs/{job['id']}").text
    assert "<dt>Trials</dt><dd>3</dd>" in page
    assert "<dt>Failed trials</dt><dd>2</dd>" in page


def test_waiting_for_a_job_that_fails_ends_with_1(
    gaf: Gaf, service: Service, graph_file: Path
) -> None:
    def fail() -> None:
        while (lease := service.store.queue.claim("driver-1")) is None:
            time.sleep(0.02)
        error = Failure(Stage.BUILD, "no-compiler", "g++ is missing")
        service.store.queue.finish(lease, JobState.FAILED, error=error)

    driver = threading.Thread(target=fail)
    driver.start()
    found = gaf("submit", graph_file, "--wait", "--service", service.url)
    driver.join()
    assert (found.code, "g++ is missing [no-compiler]" in found.output) == (1, True)
    assert found.errors.startswith("job ")


def test_a_plan_that_is_waited_for_is_shown(
    gaf: Gaf, service: Service, graph_file: Path, gaf_compiler: Compiler
) -> None:
    def drive() -> None:
        while not service.store.jobs.list():
            time.sleep(0.02)
        _drive(service, gaf_compiler)

    driver = threading.Thread(target=drive)
    driver.start()
    found = gaf("submit", graph_file, "--wait", "--service", service.url, "--json")
    driver.join()
    assert (found.code, found.json["state"]) == (0, "done")
    assert found.json["report"]["speedup"] == 2.0


def test_tables_fit_a_terminal(
    gaf: Gaf, service: Service, graph_file: Path, gaf_compiler: Compiler
) -> None:
    at = ("--service", service.url)
    gaf("submit", graph_file, *at)
    plan_id = _drive(service, gaf_compiler)
    gaf("submit", graph_file, "--force", *at)
    for command in ("jobs", "plans"):
        assert max(map(len, gaf(command, *at).output.splitlines())) <= 80, command
    whole = gaf("jobs", *at, "--json").json
    assert whole[-1]["plan"] == plan_id
    assert whole[-1]["key"].startswith("gaf1:")
    shown = plan_id[:12]
    assert shown in gaf("jobs", *at).output
    assert gaf("plans", "revoke", shown, "--reason", "a test", *at, "--json").json["id"] == plan_id


def test_cancel(gaf: Gaf, service: Service, graph_file: Path) -> None:
    at = ("--service", service.url)
    job = gaf("submit", graph_file, *at, "--json").json
    shown = f"{job['id'][:8]}…{job['id'][-6:]}"
    for name in (job["id"][:8], job["id"][:20], shown, job["id"]):
        assert gaf("jobs", name, *at, "--json").json["id"] == job["id"]
    assert gaf("jobs", job["id"][:8], "--cancel", *at, "--json").json["state"] == "cancelled"
    wrong = gaf("jobs", "--cancel", *at)
    assert (wrong.code, wrong.output) == (2, "")
    assert "needs the id" in wrong.errors


def test_devices(gaf: Gaf, service: Service) -> None:
    assert gaf("devices", "--service", service.url, "--json").json == []
    assert gaf("devices", "--service", service.url).code == 0


def test_trust(gaf: Gaf, service: Service) -> None:
    assert gaf("trust", "list", "--json").json == []
    refused = gaf("trust", "add", service.url, "--json")
    assert (refused.code, "--yes" in refused.errors) == (2, True)
    added = gaf("trust", "add", service.url, "--yes", "--json").json
    assert gaf("trust", "list", "--json").json == [added]
    assert added["fingerprint"] in gaf("trust", "list").output


def test_a_service_that_is_away_is_not_trusted(gaf: Gaf) -> None:
    """`test_shell.py` asks it what takes a service."""
    found = gaf("trust", "add", "http://127.0.0.1:9")
    assert found.code == 3
    assert "http://127.0.0.1:9 cannot be reached" in found.errors
    assert "gaf serve" in found.errors


@pytest.mark.parametrize("command", [("worker",), ("driver", "--no-worker")])
def test_a_cluster_that_does_not_answer_is_named(gaf: Gaf, command: tuple[str, ...]) -> None:
    found = gaf(*command, "--address", "127.0.0.1:9")
    assert found.code == 3
    assert "no Ray cluster at 127.0.0.1:9" in found.errors
    assert gaf(*command, "--address", "nope").code == 2


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("lookup", "nonsense"), "not a plan key"),
        (("jobs", "../x"), "is not an id"),
        (("jobs", "--service", "ftp://x"), "expected http://"),
        (("export", "no/such", "folder"), "is not an id"),
        (("import", "/nowhere"), "no bundle at"),
        (("submit", "/nowhere.json"), "No such file"),
        (("submit", "model.onnx"), "no such file"),
        (("submit", "nothing"), "module:callable"),
        (("submit", "no_such_module_here:build"), "cannot import"),
        (("submit", "torch:no_such_thing"), "has no callable"),
        (("submit", "torch.nn:Linear"), "cannot be called without arguments"),
        (("tune", "torch:get_num_threads"), "not (model, example_inputs)"),
        (("tune", "/nowhere.py:build"), "/nowhere.py: no such file"),
        (("tune", "/nowhere.py"), "/nowhere.py: no such file"),
        (("tune", f"{__file__}"), f"name the function: {__file__}:build"),
        (("tune", "torch:rand", "--numerics", "odd"), "'fast' or 'strict'"),
        (("nonsense",), "No such command"),
        (("jobs", "--limit", "0"), "--limit"),
        (("worker",), "--address"),
        (("worker", "--address", "nope"), "expected host:port"),
        (("worker", "--address", "nope:99999"), "expected host:port"),
        (("worker", "--head", "--port", "99999"), "--port"),
        (("serve", "--port", "99999"), "--port"),
    ],
)
def test_wrong_use_ends_with_2_and_a_sentence(
    gaf: Gaf, arguments: tuple[str, ...], says: str
) -> None:
    found = gaf(*arguments)
    assert found.code == 2
    assert says in found.errors
    assert found.output == ""

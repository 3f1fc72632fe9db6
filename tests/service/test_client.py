"""`Client` and `Job` against a real service, and against one that misbehaves."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from graph_autofusion.client import Client
from graph_autofusion.job import parse_events
from kernel_gen.errors import (
    InvalidInput,
    InvalidRules,
    Unavailable,
    UnsupportedModel,
    UntrustedBundle,
)
from kernel_gen.records import Budget, Failure, JobState, Stage
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.requires import this_process
from kernel_gen.runtime.signer import Signer
from kernel_gen.runtime.trust import Trust
from tests.fixtures import samples
from tests.fixtures.server import Service
from tests.fixtures.waits import Waits


@pytest.fixture
def client(sqlite_service: Service, tmp_path: Path) -> Iterator[Client]:
    """A client that trusts the service's key."""
    with Client(sqlite_service.url, trust=Trust(tmp_path / "client-trust")) as opened:
        Trust(tmp_path / "client-trust").add("service", opened.public_key())
        yield opened


def loadable_plan(rows: int = 4, measured_us: float = 10.0) -> Plan:
    """A plan whose key and requirements are this process's own."""
    here = this_process()
    assert here.torch is not None
    return samples.plan(
        samples.graph(rows),
        target=host_target(),
        requires=(),
        torch=here.torch,
        measured_us=measured_us,
    )


def finish(service: Service, plan: Plan | None, error: Failure | None = None) -> None:
    """What a driver does to the only queued job."""
    lease = service.store.queue.claim("driver-1")
    assert lease is not None
    plan_id = None if plan is None else service.store.plans.publish(plan, lease)
    state = JobState.FAILED if error else JobState.DONE
    service.store.queue.finish(lease, state, plan_id=plan_id, error=error)


def test_submit_wait_and_look_up(client: Client, sqlite_service: Service) -> None:
    plan = loadable_plan()
    job = client.submit(plan.graph, budget=Budget(seconds=5, trials=9))
    assert job.key == str(plan.key)
    assert job.state is JobState.QUEUED
    assert job.details["budget"] == {"seconds": 5.0, "trials": 9}
    assert client.lookup(plan.key) is None
    assert client.find(plan.key).job_id == job.id
    with pytest.raises(TimeoutError):
        job.wait(timeout=0.1)
    driver = threading.Thread(target=finish, args=(sqlite_service, plan))
    driver.start()
    assert job.wait(timeout=60) == plan
    driver.join()
    assert job.state is JobState.DONE
    assert client.lookup(plan.key) == client.lookup(str(plan.key)) == plan
    assert client.find(plan.key).match == "exact"
    assert [found["id"] for found in client.plans()] == [plan.id]
    assert client.submit(plan.graph).wait(0) == plan
    assert [found.id for found in client.jobs()][1] == job.id
    assert client.job(job.id).id == job.id


def test_events_come_as_they_happen_until_the_end(client: Client, sqlite_service: Service) -> None:
    job = client.submit(samples.graph())
    lease = sqlite_service.store.queue.claim("driver-1")
    assert lease is not None
    kinds = []
    for event in job.events():
        kinds.append(event["kind"])
        if len(kinds) == 2:
            sqlite_service.store.events.append(lease, "progress", {"done": 3, "best_us": 1.5})
        if event["kind"] == "progress":
            assert (event["done"], event["best_us"]) == (3, 1.5)
            sqlite_service.store.trials.add(lease, [samples.trial(0)])
            sqlite_service.store.queue.finish(lease, JobState.CANCELLED)
    assert kinds == ["state", "state", "progress", "state"]
    assert [trial["number"] for trial in job.trials()] == [0]
    assert job.state is JobState.CANCELLED
    with pytest.raises(Unavailable, match="left no plan"):
        job.wait()


def test_a_failed_job_raises_its_reason(client: Client, sqlite_service: Service) -> None:
    job = client.submit(samples.graph())
    finish(sqlite_service, None, Failure(Stage.BUILD, "no-compiler", "g++ is missing"))
    with pytest.raises(Unavailable, match=r"g\+\+ is missing \[no-compiler\]"):
        job.wait()


def test_cancel(client: Client) -> None:
    job = client.submit(samples.graph())
    job.cancel()
    assert job.state is JobState.CANCELLED


def test_plans_travel_as_folders(client: Client, sqlite_service: Service, tmp_path: Path) -> None:
    plan = loadable_plan()
    sqlite_service.store.plans.publish(plan)
    folder = client.export(plan, tmp_path / "bundle")
    assert (folder / "plan.json").exists()
    assert client.import_(folder) == plan.id
    (folder / "plan.json").write_text("{}")
    with pytest.raises(UntrustedBundle):
        client.import_(folder)
    client.revoke(plan.id, "test")
    assert client.find(plan.key).reason == "revoked"
    with pytest.raises(InvalidInput, match="revoked"):
        client.plan(plan.id)


def test_a_plan_of_a_stranger_is_not_loaded(sqlite_service: Service, tmp_path: Path) -> None:
    plan = loadable_plan()
    sqlite_service.store.plans.publish(plan)
    stranger = Trust(tmp_path / "empty")
    stranger.add("someone", Signer.generate().public.raw)
    with (
        Client(sqlite_service.url, trust=stranger) as client,
        pytest.raises(UntrustedBundle, match="gaf trust add"),
    ):
        client.lookup(plan.key)


def test_refusals_are_typed(client: Client, tmp_path: Path) -> None:
    with pytest.raises(InvalidRules):
        client.submit(samples.graph(), rules="rules: [")
    with pytest.raises(InvalidInput, match="no worker"):
        client.submit(samples.graph(), device="ascend:0")
    with pytest.raises(InvalidInput, match="not-found"):
        client.job("none")
    with pytest.raises(InvalidInput, match="not an id"):
        client.job("../plans")
    with pytest.raises(InvalidInput, match="example_inputs"):
        client.submit(lambda x: x)
    with pytest.raises(InvalidInput, match="no such file"):
        client.submit(tmp_path / "model.onnx")
    (tmp_path / "model.pb").touch()
    with pytest.raises(UnsupportedModel, match="tf2onnx"):
        client.submit(tmp_path / "model.pb")
    with pytest.raises(InvalidInput, match="expected http"):
        Client("localhost:8400")


def test_a_file_of_graph_json_is_submitted(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(samples.graph().to_json())
    assert client.submit(path).details["graph"] == samples.graph().digest


def test_a_service_that_is_away_is_noticed_within_three_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = Waits(monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}") as client, pytest.raises(Unavailable, match="reached"):
        client.devices()
    assert 0.0 < waits.seconds <= 3.0


def flaky(answers: list[Callable[[], httpx2.Response]]) -> httpx2.MockTransport:
    """A transport that gives one answer after the other."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        return answers.pop(0)()

    return httpx2.MockTransport(answer)


def lost() -> httpx2.Response:
    raise httpx2.ConnectError("connection refused")


def test_lost_connections_and_busy_servers_are_tried_again() -> None:
    good = httpx2.Response(200, json={"devices": []})
    answers = [lost, lambda: httpx2.Response(503, json={"detail": "busy"}), lambda: good]
    with Client("http://service", transport=flaky(answers)) as client:
        assert client.devices() == []
    assert answers == []


def test_a_broken_stream_of_events_is_taken_up_where_it_broke() -> None:
    asked: list[str] = []

    def stream(*numbers: int) -> httpx2.Response:
        lines = [
            f"data: {json.dumps({'sequence': n, 'kind': 'log', 'created_us': 0, 'data': {}})}\n\n"
            for n in numbers
        ]
        return httpx2.Response(200, text="".join(lines))

    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/events"):
            asked.append(request.headers["last-event-id"])
            return stream(1, 2) if len(asked) == 1 else stream(3)
        state = "running" if len(asked) < 2 else "done"
        return httpx2.Response(200, json={"id": "j", "state": state})

    with Client("http://service", transport=httpx2.MockTransport(answer)) as client:
        assert [event["sequence"] for event in client.job("j").events()] == [1, 2, 3]
    assert asked == ["0", "2"]


def test_event_lines_are_put_together() -> None:
    data = {"sequence": 4, "kind": "log", "created_us": 9, "data": {"text": "a"}}
    lines = [": comment", "id: 4", "event: log", f"data: {json.dumps(data)}", "", "data: lost"]
    expected = {"sequence": 4, "kind": "log", "created_us": 9, "text": "a"}
    assert list(parse_events(lines)) == [expected]
    with pytest.raises(InvalidInput, match="cannot be read"):
        list(parse_events(["data: {}", ""]))

"""A database that goes away in the middle of work and comes back: nothing is lost."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from db.answering import AnsweringConnection
from db.engine import Database
from db.leases import LEASE_US, Lease
from db.store import Store
from kernel_gen.errors import Unavailable
from kernel_gen.records import Budget, Job, JobRequest, JobState
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.key import plan_key
from tests.fixtures.postgres import OwnPostgres, own_postgres
from tests.fixtures.server import running, settings
from tests.tuner.tuner_jobs import add_relu_graph, steady_times
from tuner.job_runner import JobRunner
from tuner.patience import Patience, StoreAway
from tuner.replay import ReplayDevice

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def own() -> Iterator[OwnPostgres]:
    with own_postgres() as started:
        yield started


@pytest.fixture
def url(own: OwnPostgres) -> str:
    return own.server.create(own.server.template)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store(url) as opened:
        yield opened


def submit(store: Store) -> Job:
    graph = add_relu_graph()
    store.graphs.put(graph)
    request = JobRequest(graph.digest, "cpu", Budget(120.0, 24))
    return store.jobs.create(request, plan_key(graph, host_target())).job


def claim(store: Store) -> Lease:
    lease = store.queue.claim("driver-1")
    assert lease is not None
    return lease


class Interrupted:
    """Results as `steady_times` gives them; `happen` runs once, at the tenth question."""

    def __init__(self, happen: Callable[[], None]) -> None:
        self._happen, self._asked, self._times = happen, 0, steady_times()

    def __call__(self, group: str, template: str, point: object) -> object:
        self._asked += 1
        if self._asked == 10:
            self._happen()
        return self._times(group, template, point)  # type: ignore[arg-type]


def device(happen: Callable[[], None]) -> ReplayDevice:
    return ReplayDevice(host_target(), Interrupted(happen))  # type: ignore[arg-type]


def test_a_job_outlives_a_restart_of_its_database(own: OwnPostgres, store: Store) -> None:
    job, lease, gone = submit(store), claim(store), threading.Event()

    def stop() -> None:
        own.stop()
        gone.set()

    runner = JobRunner(store, lease, device(stop), patience=Patience(60))
    with ThreadPoolExecutor(1) as pool:
        running_job = pool.submit(runner.run)
        assert gone.wait(60)
        time.sleep(1.5)
        own.start()  # here: the server ends with the thread that started it
        state = running_job.result(60)
    assert state is JobState.DONE
    done = store.jobs.get(job.id)
    assert (done.attempts, done.error) == (1, None)
    numbers = [(trial.group, trial.number) for _, trial in store.trials.of_job(job.id)]
    assert len(numbers) == len(set(numbers)) > 10
    assert store.plans.head(job.key) == done.plan_id


def test_a_database_that_stays_away_does_not_fail_the_job(own: OwnPostgres, store: Store) -> None:
    job = submit(store)
    with pytest.raises(StoreAway):
        JobRunner(store, claim(store), device(own.stop), patience=Patience(0.5)).run()
    own.start()
    assert store.jobs.get(job.id).state is JobState.RUNNING
    kept = store.trials.of_job(job.id)
    assert kept
    with Store(own_url(store), clock=lambda: job.created_us + 10 * LEASE_US) as later:
        lease = claim(later)
        assert JobRunner(later, lease, device(lambda: None)).run() is JobState.DONE
        assert later.trials.of_job(job.id)[: len(kept)] == kept


def own_url(store: Store) -> str:
    return store.database.url.render_as_string(hide_password=False)


def test_the_service_says_so_meanwhile_and_goes_on(
    own: OwnPostgres, url: str, tmp_path: Path
) -> None:
    graph = add_relu_graph().to_json()
    json = {"Content-Type": "application/json"}
    with running(settings(tmp_path, url)) as service:
        kept = service.http.post("/v1/graphs", content=graph, headers=json).json()["id"]
        own.stop()
        time.sleep(2.1)  # what the service remembers of callers is forgotten
        answers = [
            service.http.post("/v1/graphs", content=graph, headers=json),
            service.http.get(f"/v1/graphs/{kept}"),
            service.http.get("/v1/health/ready"),
        ]
        for answer in answers:
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
            assert answer.headers["Retry-After"]
        assert service.http.get("/v1/health/live").status_code == 200
        own.start()
        assert service.http.get("/v1/health/ready").status_code == 200
        assert service.http.get(f"/v1/graphs/{kept}").text == graph


def test_a_server_that_hangs_is_given_up_and_found_again(
    own: OwnPostgres, store: Store, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AnsweringConnection, "answer_seconds", 1.0)
    job = submit(store)
    with running(settings(tmp_path, url)) as service:
        assert service.http.get("/v1/health/ready").status_code == 200
        with own.frozen():
            start = time.monotonic()
            with pytest.raises(Unavailable, match=r"no answer|timeout"):
                store.jobs.get(job.id)
            answer = service.http.get("/v1/health/ready")
            assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
            assert time.monotonic() - start < 100
        assert service.http.get("/v1/health/ready").status_code == 200
    assert store.jobs.get(job.id) == job


def test_a_change_of_the_schema_may_take_its_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AnsweringConnection, "answer_seconds", 0.5)
    long = sa.text("SELECT pg_sleep(1.5)")
    with store.database.rebuild() as connection:
        connection.execute(long)
    with pytest.raises(Unavailable, match="no answer"), store.database.read() as connection:
        connection.execute(long)
    with store.database.read() as connection:
        assert connection.scalar(sa.text("SELECT 1")) == 1


def test_a_server_that_swallows_packets_is_given_up() -> None:
    """An address whose listener never answers stands for a host behind a dead network."""
    with socket.create_server(("127.0.0.1", 0), backlog=1) as silent:
        port = silent.getsockname()[1]
        database = Database(f"postgresql://nobody@127.0.0.1:{port}/x")
        start = time.monotonic()
        with pytest.raises(Unavailable, match="timeout"), database.read():
            pass
        assert time.monotonic() - start < 100
        database.close()

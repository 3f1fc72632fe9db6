"""The driver as a process of its own: ends in order, and loses nothing when it is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import sqlalchemy as sa

from db.schema import jobs
from db.store import Store
from kernel_gen.records import Budget, Job, JobRequest, JobState
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.key import plan_key
from tests.tuner.tuner_jobs import add_relu_graph

pytestmark = [pytest.mark.ray, pytest.mark.slow]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/store.db") as opened:
        yield opened


class Drivers:
    """Starts drivers and finds every process they have left behind."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._mark = uuid.uuid4().hex
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "GAF_TEST_MARK": self._mark}
        command = [sys.executable, "-P", "-m", "tuner.driver", "--db", self._url]
        process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
        self._started.append(process)
        return process

    def stop(self) -> None:
        """End everything that was started."""
        for process in self.alive():
            process.kill()
        for started in self._started:
            started.wait()

    def alive(self) -> list[psutil.Process]:
        return [p for p in psutil.process_iter() if self._is_ours(p)]

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            return (
                process.status() != psutil.STATUS_ZOMBIE
                and process.environ().get("GAF_TEST_MARK") == self._mark
            )
        except psutil.Error:
            return False


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[Drivers]:
    made = Drivers(f"sqlite:///{tmp_path}/store.db")
    yield made
    made.stop()


def submit(store: Store, seconds: float, elems: int = 4096, trials: int | None = None) -> Job:
    graph = add_relu_graph(elems)
    store.graphs.put(graph)
    request = JobRequest(graph.digest, "cpu", Budget(seconds, trials))
    return store.jobs.create(request, plan_key(graph, host_target())).job


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "gave up waiting"
        time.sleep(0.05)


def expire_leases(store: Store) -> None:
    """As if the thirty seconds of every lease had passed."""
    with store.database.write() as connection:
        connection.execute(sa.update(jobs).values(lease_expires_us=1))


def test_a_driver_cancels_finishes_and_gives_back(store: Store, drivers: Drivers) -> None:
    driver = drivers.start()
    _cancel_in_mid_job(store)
    _run_to_the_end(store)
    wait_for(lambda: store.devices.list()[0].state == "idle")
    job = submit(store, seconds=600.0, elems=1 << 17)
    wait_for(lambda: store.trials.tally(job.id).total() > 4)
    driver.send_signal(signal.SIGTERM)
    assert driver.wait(30) == 0
    released = store.jobs.get(job.id)
    assert released.state is JobState.QUEUED
    assert released.attempts == 0
    assert released.spent_seconds > 0
    assert store.devices.list() == []
    wait_for(lambda: drivers.alive() == [])


def _cancel_in_mid_job(store: Store) -> None:
    job = submit(store, seconds=600.0, elems=1 << 16)
    wait_for(lambda: store.trials.tally(job.id).total() > 4)
    store.jobs.cancel(job.id)
    wait_for(lambda: store.jobs.get(job.id).state.is_terminal)
    assert store.jobs.get(job.id).state is JobState.CANCELLED
    assert store.trials.tally(job.id).total() > 4


def _run_to_the_end(store: Store) -> None:
    job = submit(store, seconds=60.0, trials=4)
    wait_for(lambda: store.jobs.get(job.id).state.is_terminal)
    done = store.jobs.get(job.id)
    assert done.state is JobState.DONE, done.error
    assert done.plan_id is not None
    assert store.plans.get(done.plan_id).key == plan_key(add_relu_graph(), host_target())


def test_a_killed_driver_loses_nothing_and_another_goes_on(store: Store, drivers: Drivers) -> None:
    job = submit(store, seconds=60.0, trials=12)
    first = drivers.start()
    wait_for(lambda: store.trials.tally(job.id).total() > 4)
    first.kill()
    first.wait()
    kept = store.trials.of_job(job.id)
    wait_for(lambda: drivers.alive() == [])
    expire_leases(store)
    second = drivers.start()
    wait_for(lambda: store.jobs.get(job.id).state.is_terminal)
    done = store.jobs.get(job.id)
    assert done.state is JobState.DONE, done.error
    assert done.attempts == 2
    after = store.trials.of_job(job.id)
    assert after[: len(kept)] == kept
    second.send_signal(signal.SIGTERM)
    assert second.wait(20) == 0

"""A driver killed with SIGKILL at a random moment of a job: the job goes on and ends right."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from db.store import Store
from kernel_gen.records import JobState
from tests.tuner.test_driver import Drivers, expire_leases, submit, wait_for

_LONGEST = 12.0  # seconds a small job takes, Ray's start included


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(f"sqlite:///{tmp_path}/store.db") as opened:
        yield opened


@pytest.fixture
def drivers(tmp_path: Path) -> Iterator[Drivers]:
    made = Drivers(f"sqlite:///{tmp_path}/store.db")
    yield made
    made.stop()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("number", range(50))
def test_a_job_ends_right_wherever_its_driver_is_killed(
    store: Store, drivers: Drivers, number: int
) -> None:
    job = submit(store, seconds=60.0, trials=12)
    first = drivers.start()
    time.sleep(random.Random(number).uniform(0.0, _LONGEST))
    first.kill()
    first.wait()
    kept = store.trials.of_job(job.id)
    wait_for(lambda: drivers.alive() == [], 200)
    expire_leases(store)
    drivers.start()
    wait_for(lambda: store.jobs.get(job.id).state.is_terminal, 500)
    done = store.jobs.get(job.id)
    assert done.state is JobState.DONE, done.error
    assert done.plan_id is not None
    assert store.plans.head(done.key) == done.plan_id
    assert store.trials.of_job(job.id)[: len(kept)] == kept

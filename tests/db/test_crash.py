"""Processes that are killed in the middle of their work, on both databases."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from db.leases import LEASE_US
from db.store import Store
from kernel_gen.records import JobState
from tests.fixtures import samples

# Runs one step of a driver and dies when everything of the step is written but not committed.
DIE_BEFORE_COMMIT = """
import os, signal, sys
import sqlalchemy as sa
from db.store import Store
from tests.fixtures import samples

store = Store(sys.argv[1])
lease = store.queue.claim("doomed") if sys.argv[2] != "claim" else None
die = lambda connection: os.kill(os.getpid(), signal.SIGKILL)
sa.event.listen(store.database.engine, "commit", die)
steps = {
    "claim": lambda: store.queue.claim("doomed"),
    "trials": lambda: store.trials.add(lease, [samples.trial(n) for n in range(50)]),
    "publish": lambda: store.plans.publish(samples.plan(), lease),
    "heartbeat": lambda: store.queue.heartbeat(lease, 5.0),
}
steps[sys.argv[2]]()
"""

DIE_AFTER_COMMIT = """
import os, signal, sys
from db.store import Store
from tests.fixtures import samples

store = Store(sys.argv[1])
lease = store.queue.claim("doomed")
store.trials.add(lease, [samples.trial(n) for n in range(5)])
store.queue.heartbeat(lease, 4.5)
store.plans.publish(samples.plan(), lease)
os.kill(os.getpid(), signal.SIGKILL)
"""


def queue_one(store: Store) -> str:
    program = samples.graph()
    store.graphs.put(program)
    return store.jobs.create(samples.request(program), samples.key(program)).job.id


def run_and_die(code: str, *arguments: str) -> None:
    done = subprocess.run([sys.executable, "-c", code, *arguments], timeout=60, check=False)
    assert done.returncode == -9


@pytest.mark.parametrize("step", ["claim", "trials", "publish", "heartbeat"])
def test_a_step_that_is_killed_leaves_nothing_behind(
    store: Store, store_url: str, step: str
) -> None:
    job_id = queue_one(store)
    run_and_die(DIE_BEFORE_COMMIT, store_url, step)
    assert store.trials.tally(job_id).total() == 0
    assert store.plans.list() == []
    job = store.jobs.get(job_id)
    assert job.state is (JobState.QUEUED if step == "claim" else JobState.RUNNING)
    assert job.spent_seconds == 0.0
    # Its locks are gone: others go on at once.
    assert store.jobs.cancel(job_id).cancel_requested


def test_what_was_acknowledged_outlives_the_process(store: Store, store_url: str) -> None:
    job_id = queue_one(store)
    run_and_die(DIE_AFTER_COMMIT, store_url)
    assert store.trials.tally(job_id).total() == 5
    assert store.plans.head(str(samples.plan().key)) == samples.plan().id
    assert store.queue.claim("early") is None  # the lease still runs
    later = Store(store_url, clock=lambda: store.jobs.get(job_id).updated_us + LEASE_US + 1)
    with later:
        lease = later.queue.claim("next")
        assert lease is not None
        assert (lease.job_id, lease.job.spent_seconds) == (job_id, 4.5)
        later.trials.add(lease, [samples.trial(4), samples.trial(5)])
        assert later.trials.tally(job_id).total() == 6
        later.queue.finish(lease, JobState.DONE, plan_id=samples.plan().id)
    states = [json.loads(event.data)["state"] for event in store.events.after(job_id)]
    assert states == ["queued", "running", "queued", "running", "done"]

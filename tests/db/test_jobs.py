"""Jobs from creation to their end, on both databases."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from db.errors import IdempotencyConflict, LeaseLost, NotFound, QuotaExceeded
from db.jobs import Idempotency
from db.leases import LEASE_US, Lease
from db.queue import MAX_ATTEMPTS
from db.schema import DEFAULT_TENANT, PlanStatus, plans
from db.store import Store
from kernel_gen.errors import InvalidInput
from kernel_gen.records import Budget, Failure, Job, JobState, Stage
from kernel_gen.runtime.plan_text import plan_to_json
from tests.fixtures import samples


class Clock:
    """UTC microseconds that move only when told."""

    def __init__(self) -> None:
        self.now_us = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.now_us


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(store_url: str, clock: Clock) -> Iterator[Store]:
    with Store(store_url, clock=clock) as opened:
        yield opened


def submit(store: Store, rows: int = 4, **changes: object) -> Job:
    program = samples.graph(rows)
    store.graphs.put(program)
    return store.jobs.create(samples.request(program, **changes), samples.key(program)).job


def claim(store: Store, owner: str = "driver-1") -> Lease:
    lease = store.queue.claim(owner)
    assert lease is not None
    return lease


def states(store: Store, job_id: str) -> list[str]:
    return [json.loads(e.data)["state"] for e in store.events.after(job_id) if e.kind == "state"]


def test_a_new_job_is_queued_and_keeps_its_request(store: Store) -> None:
    job = submit(store, priority=3, numerics="strict")
    assert store.jobs.get(job.id) == job
    assert (job.state, job.attempts, job.tenant) == (JobState.QUEUED, 0, DEFAULT_TENANT)
    assert (job.request.priority, job.request.numerics) == (3, "strict")
    assert states(store, job.id) == ["queued"]


def test_an_unknown_graph_is_refused(store: Store) -> None:
    program = samples.graph()
    with pytest.raises(NotFound, match="submit it first"):
        store.jobs.create(samples.request(program), samples.key(program))


def test_equal_keys_in_flight_are_one_job(store: Store) -> None:
    first = submit(store)
    assert submit(store).id == first.id
    claim(store)
    assert submit(store).id == first.id
    assert submit(store, rows=5).id != first.id


def test_concurrent_submissions_of_one_key_make_one_job(store: Store) -> None:
    program = samples.graph()
    store.graphs.put(program)
    gate = threading.Barrier(6)

    def create(_: int) -> str:
        gate.wait()
        return store.jobs.create(samples.request(program), samples.key(program)).job.id

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(create, range(6)))) == 1
    assert len(store.jobs.list()) == 1


def test_a_job_for_a_key_with_a_plan_is_born_done(store: Store) -> None:
    program = samples.graph()
    plan_id = store.plans.publish(samples.plan(program))
    job = submit(store)
    assert (job.state, job.plan_id) == (JobState.DONE, plan_id)
    assert store.queue.claim("driver-1") is None
    assert submit(store, force=True).state is JobState.QUEUED


def test_a_plan_without_a_measured_kernel_yields_to_a_larger_budget(store: Store) -> None:
    """And only to one: the search that follows replaces it, whatever it finds."""
    poor = store.plans.publish(samples.framework_plan(budget=Budget(10.0, 5)))
    for less in (Budget(10.0, 5), Budget(1.0), Budget(60.0, 3), Budget(0.0)):
        assert submit(store, budget=less).plan_id == poor
    asked = submit(store, budget=Budget(10.0))  # no limit of trials
    assert (asked.state, asked.plan_id) == (JobState.QUEUED, None)
    assert submit(store, budget=Budget(60.0)).id == asked.id
    lease = claim(store)
    better = store.plans.publish(samples.framework_plan(budget=Budget(10.0)), lease)
    store.queue.finish(lease, JobState.DONE, plan_id=better)
    assert store.plans.row(poor).status is PlanStatus.SUPERSEDED
    assert submit(store, budget=Budget(10.0)).plan_id == better
    assert submit(store, budget=Budget(11.0)).state is JobState.QUEUED


def test_a_plan_whose_kernels_lost_is_the_answer_whatever_the_budget(store: Store) -> None:
    plan_id = store.plans.publish(samples.framework_plan(code="faster", budget=Budget(0.0)))
    assert submit(store, budget=Budget(3600.0)).plan_id == plan_id


def test_a_plan_that_this_version_does_not_read_is_searched_again(store: Store) -> None:
    plan = samples.framework_plan(code="faster")
    plan_id = store.plans.publish(plan)
    with store.database.write() as connection:
        text = plan_to_json(plan).replace('"schema_version":1', '"schema_version":0')
        connection.execute(sa.update(plans).values(payload=text))
    assert store.plans.head(str(plan.key)) == plan_id
    assert submit(store).state is JobState.QUEUED


def test_idempotency_keys_return_the_same_job_or_refuse(store: Store) -> None:
    program = samples.graph()
    store.graphs.put(program)

    def create(body: str) -> tuple[str, bool]:
        made = store.jobs.create(
            samples.request(program, force=True),
            samples.key(program),
            idempotency=Idempotency("k1", body),
        )
        return made.job.id, made.created

    first, created = create("body")
    assert created
    store.queue.finish(claim(store), JobState.DONE)
    assert create("body") == (first, False)
    with pytest.raises(IdempotencyConflict, match="another body"):
        create("other")


def test_the_queue_of_a_tenant_is_limited(store: Store) -> None:
    store.tenants.set_queue_limit(DEFAULT_TENANT, 2)
    submit(store, 1)
    submit(store, 2)
    with pytest.raises(QuotaExceeded):
        submit(store, 3)
    assert submit(store, 2).state is JobState.QUEUED  # joins, adds nothing
    store.queue.finish(claim(store), JobState.DONE)
    submit(store, 3)


def test_claims_go_by_priority_then_age(store: Store, clock: Clock) -> None:
    ids = []
    for rows, priority in ((1, 0), (2, 5), (3, 5)):
        ids.append(submit(store, rows, priority=priority).id)
        clock.now_us += 1
    assert [claim(store).job_id for _ in range(3)] == [ids[1], ids[2], ids[0]]
    assert store.queue.claim("driver-1") is None


def test_claims_by_device(store: Store) -> None:
    job = submit(store, device="ascend-sim:910b3")
    assert store.queue.claim("driver-1", ["cpu"]) is None
    lease = store.queue.claim("driver-1", ["cpu", "ascend-sim:910b3"])
    assert lease is not None
    assert lease.job_id == job.id


def test_two_claimers_never_get_one_job(store: Store) -> None:
    wanted = {submit(store, rows).id for rows in range(1, 25)}
    gate = threading.Barrier(4)

    def drain(number: int) -> list[str]:
        gate.wait()
        found = []
        while (lease := store.queue.claim(f"driver-{number}")) is not None:
            found.append(lease.job_id)
        return found

    with ThreadPoolExecutor(4) as pool:
        found = [job_id for ids in pool.map(drain, range(4)) for job_id in ids]
    # A claimer may leave early while another holds the last row's lock; nothing comes twice.
    while (lease := store.queue.claim("last")) is not None:
        found.append(lease.job_id)
    assert len(found) == len(set(found))
    assert set(found) == wanted


def test_heartbeats_keep_the_lease(store: Store, clock: Clock) -> None:
    submit(store)
    lease = claim(store)
    for _ in range(5):
        clock.now_us += LEASE_US - 1
        assert not store.queue.heartbeat(lease, 1.0).cancel_requested
    assert store.queue.claim("driver-2") is None


def test_an_expired_lease_queues_again_with_what_was_spent(store: Store, clock: Clock) -> None:
    job = submit(store)
    old = claim(store)
    store.queue.heartbeat(old, 4.5)
    clock.now_us += LEASE_US + 1
    new = claim(store, "driver-2")
    assert new.job_id == job.id
    assert (new.job.spent_seconds, new.job.attempts) == (4.5, 2)
    assert states(store, job.id) == ["queued", "running", "queued", "running"]


def test_an_old_token_writes_nothing(store: Store, clock: Clock) -> None:
    submit(store)
    old = claim(store)
    clock.now_us += LEASE_US + 1
    new = claim(store, "driver-2")
    before = len(store.events.after(new.job_id))
    for write in (
        lambda: store.queue.heartbeat(old, 9.0),
        lambda: store.queue.release(old, 9.0),
        lambda: store.queue.finish(old, JobState.DONE),
        lambda: store.events.append(old, "log", {"text": "late"}),
        lambda: store.trials.add(old, [samples.trial(0)]),
        lambda: store.plans.publish(samples.plan(), old),
    ):
        with pytest.raises(LeaseLost):
            write()
    assert store.jobs.get(new.job_id).state is JobState.RUNNING
    assert len(store.events.after(new.job_id)) == before
    assert store.trials.tally(new.job_id).total() == 0
    assert store.plans.list() == []
    store.queue.heartbeat(new, 1.0)


def test_a_job_released_or_expired_is_fenced_before_anyone_claims_it(
    store: Store, clock: Clock
) -> None:
    submit(store)
    lease = claim(store)
    store.queue.release(lease, 2.0)
    with pytest.raises(LeaseLost):
        store.queue.heartbeat(lease, 3.0)
    lease = claim(store)
    assert lease.job.attempts == 1  # an orderly release is no lost attempt
    clock.now_us += LEASE_US + 1
    assert store.queue.expire() == 1
    with pytest.raises(LeaseLost):
        store.queue.finish(lease, JobState.DONE)


def test_the_jobs_of_a_dead_owner_wait_again_at_once(store: Store) -> None:
    job, other = submit(store), submit(store, rows=5)
    lease = claim(store, "dead")
    claim(store, "alive")
    assert store.queue.lose("dead") == 1
    assert store.jobs.get(job.id).state is JobState.QUEUED
    assert store.jobs.get(job.id).attempts == 1
    assert store.jobs.get(other.id).state is JobState.RUNNING
    with pytest.raises(LeaseLost):
        store.queue.heartbeat(lease, 1.0)


def test_the_third_lost_lease_poisons_the_job(store: Store, clock: Clock) -> None:
    job = submit(store)
    for _ in range(MAX_ATTEMPTS):
        claim(store)
        clock.now_us += LEASE_US + 1
    assert store.queue.claim("driver-1") is None
    ended = store.jobs.get(job.id)
    assert ended.state is JobState.FAILED
    assert ended.error is not None
    assert ended.error.code == "poisoned"


def test_a_queued_job_is_cancelled_at_once(store: Store) -> None:
    job = submit(store)
    assert store.jobs.cancel(job.id).state is JobState.CANCELLED
    assert store.jobs.cancel(job.id).state is JobState.CANCELLED
    assert store.queue.claim("driver-1") is None
    assert states(store, job.id) == ["queued", "cancelled"]


def test_a_running_job_hears_of_its_cancellation(store: Store) -> None:
    job = submit(store)
    lease = claim(store)
    asked = store.jobs.cancel(job.id)
    assert (asked.state, asked.cancel_requested) == (JobState.RUNNING, True)
    assert store.queue.heartbeat(lease, 1.0).cancel_requested
    assert submit(store).id != job.id  # nobody joins a job that is being cancelled
    assert store.queue.finish(lease, JobState.CANCELLED).state is JobState.CANCELLED


def test_a_cancelled_job_whose_driver_is_lost_ends_as_cancelled(store: Store, clock: Clock) -> None:
    job = submit(store)
    claim(store)
    store.jobs.cancel(job.id)
    clock.now_us += LEASE_US + 1
    store.queue.expire()
    assert store.jobs.get(job.id).state is JobState.CANCELLED


def test_a_cancelled_job_that_is_released_ends_as_cancelled(store: Store) -> None:
    job = submit(store)
    lease = claim(store)
    store.jobs.cancel(job.id)
    store.queue.release(lease, 1.0)
    assert store.jobs.get(job.id).state is JobState.CANCELLED


@pytest.mark.parametrize("state", [JobState.DONE, JobState.FAILED, JobState.CANCELLED])
def test_terminal_states_never_change(store: Store, clock: Clock, state: JobState) -> None:
    submit(store)
    lease = claim(store)
    error = Failure(Stage.BUILD, "no-compiler", "none") if state is JobState.FAILED else None
    ended = store.queue.finish(lease, state, spent_seconds=3.0, error=error)
    assert (ended.state, ended.error, ended.spent_seconds) == (state, error, 3.0)
    clock.now_us += 10 * LEASE_US
    store.queue.expire()
    store.jobs.cancel(ended.id)
    for end in (JobState.DONE, JobState.FAILED):
        with pytest.raises(LeaseLost):
            store.queue.finish(lease, end)
    assert store.jobs.get(ended.id) == ended


def test_a_job_cannot_end_in_a_live_state(store: Store) -> None:
    submit(store)
    with pytest.raises(InvalidInput, match="cannot end"):
        store.queue.finish(claim(store), JobState.QUEUED)


def test_lists_are_newest_first_and_paged(store: Store) -> None:
    ids = [submit(store, rows).id for rows in range(1, 6)]
    first = store.jobs.list(limit=2)
    assert [job.id for job in first] == [ids[4], ids[3]]
    assert [job.id for job in store.jobs.list(limit=9, before=first[-1].id)] == ids[2::-1]
    assert store.jobs.list(tenant="someone") == []
    assert len(store.jobs.list(state=JobState.QUEUED)) == 5
    assert store.jobs.counts() == {"queued": 5}


def test_events_are_read_in_order_after_a_sequence(store: Store) -> None:
    submit(store)
    lease = claim(store)
    store.events.append_many(lease, [("progress", {"done": n}) for n in range(5)])
    events = store.events.after(lease.job_id)
    numbers = [event.sequence for event in events]
    assert numbers == sorted(set(numbers))
    assert store.events.after(lease.job_id, numbers[3]) == events[4:]
    newest = store.events.latest(lease.job_id, "progress")
    assert newest is not None
    assert newest.data == '{"done":4}'
    assert store.events.latest(lease.job_id, "plan") is None


def test_a_clock_set_back_delays_no_lost_job(store: Store, clock: Clock) -> None:
    """A lease that then seems to last for an hour lasts as long as any other."""
    job = submit(store)
    lease = claim(store)
    clock.now_us -= 3_600_000_000
    assert store.queue.claim("driver-2") is None
    store.queue.heartbeat(lease, 1.0)  # the holder does not notice
    clock.now_us += LEASE_US + 1
    assert claim(store, "driver-2").job_id == job.id


def test_a_clock_that_jumps_ahead_costs_an_attempt_and_nothing_else(
    store: Store, clock: Clock
) -> None:
    job = submit(store)
    lease = claim(store)
    store.trials.add(lease, [samples.trial(0)])
    clock.now_us += 3_600_000_000
    store.queue.heartbeat(lease, 1.0)  # in time: nobody has looked yet
    clock.now_us += 3_600_000_000
    assert store.queue.expire() == 1
    with pytest.raises(LeaseLost):
        store.queue.heartbeat(lease, 2.0)
    assert claim(store, "driver-2").job.spent_seconds == 1.0
    assert store.trials.tally(job.id).total() == 1

"""Trials, groups, devices, tenants and keys, on both databases."""

from __future__ import annotations

import dataclasses

import pytest

from db.errors import NotFound
from db.leases import Lease
from db.schema import DEFAULT_TENANT, Role
from db.store import Store
from kernel_gen.codec import digest
from kernel_gen.records import BASELINE_TEMPLATE, COVER_GROUP, LIBRARY_TEMPLATE, TrialKind
from tests.fixtures import samples


@pytest.fixture
def lease(store: Store) -> Lease:
    return claimed(store, rows=4)


def claimed(store: Store, rows: int) -> Lease:
    program = samples.graph(rows)
    store.graphs.put(program)
    store.jobs.create(samples.request(program), samples.key(program))
    lease = store.queue.claim("driver-1")
    assert lease is not None
    return lease


def test_trials_come_back_as_they_were(store: Store, lease: Lease) -> None:
    batch = [samples.trial(0), samples.trial(1, None), samples.trial(2, 9.0)]
    store.trials.add(lease, batch)
    stored = store.trials.of_job(lease.job_id)
    assert [trial for _, trial in stored] == batch
    assert store.trials.tally(lease.job_id).total() == 3
    assert store.trials.tally(lease.job_id)[TrialKind.KERNEL, "wrong-result"] == 1
    page = store.trials.of_job(lease.job_id, after=stored[0][0], limit=1)
    assert [trial for _, trial in page] == batch[1:2]


def test_what_ran_is_counted_apart(store: Store, lease: Lease) -> None:
    """Only kernels are what a budget counts; the framework is timed for comparison."""
    kernel = samples.trial(0)
    others = [("cover", COVER_GROUP), ("cover", BASELINE_TEMPLATE), ("g0", LIBRARY_TEMPLATE)]
    batch = [
        dataclasses.replace(kernel, group=group, number=number, template=template)
        for number, (group, template) in enumerate(others, 1)
    ]
    store.trials.add(lease, [kernel, *batch])
    tally = store.trials.tally(lease.job_id)
    kinds = (TrialKind.KERNEL, TrialKind.PROGRAM, TrialKind.REFERENCE)
    assert [tally[kind, ""] for kind in kinds] == [1, 1, 2]


def test_a_batch_that_is_sent_twice_is_stored_once(store: Store, lease: Lease) -> None:
    for _ in range(2):
        store.trials.add(lease, [samples.trial(0), samples.trial(1)])
    assert store.trials.tally(lease.job_id).total() == 2


def test_trials_transfer_by_nest_and_target_fastest_first(store: Store, lease: Lease) -> None:
    other = claimed(store, rows=5)
    store.trials.add(lease, [samples.trial(0, 9.0), samples.trial(1, None)])
    store.trials.add(other, [samples.trial(0, 7.0), samples.trial(1, 1.0, group="g1")])
    found = store.trials.of_group("g0", samples.TARGET.key)
    assert [trial.median_us for trial in found] == [7.0, 9.0]
    assert store.trials.of_group("g0", samples.OTHER_TARGET.key) == []
    assert len(store.trials.of_group("g0", limit=1)) == 1


def test_groups_keep_their_nests(store: Store, lease: Lease) -> None:
    nest = samples.nest()
    name = digest(nest)
    for _ in range(2):
        store.trials.add_groups([(name, nest, ("add", "relu"))])
    assert store.trials.nest(name) == nest
    store.trials.add(lease, [samples.trial(0, group=name)])
    assert store.trials.ops(lease.job_id) == {name: ("add", "relu")}
    with pytest.raises(NotFound):
        store.trials.nest("none")


def test_graphs_are_stored_once_and_come_back(store: Store) -> None:
    program = samples.graph()
    assert store.graphs.put(program) == store.graphs.put(program) == program.digest
    assert store.graphs.get(program.digest) == program
    assert store.graphs.exists(program.digest)
    assert not store.graphs.exists("none")


def test_devices_show_their_last_heartbeat(store: Store) -> None:
    store.devices.heartbeat("host-1", "cpu", samples.TARGET, "idle")
    first = store.devices.list()[0]
    store.devices.heartbeat("host-1", "cpu", samples.TARGET, "measuring", job_id="j1")
    (device,) = store.devices.list()
    assert (device.state, device.job_id, device.alive) == ("measuring", "j1", True)
    assert device.started_us == first.started_us
    assert device.target == samples.TARGET
    store.devices.remove("host-1")
    assert store.devices.list() == []


def test_keys_are_stored_hashed_and_end_when_revoked(store: Store) -> None:
    tenant = store.tenants.create("team")
    assert store.tenants.create("team") == tenant
    secret = store.tenants.create_key(tenant, "laptop", Role.SUBMIT)
    principal = store.tenants.verify(secret)
    assert principal is not None
    assert (principal.tenant, principal.role) == (tenant, Role.SUBMIT)
    assert principal.may(Role.READ)
    assert not principal.may(Role.PUBLISH)
    assert store.tenants.verify(secret + "x") is None
    (key,) = store.tenants.list_keys()
    assert secret not in repr(key)
    store.tenants.revoke_key(key.id)
    assert store.tenants.verify(secret) is None


def test_sessions_stand_for_a_key_until_it_is_revoked(store: Store) -> None:
    secret = store.tenants.create_key(DEFAULT_TENANT, "laptop", Role.PUBLISH)
    token = store.tenants.create_session(secret)
    assert token is not None
    assert store.tenants.verify_session(token) == store.tenants.verify(secret)
    assert store.tenants.create_session("wrong") is None
    other = store.tenants.create_session(secret)
    assert other is not None
    store.tenants.end_session(other)
    assert store.tenants.verify_session(other) is None
    store.tenants.revoke_key(store.tenants.list_keys()[0].id)
    assert store.tenants.verify_session(token) is None


def test_two_keys_differ_and_unknown_tenants_get_none(store: Store) -> None:
    first, second = (store.tenants.create_key(DEFAULT_TENANT, "a", Role.READ) for _ in range(2))
    assert first != second
    assert len(first) >= 43  # 256 bits in base64
    with pytest.raises(NotFound):
        store.tenants.create_key("nobody", "a", Role.READ)
    with pytest.raises(NotFound):
        store.tenants.revoke_key("none")


def test_a_device_that_died_before_the_clock_was_set_back_is_not_alive(store_url: str) -> None:
    now_us = 1_800_000_000_000_000
    with Store(store_url, clock=lambda: now_us) as store:
        store.devices.heartbeat("w", "cpu", samples.TARGET, "idle")
        now_us -= 3_600_000_000
        assert [device.alive for device in store.devices.list()] == [False]

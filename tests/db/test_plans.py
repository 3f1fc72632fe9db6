"""Plans, heads, artifacts and lookups, on both databases."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator

import pytest

from db.errors import NotFound
from db.lookup import Hit, Lookup, Miss, MissReason
from db.schema import MAX_ARTIFACT_BYTES, PlanStatus
from db.store import Store
from kernel_gen.errors import InvalidInput
from kernel_gen.runtime.plan import Artifact
from kernel_gen.runtime.requires import Caller
from tests.fixtures import samples

CALLER = Caller(frozenset(("avx2", "fma")), abi=1, torch="2.13.4", libc="glibc 2.40")


class Monotonic:
    """Seconds that move only when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def monotonic() -> Monotonic:
    return Monotonic()


@pytest.fixture
def lookup(store: Store, monotonic: Monotonic) -> Iterator[Lookup]:
    """A lookup whose memory is fresh for half a second of `monotonic`."""
    found = Lookup(store.database, monotonic)
    yield found
    found.close()


def test_a_published_plan_comes_back_whole(store: Store) -> None:
    plan = samples.plan()
    plan_id = store.plans.publish(plan)
    assert plan_id == plan.id
    assert store.plans.get(plan_id) == plan
    assert store.plans.head(str(plan.key)) == plan_id
    assert store.plans.artifact(plan.artifacts[0].sha256) == plan.artifacts[0].data
    assert store.plans.row(plan_id).status is PlanStatus.PUBLISHED
    assert plan.artifacts[0].data.decode("latin-1") not in store.plans.text(plan_id)


def test_a_newer_plan_supersedes(store: Store) -> None:
    old, new = samples.plan(measured_us=10.0), samples.plan(measured_us=8.0)
    for plan in (old, new):
        store.plans.publish(plan)
    assert store.plans.head(str(old.key)) == new.id
    assert store.plans.row(old.id).status is PlanStatus.SUPERSEDED
    assert [row.id for row in store.plans.list()] == [new.id, old.id]
    store.plans.publish(old)  # again the current one
    assert store.plans.head(str(old.key)) == old.id
    assert store.plans.row(new.id).status is PlanStatus.SUPERSEDED


def test_plans_of_one_program_share_objects(store: Store) -> None:
    for measured_us in (10.0, 8.0):
        store.plans.publish(samples.plan(measured_us=measured_us))
    other = samples.plan(samples.graph(9), data=b"other")
    store.plans.publish(other)
    assert store.plans.get(other.id).artifacts[0].data == b"other"


def test_a_revoked_plan_is_out_of_service_for_good(store: Store, lookup: Lookup) -> None:
    plan = samples.plan()
    store.plans.publish(plan)
    revoked = store.plans.revoke(plan.id, "wrong on NaN")
    assert revoked.status is PlanStatus.REVOKED
    assert revoked.note is not None
    assert "wrong on NaN" in revoked.note
    assert store.plans.revoke(plan.id, "again") == revoked
    assert lookup(str(plan.key)) == Miss(MissReason.REVOKED)
    with pytest.raises(InvalidInput, match="was revoked"):
        store.plans.publish(plan)
    assert store.plans.head(str(plan.key)) is None
    assert store.plans.get(plan.id) == plan  # the record stays


@pytest.mark.parametrize(
    ("artifact", "message"),
    [
        (Artifact("plan.so", "0" * 64, b"x"), "does not match"),
        (Artifact("plan.so", "0" * 64, bytes(MAX_ARTIFACT_BYTES + 1)), "at most"),
    ],
)
def test_bad_objects_are_refused_and_nothing_is_stored(
    store: Store, artifact: Artifact, message: str
) -> None:
    plan = dataclasses.replace(samples.plan(), artifacts=(artifact,))
    with pytest.raises(InvalidInput, match=message):
        store.plans.publish(plan)
    assert store.plans.list() == []


def test_missing_things_are_not_found(store: Store) -> None:
    for read in (store.plans.get, store.plans.row, store.plans.artifact, store.graphs.get):
        with pytest.raises(NotFound):
            read("0" * 64)
    with pytest.raises(NotFound):
        store.plans.revoke("0" * 64, "none")


def test_publishing_under_a_lease_names_the_job(store: Store) -> None:
    program = samples.graph()
    store.graphs.put(program)
    store.jobs.create(samples.request(program), samples.key(program))
    lease = store.queue.claim("driver-1")
    assert lease is not None
    plan_id = store.plans.publish(samples.plan(program), lease)
    assert store.plans.row(plan_id).job_id == lease.job_id


def test_plans_are_paged_and_filtered(store: Store) -> None:
    plans = [samples.plan(samples.graph(rows)) for rows in range(1, 5)]
    for plan in plans:
        store.plans.publish(plan)
    newest = store.plans.list(limit=1)[0]
    rest = store.plans.list(before=(newest.created_us, newest.id))
    assert {row.id for row in rest} == {plan.id for plan in plans[:3]}
    assert [row.id for row in store.plans.list(key=str(plans[0].key))] == [plans[0].id]
    assert store.plans.list(status=PlanStatus.REVOKED) == []


def test_an_exact_hit_tells_what_the_plan_is(store: Store, lookup: Lookup) -> None:
    plan = samples.plan()
    store.plans.publish(plan)
    for caller in (None, CALLER):
        hit = lookup(str(plan.key), caller)
        assert isinstance(hit, Hit)
        body = json.loads(hit.body)
        assert (hit.match, body["match"]) == ("exact", "exact")
        assert (body["id"], body["key"]) == (plan.id, str(plan.key))
        assert (body["measured_us"], body["requires"]) == (10.0, ["avx2"])


@pytest.mark.parametrize(
    "changes",
    [{"abi": 2}, {"torch": "2.14.0"}, {"libc": "glibc 2.35"}, {"libc": "musl 1.2"}],
)
def test_other_versions_miss(store: Store, lookup: Lookup, changes: dict[str, object]) -> None:
    plan = samples.plan()
    store.plans.publish(plan)
    caller = dataclasses.replace(CALLER, **changes)  # type: ignore[arg-type]
    assert lookup(str(plan.key), caller) == Miss(MissReason.VERSION)


def test_a_plan_of_another_target_fits_a_machine_with_its_features(
    store: Store, lookup: Lookup
) -> None:
    program = samples.graph()
    small = samples.plan(program)
    store.plans.publish(small)
    asked = str(samples.key(program, samples.OTHER_TARGET))
    assert lookup(asked) == Miss(MissReason.OTHER_TARGET)
    hit = lookup(asked, CALLER)
    assert isinstance(hit, Hit)
    assert (hit.match, hit.plan_id) == ("compatible", small.id)
    lacking = dataclasses.replace(CALLER, features=frozenset(("sse4_2",)))
    assert lookup(asked, lacking) == Miss(MissReason.OTHER_TARGET)


def test_options_and_shapes_keep_programs_apart(store: Store, lookup: Lookup) -> None:
    program = samples.graph()
    store.plans.publish(samples.plan(program))
    for key in (samples.key(program, numerics="strict"), samples.key(samples.graph(9))):
        assert lookup(str(key), CALLER) == Miss(MissReason.UNKNOWN)


def test_a_job_in_flight_is_named(store: Store, lookup: Lookup) -> None:
    program = samples.graph()
    store.graphs.put(program)
    job = store.jobs.create(samples.request(program), samples.key(program)).job
    assert lookup(job.key) == Miss(MissReason.TUNING, job.id)


def test_memory_answers_until_the_epoch_moves(
    store: Store, lookup: Lookup, monotonic: Monotonic
) -> None:
    old, new = samples.plan(measured_us=10.0), samples.plan(measured_us=8.0)
    key = str(old.key)
    store.plans.publish(old)
    first = lookup(key)
    store.plans.publish(new)
    assert lookup(key) is first  # no read within half a second
    monotonic.now += 0.6
    second = lookup(key)
    assert isinstance(second, Hit)
    assert second.plan_id == new.id
    store.plans.revoke(new.id, "wrong")
    monotonic.now += 0.6
    assert lookup(key) == Miss(MissReason.REVOKED)


def test_misses_are_not_remembered(store: Store, lookup: Lookup) -> None:
    plan = samples.plan()
    assert lookup(str(plan.key)) == Miss(MissReason.UNKNOWN)
    store.plans.publish(plan)
    assert isinstance(lookup(str(plan.key)), Hit)


def test_a_lost_connection_is_replaced(store: Store, lookup: Lookup, monotonic: Monotonic) -> None:
    plan = samples.plan()
    store.plans.publish(plan)
    lookup(str(samples.key(samples.graph(9))))
    held = lookup._connection
    assert held is not None
    held.connection.dbapi_connection.close()  # type: ignore[union-attr]
    assert isinstance(lookup(str(plan.key)), Hit)


def test_a_text_that_is_no_key_is_refused(lookup: Lookup) -> None:
    with pytest.raises(InvalidInput, match="not a plan key"):
        lookup("nonsense")

"""What the dashboard's pages compute, over the record of a search with made-up times."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from db.errors import NotFound
from db.store import Store
from kernel_gen.codegen.registry import templates
from kernel_gen.fusion.candidates import Constraints
from kernel_gen.fusion.neighbours import union_of
from kernel_gen.ir.graph import attrs
from kernel_gen.records import JobRequest, Trial
from kernel_gen.schedule.schedule import Decision, Schedule
from service.dashboard.compare_view import compare
from service.dashboard.group_view import group_view
from service.dashboard.job_view import summarise
from service.dashboard.nest_view import (
    foreseen,
    importance,
    nest_rows,
    nest_view,
    parameter_plots,
    tuned_trials,
)
from service.dashboard.plan_times import GroupTime
from service.dashboard.plan_view import GroupRow, doubt_of, plan_view
from service.dashboard.queue_view import lookups_of, queue_view
from tests.fixtures import samples
from tests.fixtures.searches import Searched, network, searched, wide_plan


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path: Path = tmp_path_factory.mktemp("views") / "store.sqlite"
    with Store(f"sqlite:///{path}") as opened:
        yield opened


@pytest.fixture(scope="module")
def found(store: Store) -> Searched:
    return searched(store, trials=40)


def test_times_before_are_the_frameworks_for_each_op_alone(store: Store, found: Searched) -> None:
    view = plan_view(store, found.plan_id)
    kernels = [row for row in view.rows if row.kernel]
    assert kernels
    for row in kernels:  # every part takes the framework about 40 µs
        assert row.time.before_us == pytest.approx(40.0 * len(row.ops), rel=0.05)
        assert row.time.after_us == row.kernel.measurement.median_us  # type: ignore[union-attr]
    framework = next(row for row in view.rows if row.code == "no-lowering")
    assert framework.ops == ("aten.sort.default",)
    assert framework.gain == pytest.approx(1.0)
    sums = view.sums
    assert sums.before_us == pytest.approx(sum(row.time.before_us or 0.0 for row in view.rows))


def test_all_pages_count_the_same_trials(store: Store, found: Searched) -> None:
    """Those of kernels, which is what a budget counts."""
    job, summary = store.jobs.get(found.job_id), store.plans.get(found.plan_id).summary
    told = summarise(store, job)
    rows = nest_rows(tuned_trials(store, job), store.trials.ops(job.id))
    assert told.trials == summary.trials == sum(row.trials for row in rows) <= 40
    assert told.failed == summary.failures == sum(row.failed for row in rows) > 0
    assert told.programs > 0


@pytest.mark.parametrize(
    ("least_us", "before_us", "whole_us", "says"),
    [
        (1168.0, 1168.0, 500.0, "longer than the whole program"),
        (1168.0, 1168.0, 5000.0, "so much is rare"),
        (2.0, 1168.0, 5000.0, "by the fastest samples of both sides it is 2.00×"),
        (2.0, 2.1, 5000.0, ""),
    ],
)
def test_a_gain_that_may_be_noise_is_marked(
    store: Store, least_us: float, before_us: float, whole_us: float, says: str
) -> None:
    measured = samples.measurement(1.0)
    kernel = dataclasses.replace(samples.plan().kernels[0], measurement=measured)
    time = GroupTime(before_us, 1.0, least_us * measured.min_us)
    row = GroupRow(0, ("add",), 0, kernel, "", "", time)
    assert says in doubt_of(row, whole_us)
    assert bool(doubt_of(row, whole_us)) is bool(says)


def test_kernels_are_held_against_the_roofline(store: Store, found: Searched) -> None:
    view = plan_view(store, found.plan_id)
    row = next(row for row in view.rows if row.work and row.work.has_product)
    assert row.reach == pytest.approx(view.limits.floor_us(row.work) / row.time.after_us)  # type: ignore[arg-type,operator]
    assert view.roofline is not None
    assert len(view.roofline.marks) == sum(bool(r.work and r.work.operations) for r in view.rows)
    assert view.roofline.marks[0].href.startswith(f"/plans/{found.plan_id}/groups/")


def test_equal_layers_are_one_line_and_the_longest_sum_is_first(store: Store) -> None:
    plan_id = store.plans.publish(wide_plan(nodes=40))
    (stack,) = plan_view(store, plan_id).slowest
    assert len(stack.rows) == 10
    assert stack.time.after_us == pytest.approx(30.0)
    assert stack.gain is None  # an imported plan has no trials: nothing is known of before
    with pytest.raises(NotFound):
        plan_view(store, "none")


def test_a_whole_that_takes_longer_than_its_parts_is_pointed_out(store: Store) -> None:
    plan = wide_plan(nodes=8)
    summary = dataclasses.replace(plan.summary, measured_us=10.0)
    close = store.plans.publish(dataclasses.replace(plan, summary=summary))
    assert plan_view(store, close).unexplained_us == pytest.approx(4.0)
    summary = dataclasses.replace(plan.summary, measured_us=6.5)
    close = store.plans.publish(dataclasses.replace(plan, summary=summary))
    assert plan_view(store, close).unexplained_us is None


def test_a_group_says_why_its_neighbours_are_not_in_it(store: Store, found: Searched) -> None:
    view = plan_view(store, found.plan_id)
    reasons = {
        near.code for row in view.rows for near in group_view(store, view, row.number).neighbours
    }
    assert "no-lowering" in reasons  # the sort's neighbour
    assert reasons <= {"no-lowering", "two-products", "not-faster", "not-convex", ""}
    first = group_view(store, view, 0)
    assert first.decisions
    assert first.ops[0].op == "linear"
    assert first.task is not None
    with pytest.raises(NotFound, match="has no group 99"):
        group_view(store, view, 99)


def test_a_nest_shows_what_its_parameters_did(store: Store, found: Searched) -> None:
    job = store.jobs.get(found.job_id)
    trials = tuned_trials(store, job)
    rows = nest_rows(trials, store.trials.ops(job.id))
    assert sum(row.trials for row in rows) == len(trials)
    busiest = max(rows, key=lambda row: row.trials)
    view = nest_view(store, job, busiest.digest, None)
    assert view.row.best_us == view.listed[0].median_us
    assert view.foreseen is not None
    assert view.spread is not None
    assert all(len(drawn.marks) <= busiest.trials for _, drawn in view.parameters)
    with pytest.raises(NotFound, match="no trials of template"):
        nest_view(store, job, busiest.digest, "nothing")
    with pytest.raises(NotFound):
        nest_view(store, job, "0" * 64, None)


def test_a_nest_is_named_by_what_it_computes() -> None:
    trials = [dataclasses.replace(samples.trial(n, 5.0), group=str(n)) for n in (0, 1)]
    ops = {"0": ("slice", "reshape", "attention", "permute"), "1": ("slice", "permute")}
    rows = {row.digest: row for row in nest_rows(trials, ops)}
    assert (rows["0"].ops, rows["0"].views) == (("attention",), 3)
    assert (rows["1"].ops, rows["1"].views) == (("slice", "permute"), 0)


def tiled(number: int, tile: int, unroll: int) -> Trial:
    """A trial whose time depends on its tile only."""
    trial = samples.trial(number, 10.0 + 5.0 * abs(tile - 2))
    point = (("tile", tile), ("unroll", unroll), ("fixed", 1))
    return dataclasses.replace(trial, point=point, predicted_us=float(10 + tile))


def test_importance_finds_the_parameter_that_matters() -> None:
    trials = [tiled(n, tile, n % 3) for n, tile in enumerate([*range(5)] * 5)]
    shares = importance(trials)
    assert [name for name, _ in shares] == ["tile", "unroll"]  # a fixed one explains nothing
    assert shares[0][1] > 0.8
    assert sum(share for _, share in shares) == pytest.approx(1.0)
    assert importance(trials[:11]) == ()


def test_predictions_that_sort_right_correlate() -> None:
    trials = [tiled(n, tile, 0) for n, tile in enumerate([2, 3, 4])]
    right = foreseen(trials)
    assert right is not None
    assert (right.correlation, right.points) == (pytest.approx(1.0), 3)
    assert foreseen([samples.trial(0, None)]) is None


def test_plans_of_one_program_meet_in_their_ops(store: Store) -> None:
    whole = store.plans.publish(wide_plan(nodes=16, per_group=8))
    halved = store.plans.publish(wide_plan(nodes=16, per_group=4))
    found = compare(plan_view(store, whole), plan_view(store, halved))
    (pair,) = found.pairs  # both halves of the program changed alike
    assert (pair.said, pair.times) == (("1 group became 2 groups",), 2)
    assert (pair.left_us, pair.right_us) == (pytest.approx(6.0), pytest.approx(12.0))
    assert found.warnings == ()
    plan = wide_plan(nodes=16, per_group=8)
    strict = dataclasses.replace(plan, key=samples.key(plan.graph, numerics="strict"))
    strict_id = store.plans.publish(strict)
    warned = compare(plan_view(store, whole), plan_view(store, strict_id))
    assert warned.warnings == ("The plans were made with other numerics or other rules.",)
    same = compare(plan_view(store, whole), plan_view(store, whole))
    assert {pair.said for pair in same.pairs} == {("the same kernel",)}


def test_plans_of_different_programs_and_targets_are_told_apart(store: Store) -> None:
    short = store.plans.publish(wide_plan(nodes=8))
    other = store.plans.publish(wide_plan(nodes=4, target=samples.OTHER_TARGET))
    found = compare(plan_view(store, short), plan_view(store, other))
    assert len(found.warnings) == 2
    assert [pair.said for pair in found.pairs] == [("only in the left plan",), ("the same kernel",)]
    assert found.pairs[0].difference_us == pytest.approx(-3.0)


def test_the_queue_is_in_the_order_of_drivers(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/queue.sqlite") as store:
        store.devices.heartbeat("host-1", "cpu", samples.TARGET, "idle")
        for rows, priority, target in (
            (1, 0, samples.TARGET),
            (2, 5, samples.TARGET),
            (3, 0, samples.OTHER_TARGET),
        ):
            program = network(rows)
            store.graphs.put(program)
            request: JobRequest = samples.request(program, priority=priority)
            store.jobs.create(request, samples.key(program, target))
        view = queue_view(store, None, lookups_of({}, 0))
        assert [item.job.request.priority for item in view.waiting] == [5, 0, 0]
        assert [item.place for item in view.waiting] == [1, 2, 3]
        assert [item.has_device for item in view.waiting] == [True, True, False]
        assert view.waiting[0].job.id == store.queue.claim("driver").job_id  # type: ignore[union-attr]
        assert queue_view(store, "other", lookups_of({}, 0)).waiting == ()


def test_hit_rate_counts_exact_and_compatible_answers() -> None:
    lookups = lookups_of({"exact": 5, "compatible": 1, "unknown": 2}, since_us=0)
    assert (lookups.total, lookups.hits, lookups.rate) == (8, 6, 0.75)
    assert lookups.results[0][0] == "exact"
    assert lookups_of({}, 0).rate is None


def test_one_slow_trial_does_not_flatten_the_others() -> None:
    slow = dataclasses.replace(samples.trial(2, 900.0), point=(("tile", 1),))
    plots = dict(parameter_plots([tiled(0, 2, 0), tiled(1, 3, 0), slow]))
    kinds = [mark.kind for mark in plots["tile"].marks]
    assert kinds == ["beyond", "usual", "best"]
    assert "900 µs" in plots["tile"].marks[0].title


def test_decisions_that_differ_are_named(store: Store) -> None:
    plan = wide_plan(nodes=4)
    wider = Schedule("pointwise", (Decision("tile", attrs(axis="i1", size=16)),))
    kernel = dataclasses.replace(plan.kernels[0], schedule=wider)
    ids = [
        store.plans.publish(found) for found in (plan, dataclasses.replace(plan, kernels=(kernel,)))
    ]
    (pair,) = compare(*(plan_view(store, plan_id) for plan_id in ids)).pairs
    assert pair.said == ("tile size 8 → 16",)


@pytest.mark.parametrize(("both_us", "code"), [(9.0, "not-faster"), (4.0, "")])
def test_a_kernel_for_both_that_was_tried_is_weighed(
    tmp_path: Path, both_us: float, code: str
) -> None:
    plan = wide_plan(nodes=8)  # two groups of 3 µs each
    union = union_of(
        plan.program, *plan.cover.groups, tuple(templates(plan.target)), plan.target,
        Constraints(), "fast",
    )  # fmt: skip
    with Store(f"sqlite:///{tmp_path}/both.sqlite") as store:
        store.graphs.put(plan.graph)
        store.jobs.create(samples.request(plan.graph), plan.key)
        lease = store.queue.claim("driver")
        assert lease is not None
        assert union.task is not None
        store.trials.add(lease, [samples.trial(0, both_us, group=union.task)])
        view = plan_view(store, store.plans.publish(plan))
        (near,) = group_view(store, view, 0).neighbours
    assert near.code == code
    assert f"its best trial took {both_us:.2f} µs, the two apart take 6.00 µs" in near.sentence

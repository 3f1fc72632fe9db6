"""`gaf verify` and `gaf replay` over a store whose job was searched here."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import nn

import graph_autofusion as gaf_api
from db.store import Store
from kernel_gen.ir.graph import Graph
from kernel_gen.records import JobRequest, JobState
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.bundle import write_files
from kernel_gen.runtime.bundle_signing import bundle_files
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.key import PlanKey, plan_key
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.signer import Signer
from tests.cli.conftest import Gaf
from tests.graph_autofusion.quick_plans import SUMMARY, quick_plan
from tests.tuner.tuner_jobs import steady_times
from tuner.replay import ReplayDevice
from tuner.session import Assignment, Session
from tuner.store_archive import StoreArchive


@dataclass(frozen=True, slots=True)
class Searched:
    """A finished job whose times were all made up by the test."""

    db: tuple[str, str]
    job_id: str
    plan_id: str
    plan: Plan


@pytest.fixture
def graph() -> Graph:
    return gaf_api.capture(nn.Sequential(nn.LayerNorm(64), nn.ReLU()).eval(), torch.randn(32, 64))


@pytest.fixture
def searched(home: Path, graph: Graph, gaf_compiler: Compiler) -> Searched:
    """The record of a search, and a plan that really runs in its place."""
    url, target = f"sqlite:///{home}/store.sqlite", host_target()
    with Store(url) as store:
        store.graphs.put(graph)
        request = JobRequest(graph.digest, "cpu", gaf_api.Budget(60.0, 6))
        store.jobs.create(request, plan_key(graph, target))
        lease = store.queue.claim("driver")
        assert lease is not None
        assignment = Assignment(graph, PlanKey.parse(lease.job.key), request)
        Session(assignment, ReplayDevice(target, steady_times()), StoreArchive(store, lease)).run()
        plan = quick_plan(graph, gaf_compiler, replace(SUMMARY, improved=False))
        plan_id = store.plans.publish(plan, lease)
        store.queue.finish(lease, JobState.DONE, spent_seconds=1.0, plan_id=plan_id)
    return Searched(("--db", url), lease.job_id, plan_id, plan)


def test_a_plan_of_the_store_is_measured_again(gaf: Gaf, searched: Searched) -> None:
    found = gaf("verify", searched.plan_id, *searched.db, "--seconds", 0.2, "--json")
    assert (found.code, found.json["holds"], found.json["failure"]) == (0, True, None)
    assert found.json["speedup"] == found.json["baseline_us"] / found.json["measured_us"]
    assert found.json["recorded"] == {"measured_us": 1.0, "baseline_us": 2.0}
    by_key = gaf("verify", searched.plan.key, *searched.db, "--seconds", 0.2)
    assert (by_key.code, "right; speedup" in by_key.output) == (0, True)


def test_a_bundle_that_is_wrong_fails(gaf: Gaf, home: Path, searched: Searched) -> None:
    """The plan of another program under this program's graph: its results cannot match."""
    doubled = gaf_api.capture(lambda x: x * 2, torch.randn(32, 64))
    other = quick_plan(doubled, Compiler.find(home / "objects"))
    wrong = replace(
        other, graph=gaf_api.capture(lambda x: x * 3, torch.randn(32, 64)), summary=SUMMARY
    )
    write_files(bundle_files(wrong, Signer.of_user()), home / "bundle")
    found = gaf("verify", home / "bundle", "--seconds", 0.2)
    assert (found.code, "[wrong-result]" in found.output) == (1, True)


def test_verify_says_what_it_cannot_find(gaf: Gaf, searched: Searched) -> None:
    for text in ("0" * 64, str(replace(searched.plan.key, target="cpu-none"))):
        found = gaf("verify", text, *searched.db)
        assert (found.code, "no plan" in found.errors) == (2, True)
    assert gaf("verify", "gaf1:x", *searched.db).code == 2
    for text in (searched.plan_id[:12], searched.plan_id[:13]):  # as tables show them
        found = gaf("verify", text, "--seconds", 0.1, *searched.db, "--json").json
        assert found["plan"] == searched.plan_id


def test_a_job_is_searched_again_from_its_record(gaf: Gaf, searched: Searched) -> None:
    found = gaf("replay", searched.job_id, *searched.db, "--json").json
    assert (found["published"], found["failures"]) == (searched.plan_id, 0)
    assert [kernel["recorded_us"] for kernel in found["kernels"]] == [5.0]
    shown = gaf("replay", searched.job_id, *searched.db)
    assert (shown.code, "layer_norm + relu" in shown.output) == (0, True)


def test_replay_needs_a_record(gaf: Gaf, searched: Searched, graph: Graph) -> None:
    assert gaf("replay", "nothing", *searched.db).code == 2
    with Store(searched.db[1]) as store:
        request = JobRequest(graph.digest, "cpu", gaf_api.Budget(1.0), force=True)
        job = store.jobs.create(request, searched.plan.key).job
    found = gaf("replay", job.id, *searched.db)
    assert (found.code, "no recorded trials" in found.errors) == (2, True)

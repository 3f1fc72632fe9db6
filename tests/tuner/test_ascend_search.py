"""Whole searches on a simulated NPU: plans are right, and their times are called simulated."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import graph_autofusion as gaf
from kernel_gen.codegen.registry import templates
from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.group import FusionGroup
from kernel_gen.ir.graph import Graph
from kernel_gen.records import COVER_GROUP, Budget, Failure, JobRequest, Measurement
from kernel_gen.runtime.ascend import simulated
from kernel_gen.runtime.ascend.simulated import SimulatorCompiler
from kernel_gen.runtime.key import plan_key, stands_in
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.plan_text import plan_to_json
from kernel_gen.runtime.serialize import plan_from_json
from kernel_gen.runtime.torch_glue import TorchPlan
from kernel_gen.schedule.schedule import Schedule
from tuner.archive import MemoryArchive
from tuner.child import process
from tuner.child.checked_run import CheckedRun
from tuner.child.contest import ContestTask, Entry
from tuner.child.messages import RunSimulated
from tuner.devices.ascend_bench import AscendBench
from tuner.devices.ascend_device import AscendDevice
from tuner.devices.check_set import build_check
from tuner.prepare import prepare
from tuner.session import Assignment, Session
from tuner.verify import verify

pytestmark = pytest.mark.xdist_group("simulated")
DEVICE = "ascend-sim:910b3"


class NormRelu(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(100)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(x))


class AddSoftmax(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x + y, -1)


class SortExpRelu(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.exp(torch.sort(x, -1).values))


def searched(
    device: AscendDevice, model: nn.Module, inputs: tuple[torch.Tensor, ...], trials: int
) -> tuple[Plan, MemoryArchive]:
    with torch.no_grad():
        graph = gaf.capture(model.requires_grad_(False), inputs)
    request = JobRequest(graph.digest, DEVICE, Budget(120.0, trials))
    archive = MemoryArchive()
    assignment = Assignment(graph, plan_key(graph, device.target), request)
    return Session(assignment, device, archive).run(), archive


def results(plan: Plan, model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    held = [model.get_parameter(i.name) for i in plan.program.inputs if i.kind.value != "user"]
    with torch.no_grad():
        return TorchPlan(plan).bind(held)(inputs, 1)


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (NormRelu(), (torch.randn(7, 100),)),
        (AddSoftmax(), (torch.randn(5, 48), torch.randn(5, 48))),
    ],
    ids=["norm-relu", "add-softmax"],
)
def test_a_fused_kernel_is_found_right_and_faster_than_one_per_op(
    simulated_device: AscendDevice, model: nn.Module, inputs: tuple[torch.Tensor, ...]
) -> None:
    plan, archive = searched(simulated_device, model, inputs, trials=6)
    assert [type(group) for group in plan.cover.groups] == [FusionGroup]
    assert not [t for t in archive.trials if isinstance(t.result, Failure) and t.predicted_us]
    assert plan.summary.improved
    assert plan.summary.baseline_us == plan.summary.unfused_us > plan.summary.measured_us
    measured = plan.kernels[0].measurement
    assert measured is not None
    assert measured.protocol.simulated
    assert measured.bounding_pipe in ("V", "MTE2", "MTE3", "S")
    assert {name.rpartition("_")[2] for name in plan.kernels[0].sources} >= {"tiling.cpp"}
    with torch.no_grad():
        want = model(*inputs)
    torch.testing.assert_close(results(plan, model, inputs)[0], want, rtol=1e-5, atol=1e-6)


def test_ops_without_a_kernel_run_on_the_host_and_are_named(
    simulated_device: AscendDevice,
) -> None:
    x = torch.randn(4, 40)
    plan, _ = searched(simulated_device, SortExpRelu(), (x,), trials=6)
    assert len(plan.kernels) == 1
    assert plan.kernels[0].ops == ("exp", "relu")
    assert [(op.op, op.code) for op in plan.summary.unfused] == [
        ("aten.sort.default", "no-lowering")
    ]
    torch.testing.assert_close(results(plan, SortExpRelu(), (x,))[0], SortExpRelu()(x))


@pytest.fixture(scope="module")
def softmaxed(simulated_device: AscendDevice) -> tuple[Plan, MemoryArchive]:
    """A short search for a sum and its softmax, of two [3, 16]."""
    return searched(simulated_device, AddSoftmax(), _small(), trials=2)


def _small() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(3, 16), torch.randn(3, 16)


def test_a_stored_plan_runs_and_is_shown_as_simulated(
    softmaxed: tuple[Plan, MemoryArchive],
) -> None:
    (plan, _), inputs = softmaxed, _small()
    objects = {artifact.sha256: artifact.data for artifact in plan.artifacts}
    again = plan_from_json(plan_to_json(plan), objects)
    assert again == plan
    torch.testing.assert_close(results(again, AddSoftmax(), inputs)[0], AddSoftmax()(*inputs))
    shown = io.StringIO()
    gaf.print_graph(plan, file=shown)
    assert "simulated µs" in shown.getvalue()


def test_a_plan_whose_object_does_not_load_is_built_again(
    softmaxed: tuple[Plan, MemoryArchive], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (plan, _), inputs = softmaxed, _small()
    lost = replace(plan.artifacts[0], data=b"built against a simulator that is gone")
    monkeypatch.setattr(simulated, "_rebuilt_folder", lambda: tmp_path)
    moved = replace(plan, artifacts=(lost,))
    torch.testing.assert_close(results(moved, AddSoftmax(), inputs)[0], AddSoftmax()(*inputs))


def test_the_trace_of_a_plan_names_kernels_pipes_and_simulated_times(
    softmaxed: tuple[Plan, MemoryArchive], tmp_path: Path
) -> None:
    plan, _ = softmaxed
    path = gaf.export_graph(plan, tmp_path / "plan.trace")
    trace = json.loads(path.read_text())
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["ph"] == "M"}
    assert {"V", "MTE2", "MTE3"} <= names
    assert any("add + softmax" in name and "simulated" in name for name in names)
    assert any(event["ph"] == "X" and event["dur"] > 0 for event in trace["traceEvents"])


def test_of_the_plans_of_a_contest_the_fastest_is_run(
    simulated_device: AscendDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[Plan] = []
    built: list[Plan | Failure] = []
    check, assemble = AscendBench._checked, AscendBench._assembled

    def assembled(bench: AscendBench, task: ContestTask, entry: Entry) -> Plan | Failure:
        built.append(assemble(bench, task, entry))
        return built[-1]

    def counted(bench: AscendBench, graph: Graph, plan: Plan, timeout_s: float) -> Plan | Failure:
        ran.append(plan)
        return check(bench, graph, plan, timeout_s)

    monkeypatch.setattr(AscendBench, "_checked", counted)
    monkeypatch.setattr(AscendBench, "_assembled", assembled)
    inputs = (torch.randn(4, 32), torch.randn(4, 32))
    plan, archive = searched(simulated_device, AddSoftmax(), inputs, trials=6)
    covers = [t for t in archive.trials if t.group == t.template == COVER_GROUP]
    times = [t.median_us for t in covers if t.median_us is not None]
    assert len(ran) <= len(built) < len(times)
    assert plan.summary.measured_us == min(times)
    assert plan.cover in [other.cover for other in ran]


def test_a_candidate_that_is_too_slow_to_be_wanted_is_timed_only(
    simulated_device: AscendDevice,
) -> None:
    target = simulated_device.target
    graph = gaf.capture(torch.nn.ReLU(), (torch.randn(4, 32),))
    request = JobRequest(graph.digest, DEVICE, Budget(9.0, 1))
    nests = prepare(graph, request, templates(target), target, lambda: None).tasks.nests
    check = next(iter(nests.values())).check
    template = next(t for t in templates(target) if t.refuse(check.nest, target) is None)
    point = dict(template.space(check.nest, target).seeds[0])
    schedule = template.schedule(check.nest, target, point)
    assert isinstance(schedule, Schedule)
    source = template.generate(check.nest, target, schedule, "relu_once")
    compiler = simulated_device._compiler
    assert isinstance(compiler, SimulatorCompiler)
    compiler.compile(source)
    block = build_check(check)
    opened = process._open(block.message, os.dup(block.handle))
    block.close()
    wrong = replace(opened, arrays=tuple(np.ones_like(a) for a in opened.arrays))
    for place in wrong.sets[0].expected:
        wrong.arrays[place][...] = 2  # of relu(1)

    def ran(run: CheckedRun, limit_us: float | None) -> Measurement | Failure:
        path = str(compiler.path(source))
        asked = RunSimulated(check.key, path, source, target, limit_us)
        return process._run_simulated(asked, run, lambda stage: None)

    right = ran(opened, None)
    assert isinstance(right, Measurement)
    assert ran(opened, 0.5 * right.median_us) == right  # data or not, it takes the same time
    assert ran(opened, 2 * right.median_us) == right
    for limit_us, is_run in ((None, True), (2 * right.median_us, True), (0.5, False)):
        result = ran(wrong, limit_us)
        assert isinstance(result, Failure) == is_run


def test_a_baseline_that_is_not_whole_is_none(softmaxed: tuple[Plan, MemoryArchive]) -> None:
    plan, archive = softmaxed
    tuned = {trial.group for trial in archive.trials if trial.predicted_us is not None}
    assert len(tuned) < 3  # add, softmax, both
    assert plan.summary.baseline_us == plan.summary.measured_us
    assert not plan.summary.improved


class Sorted(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sort(x, -1).values


@pytest.mark.parametrize(("model", "trials"), [(Sorted(), 6), (NormRelu(), 0)])
def test_a_plan_without_a_kernel_claims_no_time(
    simulated_device: AscendDevice, model: nn.Module, trials: int
) -> None:
    """The host's work has no time on the chip: there is no plan, and not one of 0 µs."""
    with pytest.raises(InvalidInput, match="no plan of this program runs here"):
        searched(simulated_device, model, (torch.randn(7, 100),), trials)


class NormLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(64), nn.Linear(64, 48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.linear(torch.relu(self.norm(x)))
        return result


def test_a_product_may_round_its_computed_operand_to_the_type_of_the_program(
    simulated_device: AscendDevice,
) -> None:
    torch.manual_seed(0)
    model, x = NormLinear().half(), torch.randn(32, 64).half()
    plan, archive = searched(simulated_device, model, (x,), trials=8)
    failed = [t.result for t in archive.trials if isinstance(t.result, Failure) and t.predicted_us]
    assert not failed
    assert [kernel.schedule.template for kernel in plan.kernels] == ["cube"]
    with torch.no_grad():
        want = model(x)
    torch.testing.assert_close(results(plan, model, (x,))[0], want, rtol=1e-2, atol=4e-3)


def test_wall_clock_times_of_a_simulated_plan_are_refused(
    softmaxed: tuple[Plan, MemoryArchive],
) -> None:
    plan, _ = softmaxed
    with pytest.raises(InvalidInput, match="simulated device"):
        verify(plan)


def test_an_npu_plan_stands_in_for_no_other_target() -> None:
    assert stands_in("cpu-x86-f25m17-x86-64-v3-c2", "cpu-x86-f6m85-x86-64-v4-c8")
    assert not stands_in("ascend-sim-910b3-ascendc-c40", "cpu-x86-f25m17-x86-64-v3-c2")
    assert not stands_in("ascend-sim-910b3-ascendc-c40", "ascend-sim-910b1-ascendc-c48")

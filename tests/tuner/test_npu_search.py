"""Searches and plans on `ascend:N`, over the stub of CANN: what a plan needs of a real NPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import graph_autofusion as gaf
from graph_autofusion.cli.doctor import CHECKS, Finding
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.ir.target import DeviceKind
from kernel_gen.records import Budget, JobRequest
from kernel_gen.runtime.ascend.cann import VARIABLES
from kernel_gen.runtime.ascend.npu import CLOCK
from kernel_gen.runtime.device_names import checked_device, device_target
from kernel_gen.runtime.key import plan_key
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.torch_glue import TorchPlan
from tuner.archive import MemoryArchive
from tuner.devices.ascend_device import AscendDevice
from tuner.session import Assignment, Session

pytestmark = pytest.mark.xdist_group("simulated")


class Model(nn.Module):
    """Kernels on both sides of an op that the framework runs, weights, a tensor in between."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(48, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.linear(x))
        return torch.softmax(torch.sort(hidden, -1).values * 2, -1)


class Counting(nn.Module):
    """Writes a buffer in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(40))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(x.abs())  # type: ignore[operator]
        return torch.exp(x) * self.seen  # type: ignore[operator]


def searched(device: AscendDevice, model: nn.Module, *inputs: torch.Tensor) -> Plan:
    with torch.no_grad():
        graph = gaf.capture(model.requires_grad_(False), inputs)
    request = JobRequest(graph.digest, "ascend:1", Budget(120.0, 4))
    assignment = Assignment(graph, plan_key(graph, device.target), request)
    return Session(assignment, device, MemoryArchive()).run()


def bound(plan: Plan, model: nn.Module) -> Callable[..., list[torch.Tensor]]:
    named = dict(model.named_parameters()) | dict(model.named_buffers())
    held = [named[given.name] for given in plan.program.inputs if given.kind.value != "user"]
    call = TorchPlan(plan, 1).bind(held)
    return lambda *inputs: call(inputs, 1)


def test_a_plan_of_kernels_and_framework_ops_is_found_and_right(
    npu_device: AscendDevice, stub_cann: Path
) -> None:
    model, x = Model(), torch.randn(5, 48)
    plan = searched(npu_device, model, x)
    assert plan.target.kind is DeviceKind.ASCEND
    assert plan.target.model == "910b3"
    assert len(plan.kernels) >= 2
    measured = plan.kernels[0].measurement
    assert measured is not None
    assert (measured.protocol.clock, measured.protocol.simulated) == (CLOCK, False)
    run = bound(plan, model)
    for given in (x, torch.randn(5, 48)):
        torch.testing.assert_close(run(given)[0], model(given), rtol=1e-5, atol=1e-6)


def test_a_plan_reads_tensors_that_it_writes_anew(
    npu_device: AscendDevice, stub_cann: Path
) -> None:
    model, x = Counting(), torch.randn(40)
    plan = searched(npu_device, model, x)
    ours, theirs = Counting(), Counting()
    run = bound(plan, ours)
    for _ in range(2):
        torch.testing.assert_close(run(x)[-1], theirs(x))
        torch.testing.assert_close(ours.seen, theirs.seen)


def test_weights_on_the_npu_are_snapshots(npu_device: AscendDevice, stub_cann: Path) -> None:
    model, x = Model(), torch.randn(5, 48)
    plan = searched(npu_device, model, x)
    held = [model.get_parameter(i.name) for i in plan.program.inputs if i.kind.value != "user"]
    assert TorchPlan(plan, 1).bind(held).snapshots == {0, 1}


def test_without_cann_the_error_names_variables_and_the_simulator(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(Unavailable, match=r"ASCEND_HOME_PATH.*ascend-sim:910b3"):
        checked_device("ascend:0")
    monkeypatch.setenv("ASCEND_TOOLKIT_HOME", str(tmp_path))
    with pytest.raises(Unavailable, match=r"no compiler \(bisheng or ccec\)"):
        checked_device("ascend:0")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ccec").touch()
    with pytest.raises(Unavailable, match=r"no libascendcl\.so"):
        checked_device("ascend:0")


def test_an_npu_that_is_not_there_is_unavailable(stub_cann: Path) -> None:
    with pytest.raises(Unavailable, match="there is no NPU 7: ACL finds 2"):
        device_target("ascend:7")
    with pytest.raises(InvalidInput, match="unknown"):
        checked_device("ascend:0 ")


def finding() -> Finding:
    (check,) = (check for check in CHECKS if check.__name__ == "_ascend")
    return check()


def test_the_doctor_says_which_chip_there_is(stub_cann: Path) -> None:
    assert finding().state == "ok"
    assert "910b3" in finding().detail


def test_the_doctor_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert finding().state == "absent"
    assert "ASCEND_HOME_PATH" in finding().detail

"""A planted fault is found, and cut down to the op that has it."""

from __future__ import annotations

from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.codegen.template import Template
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.types import TensorType
from kernel_gen.records import Stage
from tests.tuner.tuner_jobs import Sabotaged
from tuner.devices.device import LocalDevice
from tuner.repro import Repro


def _program() -> Graph:
    """tanh(relu(x) · y) + y."""
    b = GraphBuilder()
    x, y = (b.input(TensorType(DType.F32, (64,))) for _ in range(2))
    b.output(b.op("add", b.op("tanh", b.op("mul", b.op("relu", x), y)), y))
    return b.build()


def _pointwise(device: LocalDevice) -> list[Template]:
    return [template for template in templates(device.target) if template.name == "pointwise"]


def test_right_kernels_are_counted(local_device: LocalDevice) -> None:
    kinds = _pointwise(local_device)
    searched = Repro(local_device, kinds, points=1).search(_program())
    assert searched.finding is None
    assert searched.kernels > 4


def test_a_wrong_kernel_is_cut_down(local_device: LocalDevice) -> None:
    """Kernels with a tanh in them return at once."""

    def change(symbol: str, text: str) -> str:
        return text.replace(") {", ") { return 0;", 1) if "tanh" in text else text

    kinds = [Sabotaged(template, change) for template in _pointwise(local_device)]
    finding = Repro(local_device, kinds, points=0).search(_program()).finding
    assert finding is not None
    assert [node.op for node in finding.graph.nodes] == ["tanh"]
    assert finding.failure.stage in (Stage.CHECK, Stage.BUILD)

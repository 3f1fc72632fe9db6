"""Generated text of a few Ascend kernels, line by line; `make golden` writes it anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_gen.codegen.ascend.registry import templates
from kernel_gen.codegen.ascend.target import npu_target
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import Refusal
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from tests.codegen.ascend import ascend_graphs as g
from tests.codegen.ascend.ascend_run import CHIP, lowered, schedule_of

FOLDER = Path(__file__).parent / "golden"
KERNELS: dict[str, Graph] = {
    "bias_relu": g.bias_relu("s0", "s1", dtype=DType.F16),
    "softmax": g.unary("softmax", "s0", "s1", dim=1),
    "linear_relu": g.linear("s0", 40, 33, after="relu"),
}


def source_of(name: str) -> KernelSource:
    made = lowered(KERNELS[name])
    assert not isinstance(made, Refusal)
    schedule = schedule_of(made.nest)
    assert not isinstance(schedule, Refusal)
    target = npu_target(CHIP)
    template = next(t for t in templates(target) if t.name == schedule.template)
    return template.generate(made.nest, target, schedule, name)


@pytest.mark.parametrize("name", KERNELS)
def test_text_is_as_recorded(name: str, request: pytest.FixtureRequest) -> None:
    for file, text in source_of(name).files:
        path = FOLDER / file
        if request.config.getoption("--golden-update", default=False):
            path.write_text(text)
        assert path.read_text() == text


@pytest.mark.parametrize("name", KERNELS)
def test_generation_is_deterministic(name: str) -> None:
    assert source_of(name).digest == source_of(name).digest


def test_header_names_the_fused_ops() -> None:
    text = source_of("softmax").files[0][1]
    assert text.startswith("// softmax fuses: amax, sub, exp, sum, div.")


def test_steps_say_which_op_they_are() -> None:
    text = source_of("softmax").files[0][1]
    notes = [line.strip() for line in text.splitlines() if line.startswith("            // ")]
    whole = ["// amax over i1", "// sub", "// exp", "// sum over i1", "// div"]
    assert notes[: len(whole)] == whole

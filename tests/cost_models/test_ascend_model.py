"""The analytic model of NPUs: what it must rank, and its bounds."""

from __future__ import annotations

import pytest

from cost_models.ascend import AscendModel
from cost_models.choose import model_for
from kernel_gen.ascend.chips import load_chip
from kernel_gen.codegen.ascend.target import npu_target
from kernel_gen.codegen.registry import templates
from kernel_gen.fusion.lower import Lowered, lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.types import TensorType
from kernel_gen.schedule.schedule import Schedule

TARGET = npu_target("910b3")
CHIP = load_chip("910b3")


def nest(op: str, elems: int) -> LoopNest:
    b = GraphBuilder()
    b.output(b.op(op, b.input(TensorType(DType.F32, (elems,)))))
    graph = b.build()
    made = lower(graph, make_group(graph, [0]))
    assert isinstance(made, Lowered)
    return made.nest


def schedule(cores: int) -> Schedule:
    template = next(t for t in templates(TARGET) if t.name == "elementwise")
    point = dict(template.space(nest("relu", 1 << 20), TARGET).seeds[0]) | {"cores": cores}
    made = template.schedule(nest("relu", 1 << 20), TARGET, point)
    assert isinstance(made, Schedule)
    return made


def test_npus_have_their_own_model() -> None:
    assert model_for(TARGET).name == "ascend"


def test_a_long_copy_takes_its_bytes_over_the_bandwidth() -> None:
    us = AscendModel().predict_us(nest("relu", 1 << 26), None, TARGET)
    assert us == pytest.approx(2 * 4 * 2**26 / CHIP.hbm_bytes_per_s * 1e6, rel=0.1)


def test_a_short_kernel_takes_its_launch() -> None:
    assert AscendModel().predict_us(nest("relu", 64), None, TARGET) == pytest.approx(
        CHIP.launch_us, rel=0.25
    )


def test_one_core_is_slower_than_all() -> None:
    model = AscendModel()
    one, all_ = (model.predict_us(nest("relu", 1 << 20), schedule(n), TARGET) for n in (1, 40))
    assert one > 3 * all_


def test_slow_functions_cost_more_than_cheap_ones() -> None:
    model = AscendModel()
    erf, relu = (model.predict_us(nest(op, 1 << 22), None, TARGET) for op in ("erf", "relu"))
    assert erf > relu


def test_windows_cost_what_it_takes_to_gather_them() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.F16, (8, 64, 112, 112)))
    b.output(b.op("max_pool", x, kernel=(3, 3), stride=(2, 2), low=(1, 1), high=(1, 1),
                  dilation=(1, 1)))  # fmt: skip
    graph = b.build()
    made = lower(graph, make_group(graph, [0]))
    assert isinstance(made, Lowered)
    us = AscendModel().predict_us(made.nest, None, TARGET)
    assert us > 2 * 1.25 * 2 * 8 * 64 * 112 * 112 / CHIP.hbm_bytes_per_s * 1e6


def linear(dtype: DType) -> LoopNest:
    """relu(x @ w + b) as one nest."""
    b = GraphBuilder()
    x, w, bias = (b.input(TensorType(dtype, shape)) for shape in ((256, 128), (512, 128), (512,)))
    b.output(b.op("relu", b.op("add", b.op("linear", x, w), bias)))
    graph = b.build()
    made = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert isinstance(made, Lowered)
    return made.nest


def test_a_bias_in_the_table_costs_no_vector_stage() -> None:
    half = linear(DType.F16)
    template = next(t for t in templates(TARGET) if t.name == "cube")
    seeds = [dict(seed) for seed in template.space(half, TARGET).seeds]
    assert [seed["bias"] for seed in seeds] == ["table", "vector"]
    schedules = [template.schedule(half, TARGET, seed) for seed in seeds]
    table, vector = (
        AscendModel().predict_us(half, s, TARGET) for s in schedules if isinstance(s, Schedule)
    )
    assert table < vector
    bf16 = linear(DType.BF16)  # the table takes no bf16
    assert AscendModel().predict_us(bf16, None, TARGET) == pytest.approx(vector)


def test_products_of_halves_run_at_the_rate_of_halves() -> None:
    def product(dtype: DType) -> float:
        b = GraphBuilder()
        x, w = (b.input(TensorType(dtype, shape)) for shape in ((1024, 4096), (4096, 4096)))
        b.output(b.op("linear", x, w))
        graph = b.build()
        made = lower(graph, make_group(graph, (0,)))
        assert isinstance(made, Lowered)
        return AscendModel().predict_us(made.nest, None, TARGET) - CHIP.launch_us

    cube_us = CHIP.microseconds(1024 * 4096 * 4096 / 16**3 / CHIP.cube_cores)
    assert cube_us < product(DType.F16) < 1.15 * cube_us
    assert product(DType.F32) > 3 * product(DType.F16)

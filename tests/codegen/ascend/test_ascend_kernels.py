"""Generated Ascend kernels on the simulator: right, and without a broken rule."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from kernel_gen.ascend.sim import build
from kernel_gen.codegen.ascend.registry import templates
from kernel_gen.codegen.ascend.target import npu_target
from kernel_gen.errors import Refusal
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from tests.codegen.ascend import ascend_graphs as g
from tests.codegen.ascend.ascend_run import (
    CHIP,
    SYMBOL,
    AscendKernel,
    check_graph,
    generated,
    lowered,
    schedule_of,
)
from tests.strategies import random_input

F16, BF16, F32 = DType.F16, DType.BF16, DType.F32

KERNELS: dict[str, Graph] = {
    "chain_f32": g.chain(37, 100),
    "chain_f16": g.chain(3, 1001, dtype=F16),
    "chain_bf16": g.chain(5, 77, dtype=BF16),
    "bias": g.bias_relu(33, 45, dtype=F16),
    "erf": g.unary("erf", 300),
    "tanh": g.unary("tanh", 300),
    "pow": g.binary("pow", 9, 50),
    "pow_rows_f16": g.binary("pow", 9, 50, dtype=F16, row=True),
    "floor_div_i8": g.binary("floor_div", 9, 50, dtype=DType.I8),
    "remainder_u8": g.binary("remainder", 9, 50, dtype=DType.U8),
    "fmod_i16": g.binary("fmod", 9, 50, dtype=DType.I16),
    "floor_div_i32": g.binary("floor_div", 40, 50, dtype=DType.I32),
    "remainder_i32_rows": g.binary("remainder", 40, 50, dtype=DType.I32, row=True),
    "fmod_i32": g.binary("fmod", 40, 50, dtype=DType.I32),
    "round_i8": g.unary("relu", 70, dtype=DType.I8),
    "not_bool": g.unary("logical_not", 70, dtype=DType.BOOL),
    "softmax": g.unary("softmax", 37, 1000, dim=1),
    "log_softmax": g.unary("log_softmax", 19, 333, dim=1),
    "log_softmax_half": g.unary("log_softmax", 300, 513, dtype=F16, dim=1),
    "layer_norm_tails": g.layer_norm(7, 700),
    "softmax_columns": g.unary("softmax", 70, 33, dim=0),
    "layer_norm": g.layer_norm(41, 129, dtype=F16),
    "argmax": g.unary("argmax", 9, 70, dims=(1,), keepdim=False),
    "prod": g.unary("prod", 5, 33, dims=(1,), keepdim=False),
    "any": g.unary("any", 9, 40, dtype=DType.BOOL, dims=(0,), keepdim=False),
    "min_rows": g.unary("amin", 7, 1536, dims=(1,), keepdim=False),
    "sum_long_rows": g.unary("sum", 5, 8192, dims=(1,), keepdim=False),
    "concat_rows": g.concat((3, 9, 16), (3, 2, 16), dim=1, dtype=F16),
    "concat_tails": g.concat((7, 50), (7, 19), dim=1),
    "concat_i8": g.concat((7, 50), (5, 50), dim=0, dtype=DType.I8),
    "pad": g.unary("pad", 4, 9, 33, low=(0, 2, 3), high=(0, 1, 5), value=-1.5),
    "sum_all": g.unary("sum", 300, 70, dims=(0, 1), keepdim=False),
    "sum_columns": g.unary("sum", 300, 70, dims=(0,), keepdim=False),
    "sum_middle": g.unary("sum", 6, 17, 33, dims=(1,), keepdim=False),
    "sum_i16_wraps": g.unary("sum", 40, 9, dtype=DType.I16, dims=(0,), keepdim=False),
    "sum_beside": g.sum_beside(64, 100, 7),
    "empty_beside": g.empty_beside(3, 17),
    "norm_of_columns": g.softmax_of_means(4, 5, 8, 6),
    "transposed": g.transposed(70, 45),
    "matmul": g.matmul((37, 51), (51, 45)),
    "matmul_f32": g.matmul((37, 51), (51, 45), dtype=F32),
    "matmul_bf16": g.matmul((37, 51), (51, 45), dtype=BF16),
    "batched": g.matmul((3, 20, 50), (3, 50, 33)),
    "tall_tiles": g.matmul((270, 331), (331, 245)),
    "linear_relu": g.linear(70, 130, 50, after="relu"),
    "linear_bias": g.linear(70, 130, 50, after="bias"),
    "linear_bias_relu": g.linear(300, 300, 700, after="bias_relu"),
    "linear_bias_f32": g.linear(70, 130, 49, dtype=F32, after="bias_relu"),
    "linear_bias_bf16": g.linear(70, 130, 50, dtype=BF16, after="bias_relu"),
    "linear_bias_row": g.linear(1, 300, 50, after="bias"),
    "linear_row": g.linear(1, 300, 50),
    "linear_of_heads": g.linear_of_heads(2, 4, 20, 24, 70),
    "linear_gelu": g.linear(70, 130, 50, after="bias_gelu"),
    "convolution_1x1": g.convolution(2, 40, 24, 9, 1),
    "convolution_1x1_sigmoid": g.convolution(2, 40, 24, 9, 1, after="sigmoid"),
    "convolution_3x3": g.convolution(2, 16, 24, 9, 3),
    "convolution_3x3_relu": g.convolution(2, 16, 24, 9, 3, after="relu"),
    "convolution_3x3_sigmoid": g.convolution(1, 5, 7, 10, 3, after="sigmoid"),
    "convolution_1x1_strided": g.convolution(2, 40, 24, 9, 1, 2),
    "convolution_3x3_strided": g.convolution(2, 16, 24, 9, 3, 2),
    "convolution_7x7_strided": g.convolution(2, 3, 16, 22, 7, 2, after="relu"),
    "pooled_product": g.pooled_product(2, 24, 16, 19),
    "pooled_product_f32": g.pooled_product(1, 10, 9, 12, dtype=F32),
    "convolution_5x5_by_4": g.convolution(1, 3, 8, 20, 5, 4),
    "every_other": g.every(7, 90, step=2),
    "every_third_half": g.every(300, step=3, dtype=F16),
    "every_other_padded": g.every(5, 40, step=2, pad=3),
    "norm_relu_matmul": g.norm_relu_matmul(50, 96, 40),
    "rows_of_a_table": g.rows_of(700, 33, 123),
    "rows_of_a_table_i32": g.rows_of(70, 130, 1000, DType.I32),
    "gathered": g.gathered(40, 50, 7),
    "moved_by_positions": g.moved_by_positions(),
    "gathered_wide": g.gathered(3, 500, 700, DType.I32),
}


def inputs_of(graph: Graph, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [random_input(rng, graph.type_of(i.value), i) for i in graph.inputs]


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_is_right(name: str, tmp_path: Path) -> None:
    graph = KERNELS[name]
    kernel = check_graph(graph, inputs_of(graph), tmp_path)
    assert not isinstance(kernel, Refusal), kernel.sentence


@pytest.mark.parametrize(("shape", "dims"), [((4, 3000), (1,)), ((3000, 4), (0,)), ((6000,), (0,))])
def test_variances_far_from_zero(
    shape: tuple[int, ...], dims: tuple[int, ...], tmp_path: Path
) -> None:
    """A mean is rounded to its own size: some deviations of data a million of them away from 0."""
    made = lowered(g.unary("var", *shape, dims=dims, keepdim=False, correction=0.0))
    assert not isinstance(made, Refusal)
    schedule = schedule_of(made.nest)
    assert not isinstance(schedule, Refusal)
    kernel = AscendKernel(made.nest, schedule, tmp_path)
    noise = np.random.default_rng(0).standard_normal(shape)
    for mean in (0.0, 1e3, 1e5, 1e7):
        data = (noise + mean).astype(np.float32)
        (got,) = kernel.run([data])
        want = data.astype(np.float64).var(axis=dims)
        slack = 4e-6 + 1e-6 * (mean * 3e-6) ** 2  # what is taken off is rounded as well
        np.testing.assert_allclose(got, want, rtol=slack, err_msg=f"mean {mean}")


def test_erf_is_right_to_six_ulp(tmp_path: Path) -> None:
    made = lowered(g.unary("erf", 4096))
    assert not isinstance(made, Refusal)
    schedule = schedule_of(made.nest)
    assert not isinstance(schedule, Refusal)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3e-39, 3.84, -3.86, 4.0, 1e30]
    data = np.linspace(-4.5, 4.5, 4096).astype(np.float32)
    data[: len(edges)] = edges
    (got,) = AscendKernel(made.nest, schedule, tmp_path).run([data])
    want = np.array([math.erf(x) for x in data])
    np.testing.assert_array_equal(np.isnan(got), np.isnan(data))
    known = ~np.isnan(data)
    ulps = np.abs(got[known] - want[known]) / np.spacing(np.abs(want[known]).astype(np.float32))
    assert ulps.max() <= 6


@pytest.mark.parametrize(
    ("name", "first", "others"),
    [
        ("linear_bias_relu", "table", ["vector"]),
        ("linear_gelu", "table", ["table", "vector"]),
        ("linear_of_heads", "table", ["table", "vector"]),
        ("linear_bias_bf16", None, [None]),  # the table takes no bf16
        ("convolution_1x1", None, []),
    ],
)
def test_a_bias_is_a_choice_where_the_table_takes_it(
    name: str, first: str | None, others: list[str | None]
) -> None:
    made = lowered(KERNELS[name])
    assert not isinstance(made, Refusal)
    target = npu_target(CHIP)
    template = next(t for t in templates(target) if t.name == "cube")
    seeds = template.space(made.nest, target).seeds
    assert [dict(seed).get("bias") for seed in seeds] == [first, *others]


def test_a_product_with_bias_and_relu_needs_no_vector_core() -> None:
    made = lowered(KERNELS["linear_bias_relu"])
    assert not isinstance(made, Refusal)
    for who, alone in (("table", True), ("vector", False)):
        schedule = schedule_of(made.nest, bias=who)
        assert not isinstance(schedule, Refusal)
        text = generated(made.nest, schedule, CHIP, "k").files[0][1]
        assert ("KERNEL_TYPE_AIC_ONLY" in text) == alone


def test_what_is_computed_in_front_of_a_product_is_written_as_it_is_read() -> None:
    """Neither pooled pixels nor numbers of channels are read element by element."""
    for name in ("pooled_product", "pooled_product_f32"):
        made = lowered(KERNELS[name])
        assert not isinstance(made, Refusal)
        schedule = schedule_of(made.nest)
        assert not isinstance(schedule, Refusal)
        assert "GetValue" not in generated(made.nest, schedule, CHIP, "k").files[0][1]


def test_left_operands_out_of_step_race(tmp_path: Path) -> None:
    """The left operand's buffers have no queue: the right one's orders both."""
    graph = KERNELS["tall_tiles"]
    made = lowered(graph)
    assert not isinstance(made, Refusal)
    schedule = schedule_of(made.nest, tileM=32, tileN=32)
    assert not isinstance(schedule, Refusal)
    files = dict(generated(made.nest, schedule, CHIP, SYMBOL).files[:3])
    name = f"{SYMBOL}.cpp"
    assert "step % 3" in files[name]
    files[name] = files[name].replace("step % 3", "step % 2")
    library = build(files, tmp_path)
    kernel = AscendKernel(made.nest, schedule, tmp_path, built=(library, SYMBOL))
    with pytest.raises(AssertionError, match="race"):
        kernel.run(inputs_of(graph))


def test_powers_at_the_edges_are_those_of_the_standard(tmp_path: Path) -> None:
    """C's pow (ISO C, F.10.4.4): zeros, infinities, NaN, negative bases, exponents between."""
    edges = np.array(
        [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 2.5, np.inf, -np.inf, np.nan],
        np.float32,
    )  # fmt: skip
    a, b = (x.reshape(-1).copy() for x in np.meshgrid(edges, edges))
    made = lowered(g.binary("pow", a.size))
    assert not isinstance(made, Refusal)
    schedule = schedule_of(made.nest)
    assert not isinstance(schedule, Refusal)
    (have,) = AscendKernel(made.nest, schedule, tmp_path).run([a, b])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(have, np.power(a, b), rtol=2e-6)


@pytest.mark.parametrize(
    ("name", "choices"),
    [
        ("softmax", {"walk": "steps"}),
        ("layer_norm", {"walk": "steps", "buffers": 1}),
        ("chain_f32", {"lanes": 512, "cores": 10}),
        ("bias", {"buffers": 1, "row": 0}),
        ("sum_columns", {"split": 1}),
        ("sum_all", {"split": 0}),
        ("transposed", {"lanes": 512}),
        ("sum_beside", {"walk": "steps", "cores": 1}),
        ("sum_beside", {"walk": "whole", "split": 1, "cores": 1}),
        ("matmul_f32", {"tileM": 32, "tileN": 32, "stages": 2}),
        ("tall_tiles", {"tileM": 128, "tileN": 64, "stages": 4}),
        ("tall_tiles", {"tileM": 32, "tileN": 208, "stages": 2}),
        ("norm_relu_matmul", {"tileM": 16, "tileN": 64}),
        ("linear_bias_relu", {"bias": "vector"}),
        ("linear_bias_relu", {"tileM": 64, "tileN": 96, "stages": 2}),
        ("linear_bias_f32", {"tileN": 32}),
        ("linear_gelu", {"bias": "vector"}),
        ("linear_of_heads", {"bias": "vector"}),
    ],
)
def test_other_schedules_are_right(
    name: str, choices: dict[str, int | str], tmp_path: Path
) -> None:
    graph = KERNELS[name]
    kernel = check_graph(graph, inputs_of(graph, 1), tmp_path, **choices)
    assert not isinstance(kernel, Refusal), kernel.sentence


def test_relu_keeps_nan_and_drops_what_is_negative(tmp_path: Path) -> None:
    odd = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-40, 3.0], np.float32)
    values = np.resize(odd, 70)
    kernel = check_graph(g.unary("relu", 70), [values], tmp_path)
    assert not isinstance(kernel, Refusal), kernel.sentence
    (out,) = kernel.run([values])
    np.testing.assert_array_equal(out, np.where(values <= 0, 0, values).astype(np.float32))


@pytest.mark.parametrize(
    ("graph", "code"),
    [
        (g.unary("abs", 8, dtype=DType.F64), "dtype-not-on-device"),
        (g.unary("asin", 8), "op-not-on-device"),
        (g.unary("abs", 8, dtype=DType.I64), "op-not-on-device"),
        (g.binary("add", 8, dtype=DType.I64), "op-not-on-device"),
        (g.binary("remainder", 8), "op-not-on-device"),
        (g.binary("shift_left", 8, dtype=DType.I32), "op-not-on-device"),
        (g.convolution(1, 3, 8, 24, 8, 8), "operand-layout"),
        (g.all_alive(58, "tanh"), "tile-too-large"),
    ],
)
def test_what_the_chip_lacks_is_refused_with_a_code(graph: Graph, code: str) -> None:
    made = lowered(graph)
    assert not isinstance(made, Refusal)
    refused = schedule_of(made.nest)
    assert isinstance(refused, Refusal)
    assert refused.code == code

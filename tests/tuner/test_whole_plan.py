"""Whole plans against eager, and against float64 where rounding spoils both."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as functional

from kernel_gen.frontend import capture
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.ir.types import TensorType
from kernel_gen.records import Failure, Stage
from kernel_gen.runtime.build import Compiler
from tests.models.forced import forced_plan
from tuner.checks.float64 import decisions, held_bytes, in_float64, is_no_worse
from tuner.child.exact_run import exact_results
from tuner.child.torch_parts import check_plan

_ROWS, _WIDTH = 48, 32


def sharp(scale: float = 4.0, *, swapped: bool = False, spike: float = 0.0) -> Graph:
    """Attention without a scale upon attention, in bf16: roundings of scores become other picks."""
    b = GraphBuilder()
    narrow = DType.BF16
    x = b.input(TensorType(narrow, (1, _ROWS, _WIDTH)))
    weights = [b.input(TensorType(narrow, (_WIDTH,) * 2), InputKind.PARAMETER) for _ in range(8)]
    for layer in range(2):
        q, k, v, w = weights[4 * layer : 4 * layer + 4]
        factor = b.op("full", shape=(), dtype=narrow, value=scale)
        q, k, v = (b.op("linear", x, weight) for weight in (q, k, v))
        if swapped and layer:
            k, v = v, k
        scores = b.op("matmul", b.op("mul", q, factor), b.op("permute", k, dims=(0, 2, 1)))
        read = b.op("matmul", b.op("softmax", scores, dim=2), v)
        x = b.op("sub", x, b.op("linear", read, w))
    if spike:
        at = (0, _ROWS // 2, 3)
        rest = tuple(extent - 1 - i for i, extent in zip(at, (1, _ROWS, _WIDTH), strict=True))
        one = b.op("full", shape=(1, 1, 1), dtype=narrow, value=spike)
        x = b.op("add", x, b.op("pad", one, low=at, high=rest, value=0.0))
    b.output(x)
    return b.build()


def verdict(plan_of: Graph, compiler: Compiler) -> Failure | None:
    """Of a plan of one program as a plan of `sharp()`."""
    return check_plan(sharp(), forced_plan(plan_of, compiler), 1, lambda stage: None)


def test_a_plan_is_right_that_is_no_further_from_float64_than_eager(
    kept_compiler: Compiler,
) -> None:
    assert verdict(sharp(), kept_compiler) is None


def test_a_plan_draws_what_eager_draws(kept_compiler: Compiler) -> None:
    def training(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        hidden = functional.dropout(functional.relu(x @ w), 0.2)
        return functional.dropout(hidden + torch.rand_like(hidden), 0.5).softmax(-1)

    graph = capture(training, (torch.randn(16, 32), torch.randn(32, 24))).graph
    plan = forced_plan(graph, kept_compiler)
    assert plan.kernels
    assert check_plan(graph, plan, 1, lambda stage: None) is None


@pytest.mark.parametrize(
    "wrong",
    [sharp(5.0), sharp(swapped=True), sharp(spike=6.0)],
    ids=["constant", "operands", "element"],
)
def test_a_wrong_plan_is_seen_where_rounding_spoils_results(
    kept_compiler: Compiler, wrong: Graph
) -> None:
    found = verdict(wrong, kept_compiler)
    assert found is not None
    assert (found.stage, found.code) == (Stage.CHECK, "wrong-result")


def spoilt(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two results whose errors are normal, with some of a dozen tolerances, and the exact ones."""
    exact = generator.standard_normal((100, 100))
    sizes = np.where(generator.random((100, 1)) < 0.02, 1.5, 0.01)
    actual, eager = (exact + sizes * generator.standard_normal((100, 100)) for _ in range(2))
    return actual, eager, exact


def test_errors_like_eagers_are_excused_and_others_are_not() -> None:
    actual, eager, exact = spoilt(np.random.default_rng(0))
    assert is_no_worse(actual, eager, exact, DType.BF16)
    worst = float(np.abs(eager - exact).max())
    for wrong in (exact[7, 7] + 4 * worst, math.nan, math.inf):
        other = actual.copy()
        other[7, 7] = wrong
        assert not is_no_worse(other, eager, exact, DType.BF16)
    assert not is_no_worse(actual + 1.0, eager, exact, DType.BF16)
    assert not is_no_worse(actual, exact, exact, DType.BF16)  # nothing excuses it


def test_what_eager_cannot_say_excuses_nothing() -> None:
    actual, _, exact = spoilt(np.random.default_rng(1))
    eager = exact.copy()
    eager[0] = math.inf  # as where a sum overflows
    assert not is_no_worse(actual, eager, exact, DType.F16)
    assert is_no_worse(eager.copy(), eager, exact, DType.F16)


def bucketed() -> Graph:
    """table[⌊10 x⌋] · x + [x > y]: decisions, and what follows from them."""
    b = GraphBuilder()
    x, y = (b.input(TensorType(DType.F32, (64,))) for _ in range(2))
    table = b.input(TensorType(DType.F32, (10,)), InputKind.PARAMETER)
    ten = b.op("full", shape=(), dtype=DType.F32, value=10.0)
    place = b.op("cast", b.op("floor", b.op("mul", x, ten)), dtype=DType.I64)
    read = b.op("take", table, place, dim=0)
    more = b.op("cast", b.op("gt", x, y), dtype=DType.F32)
    b.output(b.op("add", b.op("mul", read, x), more))
    return b.build()


def test_decisions_are_eagers() -> None:
    graph = bucketed()
    assert [graph.nodes[graph.producers()[value]].op for value in decisions(graph)] == [
        "floor",
        "cast",
        "gt",
    ]
    x = torch.arange(64) / 64
    x[:10] = torch.arange(10) / 10  # 10 x is a whole number in fp32, and below it in float64
    y, table = x.flip(0), torch.arange(10.0) ** 2
    found = exact_results(graph, [x, y, table], seconds=60.0)
    assert found is not None
    assert found[0].dtype == torch.float64
    right = table[(10 * x).floor().long()].double() * x.double() + (x > y).double()
    torch.testing.assert_close(found[0], right, rtol=1e-12, atol=1e-12)


def test_what_takes_too_long_or_is_not_known_has_no_exact_results() -> None:
    inputs = [torch.rand(64), torch.rand(64), torch.rand(10)]
    assert exact_results(bucketed(), inputs, seconds=-1.0) is None
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (4,)))
    kind = TensorType(DType.F32, (4,))
    (y,) = b.op(
        "framework",
        x,
        out_types=[kind],
        target="aten.sort.default",
        args=(),
        code="",
        sentence="",
    )
    b.output(y)
    assert in_float64(b.build()) is None


def test_memory_is_counted_to_the_last_reader() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.F64, (100,)))
    b.output(b.op("exp", b.op("exp", b.op("exp", x))))
    assert held_bytes(b.build()) == 3 * 800

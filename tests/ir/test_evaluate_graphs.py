"""The evaluator on whole random graphs, against the same graph run op by op in eager torch."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_gen.errors import InvalidInput
from kernel_gen.ir.arrays import Array
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.evaluate import evaluate
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.types import Sym, TensorType, ValueDomain
from tests.ir.eager import eager, to_torch
from tests.strategies import assert_outputs_match, graphs, inputs_for


def run_eager(graph: Graph, inputs: list[Array]) -> list[Array]:
    """Outputs in storage types."""
    env = {item.value: to_torch(array) for item, array in zip(graph.inputs, inputs, strict=True)}
    for node in graph.nodes:
        env[node.output] = eager(node.op, [env[v] for v in node.inputs], dict(node.attrs))
    return [_array(env[output.value]) for output in graph.outputs]


def _array(tensor: torch.Tensor) -> Array:
    if tensor.dtype is torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.contiguous().numpy()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_graphs_agree_with_eager(data: st.DataObject) -> None:
    graph = data.draw(graphs(specials=False))
    inputs = data.draw(inputs_for(graph))
    assert_outputs_match(graph, inputs, run_eager(graph, inputs))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_inputs_lie_in_their_domains(data: st.DataObject) -> None:
    graph = data.draw(graphs(steps=("indexed", "binary", "expand")))
    for item, array in zip(graph.inputs, data.draw(inputs_for(graph)), strict=True):
        type, domain = graph.values[item.value], item.domain
        assert array.shape == type.shape
        if domain.finite:
            assert np.isfinite(array.astype(np.float64)).all()
        if domain.low is not None and array.size:
            assert array.min() >= domain.low
        if domain.high is not None and array.size:
            assert array.max() <= domain.high


def test_fast_keeps_the_range_of_the_compute_type() -> None:
    """exp(100) overflows float32, so 1 / exp(100) - 1 / exp(100) must not see 3.7e-44."""
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (2,)))
    b.output(b.op("exp", x))
    (got,) = evaluate(b.build(), [np.array([100.0, -200.0], np.float32)])
    np.testing.assert_array_equal(got, [np.inf, 0.0])


def test_strict_rounds_every_result() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.BF16, ()))
    y = b.op("add", x, b.op("full", shape=(), dtype="bf16", value=2.0**-9))
    b.output(b.op("sub", y, x))
    one = np.array(1.0, ml_dtypes.bfloat16)
    assert evaluate(b.build(), [one], "strict")[0] == 0.0
    assert evaluate(b.build(), [one], "fast")[0] == 2.0**-9


def test_integers_wrap_before_they_are_widened() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.I32, (2,)))
    b.output(b.op("cast", b.op("add", x, x), dtype=DType.I64))
    (got,) = evaluate(b.build(), [np.array([2147483647, 1], np.int32)])
    np.testing.assert_array_equal(got, [-2, 2])
    assert got.dtype == np.int64


def test_long_sum_is_accurate() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (1 << 20,)))
    b.output(b.op("sum", x, dims=(0,), keepdim=False))
    (got,) = evaluate(b.build(), [np.full(1 << 20, 0.1, np.float32)])
    np.testing.assert_allclose(got, (1 << 20) * float(np.float32(0.1)), rtol=1e-14)


def test_extremes_over_nothing_are_neutral() -> None:
    b = GraphBuilder()
    x, y = b.input(TensorType(DType.F32, (2, 0))), b.input(TensorType(DType.I8, (2, 0)))
    for value in (x, y):
        for op in ("amax", "amin"):
            b.output(b.op(op, value, dims=(1,), keepdim=False))
    got = evaluate(b.build(), [np.zeros((2, 0), np.float32), np.zeros((2, 0), np.int8)])
    assert [array[0] for array in got] == [-np.inf, np.inf, -128, 127]


def test_results_do_not_share_memory_with_inputs() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.I64, (3,)))
    b.output(b.op("flip", x, dims=(0,)))
    given_array = np.arange(3)
    (got,) = evaluate(b.build(), [given_array])
    got[:] = 9
    np.testing.assert_array_equal(given_array, [0, 1, 2])


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([(3, 4), (4, 3)], "input 1"),
        ([(3, 5), (5, 3)], "input 0"),
        ([(3, 4)], "1 inputs for a graph of 2"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(shapes: list[tuple[int, ...]], message: str) -> None:
    b = GraphBuilder()
    b.symbol("s0", 1, 9, 3)
    x = b.input(TensorType(DType.F32, (Sym("s0"), 4)))
    y = b.input(TensorType(DType.F32, (Sym("s0"), 4)))
    b.output(b.op("add", x, y))
    with pytest.raises(InvalidInput, match=message):
        evaluate(b.build(), [np.zeros(shape, np.float32) for shape in shapes])


def test_wrong_dtype_and_numerics_are_refused() -> None:
    b = GraphBuilder()
    b.output(b.op("exp", b.input(TensorType(DType.F32, (2,)))))
    graph = b.build()
    with pytest.raises(InvalidInput, match=r"float64\[2\], expected f32\[2\]"):
        evaluate(graph, [np.zeros(2)])
    with pytest.raises(InvalidInput, match="expected fast or strict"):
        evaluate(graph, [np.zeros(2, np.float32)], "exact")


@pytest.mark.parametrize("op", ["gather", "take"])
@pytest.mark.parametrize("position", [-1, 5])
def test_positions_outside_the_table_are_refused(op: str, position: int) -> None:
    b = GraphBuilder()
    table = b.input(TensorType(DType.F32, (5,)))
    index = b.input(TensorType(DType.I64, (1,)), domain=ValueDomain(0, 4))
    b.output(b.op(op, table, index, dim=0))
    with pytest.raises(InvalidInput, match="leave a dimension of 5"):
        evaluate(b.build(), [np.zeros(5, np.float32), np.array([position])])

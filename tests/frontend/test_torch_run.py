"""Running graphs by torch: against the reference on random graphs, and the memory of results."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_gen.errors import InvalidGraph, InvalidInput
from kernel_gen.frontend.inputs import to_numpy
from kernel_gen.frontend.torch_ops import call_for, torch_ops
from kernel_gen.frontend.torch_run import TorchProgram, run
from kernel_gen.ir.arrays import Array, numpy_dtype
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Node, attrs
from kernel_gen.ir.ops import OPS
from kernel_gen.ir.types import TensorType
from tests.strategies import assert_outputs_match, graphs, inputs_for
from tests.strategy_steps import STEPS

F32 = TensorType(DType.F32, (2, 3))


def to_tensor(array: Array) -> torch.Tensor:
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.uint16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def test_torch_runs_every_op_of_the_vocabulary() -> None:
    assert torch_ops() == frozenset(OPS)


# One of torch's attention kernels gives 0 for a row of NaN, the other gives NaN; which of several
# equal elements torch.topk names is up to its sort.
DEFINED = [step for step in STEPS if step not in ("attention", "largest")]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_random_graphs_are_as_the_reference(data: st.DataObject) -> None:
    graph = data.draw(graphs(steps=DEFINED))
    arrays = data.draw(inputs_for(graph))
    inputs = [to_tensor(array) for array in arrays]
    results = TorchProgram(graph)(*inputs)
    assert_outputs_match(graph, arrays, [to_numpy(tensor) for tensor in results])
    env = {item.value: t for item, t in zip(graph.inputs, inputs, strict=True)}
    if not graph.constants:
        run(graph, range(len(graph.nodes)), env)
        for output, tensor in zip(graph.outputs, results, strict=True):
            assert torch.equal(env[output.value].nan_to_num(), tensor.nan_to_num())


def test_results_never_share_memory_unless_they_alias() -> None:
    builder = GraphBuilder()
    x = builder.input(F32)
    seen = builder.op("permute", x, dims=[1, 0])
    double = builder.op("add", x, x)
    again = builder.op("reshape", double, shape=[6])
    builder.output(seen)
    builder.output(seen, alias_of=0)
    builder.output(double)
    builder.output(again)
    builder.output(double)
    given = torch.ones(2, 3)
    fresh, view, first, flat, same = TorchProgram(builder.build())(given)
    assert view.data_ptr() == given.data_ptr()
    pointers = [tensor.data_ptr() for tensor in (given, fresh, first, flat)]
    assert len(set(pointers)) == 4
    assert same is first
    assert fresh.stride() == (2, 1)


def test_constants_are_not_handed_out() -> None:
    builder = GraphBuilder()
    constant = builder.constant(np.arange(3, dtype=np.float32))
    builder.output(constant)
    program = TorchProgram(builder.build())
    program()[0].zero_()
    assert torch.equal(program()[0], torch.arange(3.0))


def test_no_dims_reduce_one_element_each() -> None:
    builder = GraphBuilder()
    x = builder.input(F32)
    for op in ("sum", "prod", "amax", "mean"):
        builder.output(builder.op(op, x, dims=[], keepdim=False))
    given = torch.randn(2, 3)
    for result in TorchProgram(builder.build())(given):
        assert torch.equal(result, given)


def test_wrong_numbers_of_inputs_and_malformed_attributes_are_refused() -> None:
    builder = GraphBuilder()
    x = builder.input(F32)
    builder.output(builder.op("neg", x))
    with pytest.raises(InvalidInput, match="takes 1 tensors, got 2"):
        TorchProgram(builder.build())(torch.ones(2, 3), torch.ones(2, 3))
    with pytest.raises(InvalidGraph, match="s0"):
        call_for(Node("reshape", (0,), (1,), attrs(shape=("s0", 2))))


def test_values_are_freed_after_their_last_use() -> None:
    builder = GraphBuilder()
    value = builder.input(TensorType(DType.F32, (1 << 20,)))
    for _ in range(20):
        value = builder.op("neg", value)
    builder.output(value)
    program = TorchProgram(builder.build())
    given = torch.ones(1 << 20)
    with torch.profiler.profile(profile_memory=True) as profile:
        program(given)
    held, peak = 0, 0
    for event in profile.profiler.kineto_results.events():  # type: ignore[union-attr]
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    assert peak <= 3 * (4 << 20)


@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (2, 1, 3), (2, 0, 3), (0,)])
@pytest.mark.parametrize("low", [0, 1])
@pytest.mark.parametrize("op", ["max_pool", "avg_pool"])
def test_pools_take_any_number_of_dimensions(op: str, low: int, leading: tuple[int, ...]) -> None:
    builder = GraphBuilder()
    x = builder.input(TensorType(DType.F32, (*leading, 5, 4)))
    settings = {"kernel": (2, 2), "stride": (2, 1), "low": (low, 0), "high": (1, 0)}
    more = {"dilation": (1, 1)} if op == "max_pool" else {}
    builder.output(builder.op(op, x, **settings, **more))
    graph = builder.build()
    array = np.random.default_rng(0).standard_normal((*leading, 5, 4), np.float32)
    (result,) = TorchProgram(graph)(torch.from_numpy(array))
    assert_outputs_match(graph, [array], [to_numpy(result)])


@pytest.mark.parametrize("leading", [(), (3,), (2, 3), (2, 1, 3), (2, 0, 3), (0,)])
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_images_of_any_number_of_dimensions_are_resized(
    mode: str, leading: tuple[int, ...]
) -> None:
    builder = GraphBuilder()
    x = builder.input(TensorType(DType.F64, (*leading, 5, 4)))
    attrs = {"sizes": (3, 7), "scales": (0.0, 0.0), "mode": mode, "align": True}
    builder.output(builder.op("resize", x, **attrs))
    graph = builder.build()
    array = np.random.default_rng(0).standard_normal((*leading, 5, 4))
    (result,) = TorchProgram(graph)(torch.from_numpy(array))
    assert_outputs_match(graph, [array], [to_numpy(result)])


@pytest.mark.parametrize("dtype", ["bool", "u8", "i8", "i64", "f16", "bf16", "f64"])
@pytest.mark.parametrize("dims", [[0], [0, 1]])
def test_extremes_of_no_elements_are_the_bounds_of_the_type(dtype: str, dims: list[int]) -> None:
    builder = GraphBuilder()
    x = builder.input(TensorType(DType(dtype), (0, 4)))
    for op in ("amax", "amin"):
        builder.output(builder.op(op, x, dims=dims, keepdim=len(dims) == 1))
    graph = builder.build()
    array = np.zeros((0, 4), numpy_dtype(DType(dtype)))
    results = TorchProgram(graph)(to_tensor(array))
    assert_outputs_match(graph, [array], [to_numpy(tensor) for tensor in results])

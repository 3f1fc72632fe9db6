"""What is known of values from how a program uses them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from kernel_gen.frontend import capture
from kernel_gen.frontend.torch_run import TorchProgram
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import InputKind
from kernel_gen.ir.types import TensorType, ValueDomain
from tuner.checks.domains import FREE, value_domains
from tuner.checks.operands import graph_operands


def test_integers_are_not_divided_by_zero() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.I32, (4, 5)))
    y = b.input(TensorType(DType.I8, (5,)))
    wide = b.op("cast", y, dtype="i32")
    b.output(b.op("remainder", x, b.op("expand", wide, shape=(4, 5))))
    domains = value_domains(b.build())
    assert domains[x] == FREE
    assert domains[y] == domains[wide] == ValueDomain(low=1.0)


def test_floats_may_be() -> None:
    b = GraphBuilder()
    x, y = (b.input(TensorType(DType.F32, (4,))) for _ in range(2))
    b.output(b.op("fmod", x, y))
    assert set(value_domains(b.build())) == {FREE}


def test_positions_lie_inside_what_they_address() -> None:
    b = GraphBuilder()
    table = b.input(TensorType(DType.F32, (7, 3)))
    at = b.input(TensorType(DType.I64, (4,)))
    b.output(b.op("take", table, at, dim=0))
    domain = value_domains(b.build())[at]
    assert (domain.low, domain.high) == (0, 6)


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_starts_of_bags_ascend_from_zero(mode: str, closed: bool) -> None:
    """torch's own capture; it refuses other starts."""
    model = nn.EmbeddingBag(100, 8, mode=mode, include_last_offset=closed)
    given = (torch.zeros(32, dtype=torch.int32), torch.zeros(8, dtype=torch.int32))
    graph = capture(model, given).graph
    domains = value_domains(graph)
    bounds = [(domains[i.value].low, domains[i.value].high) for i in graph.inputs]
    assert bounds == [(None, None), (0, 99), (0, 32)]
    for seed in range(20):
        table, positions, starts = graph_operands(graph, domains, np.random.default_rng(seed))
        assert starts[0] == 0
        assert np.all(np.diff(starts) >= 0)
        assert not closed or starts[-1] == len(positions)
        TorchProgram(graph)(*map(torch.from_numpy, (table, positions, starts)))


def test_variances_are_such_that_norms_have_results() -> None:
    """Else half of all channels hold NaN, behind a few layers all elements, and no fault shows."""
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (2, 3, 4)))
    mean, var = (b.input(TensorType(DType.BF16, (3,)), InputKind.BUFFER) for _ in range(2))
    wide = [b.op("cast", value, dtype="f32") for value in (mean, var)]
    b.output(b.op("batch_norm", x, *wide, eps=1e-5, weight=False, bias=False))
    domains = value_domains(b.build())
    assert domains[mean] == FREE
    assert domains[var] == domains[wide[1]] == ValueDomain(low=0.5)


def test_weights_under_a_root_are_not_negative_and_users_values_may_be() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (3,)))
    var = b.input(TensorType(DType.F32, (3,)), InputKind.BUFFER)
    eps = b.op("full", shape=(), dtype=DType.F32, value=1e-5)
    b.output(b.op("mul", b.op("sqrt", x), b.op("rsqrt", b.op("add", var, eps))))
    domains = value_domains(b.build())
    assert domains[x] == FREE
    assert domains[var] == ValueDomain(low=0.5)

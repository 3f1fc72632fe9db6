"""A log-softmax and its exponential take one exponential of each element; others keep theirs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kernel_gen.codegen.flat.linear import flatten
from kernel_gen.codegen.flat.simplify import simplify
from kernel_gen.errors import Refusal
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import Compute
from kernel_gen.ir.target import Target
from kernel_gen.runtime.build import Compiler
from tests.codegen.kernel_bench import KernelBench, run_kernel
from tests.codegen.kernel_graphs import case_of, check_all_templates, tensor

ROWS, COLS = 6, 37


def log_softmax_and_softmax(dtype: DType = DType.F32, dim: int = 1) -> Graph:
    """Logarithms of the shares of a row, and the shares."""
    b = GraphBuilder()
    logs = b.op("log_softmax", b.input(tensor(ROWS, COLS, dtype=dtype)), dim=dim)
    b.output(logs)
    b.output(b.op("exp", logs))
    return b.build()


def of_another_sum() -> Graph:
    """exp(x - max - log Σ exp(y)): the sum is that of other exponentials."""
    b = GraphBuilder()
    x, y = b.input(tensor(ROWS, COLS)), b.input(tensor(ROWS, COLS))
    shifted = b.op("sub", x, b.op("amax", x, dims=(1,), keepdim=True))
    total = b.op("sum", b.op("exp", y), dims=(1,), keepdim=True)
    b.output(b.op("exp", b.op("sub", shifted, b.op("log", total))))
    return b.build()


def without_maximum() -> Graph:
    """exp(x - log Σ exp(x)) is 0 where the sum overflows, the quotient NaN."""
    b = GraphBuilder()
    x = b.input(tensor(ROWS, COLS))
    total = b.op("sum", b.op("exp", x), dims=(1,), keepdim=True)
    b.output(b.op("exp", b.op("sub", x, b.op("log", total))))
    return b.build()


GRAPHS = {
    "f32": (log_softmax_and_softmax(), 1),
    "f64": (log_softmax_and_softmax(DType.F64), 1),
    "columns": (log_softmax_and_softmax(dim=0), 1),
    "another sum": (of_another_sum(), 2),
    "without maximum": (without_maximum(), 2),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_exponentials_are_taken_once_where_both_are_the_same(name: str) -> None:
    graph, count = GRAPHS[name]
    flat = simplify(flatten(case_of(graph).lowered.nest))
    needed = [s for s in flat.statements if isinstance(s, Compute) and s.op == "exp"]
    assert len(needed) == count


def test_quotients_equal_the_reference(compiler: Compiler, level: Target) -> None:
    check_all_templates(KernelBench(compiler, level), (graph for graph, _ in GRAPHS.values()))


def test_what_is_no_number_and_what_vanishes(compiler: Compiler, level: Target) -> None:
    """Rows with NaN, infinities, only -inf, and differences whose exponentials vanish."""
    x = np.random.default_rng(3).normal(size=(ROWS, COLS)).astype(np.float32)
    x[0, 3], x[1, 4], x[2, 5], x[3], x[4, :9] = np.nan, np.inf, -np.inf, -np.inf, 3e38
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64) - x.max(axis=1, keepdims=True)
        logs = wide - np.log(np.exp(wide).sum(axis=1, keepdims=True))
        expected = np.exp(logs)
    nest = case_of(log_softmax_and_softmax()).lowered.nest
    bench = KernelBench(compiler, level)
    assert not isinstance(bench.add(nest, "row"), Refusal)
    (kernel,) = bench.build()
    got = run_kernel(kernel, [x])
    assert math.isnan(got[1][0, 0])
    np.testing.assert_allclose(got[1], expected, rtol=1e-5, atol=1e-37)
    np.testing.assert_allclose(got[0], logs, rtol=1e-5, atol=1e-6)

"""Kernels of every template on hand-picked graphs, at every instruction-set level."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernel_gen.errors import Refusal
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.index import axis_index
from kernel_gen.ir.loopnest import (
    Axis,
    Buffer,
    BufferRole,
    Compute,
    Load,
    LoopNest,
    Reduce,
    Store,
)
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import Sym, TensorType
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.kernel import LoadedKernel
from kernel_gen.schedule.schedule import Choice
from tests.codegen.kernel_bench import KernelBench, run_kernel
from tests.codegen.kernel_graphs import GraphCase, case_of, single, tensor

I32, I64, BF16, F64, BOOL = DType.I32, DType.I64, DType.BF16, DType.F64, DType.BOOL


def softmax_of_scores() -> Graph:
    b = GraphBuilder()
    x, mask = b.input(tensor(3, 5, 37)), b.input(tensor(5, 37))
    scaled = b.op("mul", x, b.constant(np.float32(0.125)))
    b.output(b.op("softmax", b.op("add", scaled, mask), dim=2))
    return b.build()


def add_layer_norm_gelu() -> Graph:
    b = GraphBuilder()
    x, y = b.input(tensor(6, 83)), b.input(tensor(6, 83))
    weight, bias = b.input(tensor(83)), b.input(tensor(83))
    normed = b.op(
        "layer_norm", b.op("add", x, y), weight, bias, axes=1, eps=1e-5, weight=True, bias=True
    )
    b.output(b.op("gelu", normed, approximate="none"))
    return b.build()


def transposed_sum(rows: int, cols: int, dtype: DType = DType.F32) -> Graph:
    b = GraphBuilder()
    x, y = b.input(tensor(rows, cols, dtype=dtype)), b.input(tensor(cols, rows, dtype=dtype))
    b.output(b.op("relu", b.op("add", b.op("permute", x, dims=(1, 0)), y)))
    return b.build()


def concatenated() -> Graph:
    b = GraphBuilder()
    parts = [b.input(tensor(7, n)) for n in (5, 16, 33)]
    b.output(b.op("sigmoid", b.op("concat", *parts, dim=1)))
    return b.build()


def reduced(op: str, dims: tuple[int, ...], *shape: int, dtype: DType = DType.F32) -> Graph:
    return single(op, tensor(*shape, dtype=dtype), dims=dims, keepdim=False)


GRAPHS: dict[str, tuple[Callable[[], Graph], str, dict[str, Choice]]] = {
    "softmax": (softmax_of_scores, "row", {}),
    "softmax recomputed": (softmax_of_scores, "row", {"keep": "none", "unroll": 2}),
    "softmax split": (softmax_of_scores, "row", {"threads": "split"}),
    "softmax fetched ahead": (softmax_of_scores, "row", {"ahead": 2}),
    "norm": (add_layer_norm_gelu, "row", {}),
    "norm, rows side by side": (add_layer_norm_gelu, "row", {"rows": 2, "unroll": 1}),
    "norm streamed": (add_layer_norm_gelu, "row", {"stream": 1, "keep": "all"}),
    "sum of everything": (lambda: reduced("sum", (0, 1), 70, 133), "row", {"threads": "split"}),
    "columns": (lambda: reduced("sum", (0,), 70, 133), "reduce", {}),
    "columns split": (lambda: reduced("amax", (0,), 70, 133), "reduce", {"threads": "split"}),
    "outer and inner": (lambda: reduced("sum", (0, 2), 5, 6, 40), "row", {}),
    "middle": (lambda: reduced("prod", (1,), 3, 9, 50), "reduce", {"rows": 2}),
    "argmax": (lambda: reduced("argmax", (1,), 9, 77), "row", {"unroll": 2}),
    "argmin of columns": (lambda: reduced("argmin", (0,), 77, 35), "reduce", {}),
    "argmax flattened": (lambda: reduced("argmax", (0, 1), 9, 77), "row", {"threads": "split"}),
    "argmax of integers": (lambda: reduced("argmax", (1,), 9, 77, dtype=I32), "row", {}),
    "any": (lambda: reduced("any", (1,), 9, 77, dtype=BOOL), "row", {}),
    "all of columns": (lambda: reduced("all", (0,), 9, 77, dtype=BOOL), "reduce", {}),
    "integer sum": (lambda: reduced("sum", (1,), 9, 77, dtype=I64), "row", {}),
    "double sum": (lambda: reduced("sum", (1,), 9, 77, dtype=F64), "row", {}),
    "short rows": (lambda: reduced("sum", (1,), 100, 3), "reduce", {}),
    "transposed": (lambda: transposed_sum(48, 35), "pointwise", {}),
    "transposed bf16": (lambda: transposed_sum(35, 48, BF16), "pointwise", {}),
    "transposed, tiles ahead": (lambda: transposed_sum(37, 35), "pointwise", {"ahead": 1}),
    "transposed bf16, tiles ahead": (
        lambda: transposed_sum(48, 35, BF16),
        "pointwise",
        {"ahead": 1, "stream": 1},
    ),
    "transposed plainly": (lambda: transposed_sum(20, 19), "pointwise", {"across": ""}),
    "concatenated": (concatenated, "pointwise", {}),
    "product": (lambda: single("matmul", tensor(3, 7, 9), tensor(3, 9, 20)), "loops", {}),
    "two passes": (
        lambda: single("attention", *[tensor(2, 2, 7, 5)] * 3, scale=0.4, causal=True, mask=False),
        "loops",
        {},
    ),
    "scalars": (lambda: single("softmax", tensor(4, 5), dim=1), "loops", {"axis": "scalar"}),
}
Built = dict[str, tuple[LoadedKernel, GraphCase]]


@pytest.fixture(scope="module")
def built(compiler: Compiler, level: Target) -> Built:
    """All graphs above in one shared object."""
    bench, cases = KernelBench(compiler, level), {}
    for name, (graph, template, choices) in GRAPHS.items():
        cases[name] = case_of(graph())
        added = bench.add(cases[name].lowered.nest, template, **choices)
        assert not isinstance(added, Refusal), f"{name}: {added}"
    return {n: (k, cases[n]) for n, k in zip(GRAPHS, bench.build(), strict=True)}


@pytest.mark.parametrize("name", GRAPHS)
def test_equals_the_reference(built: Built, name: str) -> None:
    kernel, case = built[name]
    for threads in (1, 2, 3):
        case.check(kernel, threads)


def test_split_sums_repeat_exactly(built: Built) -> None:
    kernel, case = built["sum of everything"]
    first, second = (run_kernel(kernel, case.inputs, 2)[0] for _ in range(2))
    assert first.tobytes() == second.tobytes()


def run_one(compiler: Compiler, graph: Graph, inputs: list[np.ndarray], template: str,
            team: int = 1, **choices: Choice) -> tuple[int, np.ndarray]:  # fmt: skip
    """Status and first output of one kernel of the graph."""
    case = case_of(graph, inputs)
    bench = KernelBench(compiler, host_target())
    added = bench.add(case.lowered.nest, template, **choices)
    assert not isinstance(added, Refusal), added
    kernel = bench.build()[0]
    known = {i.value: a for i, a in zip(case.graph.inputs, inputs, strict=True)}
    kind = kernel.nest.buffers[-1].type
    out = np.zeros(kind.shape, numpy_dtype(kind.dtype))
    return kernel.run([*(known[v] for v in case.lowered.operands[:-1]), out], team), out


def test_long_sum_is_accurate(compiler: Compiler) -> None:
    x = np.random.default_rng(0).random(2**25, np.float32)
    for team in (1, 2):
        status, got = run_one(
            compiler, reduced("sum", (0,), 2**25), [x], "row", team, threads="split"
        )
        assert status == 0
        assert abs(float(got) / x.sum(dtype=np.float64) - 1) < 1e-6


def test_long_column_sum_is_accurate(compiler: Compiler) -> None:
    x = np.random.default_rng(0).random((2**18, 16), np.float32)
    _, got = run_one(compiler, reduced("sum", (0,), 2**18, 16), [x], "reduce", threads="one")
    np.testing.assert_allclose(got, x.sum(0, dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize("op", ["floor_div", "remainder", "fmod"])
def test_integer_division_by_zero_is_an_error_not_a_crash(compiler: Compiler, op: str) -> None:
    graph = single(op, tensor(40, dtype=I32), tensor(40, dtype=I32))
    low = np.iinfo(np.int32).min
    a, b = np.full(40, low, np.int32), np.full(40, -1, np.int32)
    status, got = run_one(compiler, graph, [a, b], "pointwise")
    assert status == 0
    np.testing.assert_array_equal(got, low if op == "floor_div" else 0)
    b[39] = 0
    assert run_one(compiler, graph, [a, b], "pointwise")[0] == 1


@pytest.mark.parametrize("dtype", [I32, I64])
@pytest.mark.parametrize("op", ["floor_div", "remainder", "fmod"])
def test_integers_wrap_in_quotients(compiler: Compiler, op: str, dtype: DType) -> None:
    """x / 7 beside (-x) / 7, which compilers may take for the first one's negation."""
    b = GraphBuilder()
    x = b.input(tensor(9, dtype=dtype))
    seven = b.constant(np.asarray(7, numpy_dtype(dtype)))
    for value in (x, b.op("neg", x)):
        b.output(b.op(op, value, seven))
    least = np.iinfo(numpy_dtype(dtype)).min
    given = np.array([least, least + 1, -8, -7, -1, 0, 7, 8, -1 - least], numpy_dtype(dtype))
    case = case_of(b.build(), [given])
    bench = KernelBench(compiler, host_target())
    for axis in ("scalar", "contiguous"):
        bench.add(case.lowered.nest, "loops", axis=axis)
    for kernel in bench.build():
        case.check(kernel)


def test_nan_wins_extremes(compiler: Compiler) -> None:
    x = np.arange(60, dtype=np.float32).reshape(2, 30)
    x[1, 7] = np.nan
    for op in ("amax", "amin"):
        _, got = run_one(compiler, reduced(op, (1,), 2, 30), [x], "row")
        assert np.isnan(got[1])
        assert got[0] == (29 if op == "amax" else 0)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("dtype", [DType.F32, F64, DType.I8])
def test_positions_of_first_extremes(compiler: Compiler, op: str, dtype: DType) -> None:
    """Ties, rows of the least (or largest) value, NaN, in rows, columns and shared rows."""
    rng = np.random.default_rng(1)
    x = rng.integers(-3, 4, (11, 45)).astype(numpy_dtype(dtype))
    if dtype.is_float:
        x[0], x[1] = -np.inf, np.inf
        x[2, 20], x[3, 44], x[3, 7], x[4, 0] = np.nan, np.nan, np.nan, np.nan
        x[5, :44] = -np.inf if op == "argmax" else np.inf
    else:
        x[0], x[1] = np.iinfo(x.dtype).min, np.iinfo(x.dtype).max
    bench, kept = KernelBench(compiler, host_target()), []
    for dims in ((1,), (0,), (0, 1)):
        case = case_of(reduced(op, dims, 11, 45, dtype=dtype), [x])
        for template, choices in (
            ("row", {"threads": "split"}),
            ("reduce", {"rows": 1}),
            ("loops", {"axis": "scalar"}),
        ):
            if template in [t.name for t in bench.taking(case.lowered.nest)]:
                assert not isinstance(bench.add(case.lowered.nest, template, **choices), Refusal)
                kept.append(case)
    for kernel, case in zip(bench.build(), kept, strict=True):
        for threads in (1, 2, 3):
            case.check(kernel, threads)


def test_strided_operands(compiler: Compiler) -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (6, 20), (1, 6)))
    b.output(b.op("neg", x))
    array = np.arange(120, dtype=np.float32).reshape(20, 6).T
    _, got = run_one(compiler, b.build(), [array], "pointwise")
    np.testing.assert_array_equal(got, -array)


def gather_graph() -> Graph:
    b = GraphBuilder()
    table, index = b.input(tensor(50, 20)), b.input(tensor(30, dtype=I64))
    b.output(b.op("neg", b.op("take", table, index, dim=0)))
    return b.build()


def test_indices_outside_are_an_error_not_a_crash(compiler: Compiler) -> None:
    table = np.random.default_rng(0).random((50, 20), np.float32)
    for along in ("i0", "i1"):
        index = np.arange(30, dtype=np.int64)
        status, got = run_one(compiler, gather_graph(), [table, index], "pointwise", axis=along)
        assert status == 0
        np.testing.assert_array_equal(got, -table[:30])
        for wrong in (50, -1, 2**40):
            index[29] = wrong
            found = run_one(compiler, gather_graph(), [table, index], "pointwise", axis=along)
            assert found[0] == 1


def symbolic_softmax() -> LoopNest:
    """Softmax over the last axis of x[s0, s1], times y[s1]."""
    i, j = axis_index("i0"), axis_index("i1")
    rows, cols = Sym("s0"), Sym("s1")
    x, y = TensorType(DType.F32, (rows, cols)), TensorType(DType.F32, (cols,))
    f32 = DType.F32
    return LoopNest(
        (Axis("i0", rows), Axis("i1", cols)),
        (Buffer(x, BufferRole.INPUT), Buffer(y, BufferRole.INPUT), Buffer(x, BufferRole.OUTPUT)),
        (
            Load(0, (i, j), f32),
            Reduce("amax", 0, ("i1",), f32),
            Compute("sub", (0, 1), f32),
            Compute("exp", (2,), f32),
            Reduce("sum", 3, ("i1",), f32),
            Compute("div", (3, 4), f32),
            Load(1, (j,), f32),
            Compute("mul", (5, 6), f32),
        ),
        (Store(2, (i, j), 7),),
    )


def test_symbolic_extents_are_arguments(compiler: Compiler) -> None:
    nest, bench = symbolic_softmax(), KernelBench(compiler, host_target())
    for template in ("row", "loops"):
        space = bench.templates()[template].space(nest, bench.target)
        for point in space.seeds:
            added = bench.add_point(nest, bench.templates()[template], dict(point))
            assert not isinstance(added, Refusal), added
    rng = np.random.default_rng(0)
    for kernel in bench.build():
        for rows, cols in ((1, 1), (3, 77), (40, 128)):
            x, y = rng.random((rows, cols), np.float32), rng.random(cols, np.float32)
            out = np.zeros_like(x)
            assert kernel.run([x, y, out], 2, dims=(rows, cols)) == 0
            e = np.exp(x - x.max(1, keepdims=True))
            np.testing.assert_allclose(out, e / e.sum(1, keepdims=True) * y, rtol=1e-5)

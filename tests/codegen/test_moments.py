"""Variances in one pass over the data and in two (decision `passes`), against float64."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from kernel_gen.codegen.flat.linear import flatten
from kernel_gen.codegen.flat.moments import has_moments, one_pass
from kernel_gen.codegen.flat.simplify import simplify
from kernel_gen.errors import Refusal
from kernel_gen.fusion.lower import lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import LoopNest, Reduce
from kernel_gen.ir.target import Target
from kernel_gen.runtime.build import Compiler
from kernel_gen.schedule.schedule import Choice
from tests.codegen.kernel_bench import KernelBench, run_kernel
from tests.codegen.kernel_graphs import case_of, single, tensor

Array = np.ndarray
ROUNDING = 6e-5  # of 512 elements, the most between two beginnings, and of float32
EXACT = 4e-6  # where no element is far from the others, however far all are from 0


def variance(shape: Sequence[int], dims: Sequence[int], dtype: DType = DType.F32) -> Graph:
    return single("var", tensor(*shape, dtype=dtype), dims=tuple(dims), keepdim=False, correction=0)


def standardised(shape: tuple[int, ...], dims: tuple[int, ...]) -> Graph:
    """(x - mean) · rsqrt(var + eps), as batch norms in training do."""
    b = GraphBuilder()
    x = b.input(tensor(*shape))
    mean = b.op("mean", x, dims=dims, keepdim=True)
    var = b.op("var", x, dims=dims, keepdim=True, correction=0)
    eps = b.constant(np.float32(1e-5))
    b.output(b.op("mul", b.op("sub", x, mean), b.op("rsqrt", b.op("add", var, eps))))
    b.output(b.op("reshape", mean, shape=tuple(n for d, n in enumerate(shape) if d not in dims)))
    b.output(b.op("reshape", var, shape=tuple(n for d, n in enumerate(shape) if d not in dims)))
    return b.build()


GRAPHS = [
    *(variance(shape, dims) for shape, dims in (
        ((7, 1000), (1,)), ((6, 13), (1,)), ((1000, 37), (0,)), ((70, 8), (0,)),
        ((4, 6, 5, 7), (0, 2, 3)), ((5000,), (0,)), ((3, 2), (1,)), ((2, 19), (0,)),
    )),
    variance((9, 300), (1,), DType.BF16),
    variance((300, 9), (0,), DType.F64),
    standardised((4, 6, 5, 7), (0, 2, 3)),
    standardised((50, 33), (0,)),
    single("layer_norm", tensor(11, 300), axes=1, eps=1e-5, weight=False, bias=False),
    single("group_norm", tensor(3, 8, 5, 5), groups=2, eps=1e-5, weight=False, bias=False),
]  # fmt: skip


@pytest.mark.levels_in_turn
@pytest.mark.parametrize("number", range(len(GRAPHS)))
def test_one_pass_and_two_agree_with_the_reference(
    compiler: Compiler, level: Target, number: int
) -> None:
    """Every template that takes the nest, threads that share rows or the elements of a row."""
    bench, case = KernelBench(compiler, level), case_of(GRAPHS[number], seed=number)
    nest = case.lowered.nest
    for template in bench.taking(nest):
        parameters = template.space(nest, level).parameters
        choices = {p.name: p.choices for p in parameters}
        assert choices["passes"] == (1, 2)
        bench.add(nest, template.name, passes=2)
        for threads, unroll in itertools.product(choices["threads"], set(choices["unroll"]) - {2}):
            bench.add(nest, template.name, passes=1, threads=threads, unroll=unroll)
    for kernel, candidate in zip(bench.build(), bench.candidates, strict=True):
        for threads in (1, 3):
            try:
                case.check(kernel, threads)
            except AssertionError as wrong:
                wrong.add_note(f"{candidate.template} {dict(candidate.point)}, {threads} threads")
                raise


def rows(length: int) -> dict[str, Array]:
    """Rows whose variance is hard to find, of `length` elements."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(length).astype(np.float32)
    step = np.where(np.arange(length) < length // 2, np.float32(0), np.float32(1000))
    first = noise + np.float32(1000)
    first[0] = 0  # as the padding of an image
    lone = noise.copy()
    lone[0] = 1e6
    return {
        "no mean": noise,
        "a mean": noise + np.float32(1e3),
        "large mean": noise + np.float32(1e5),
        "larger mean": noise + np.float32(1e7),
        "a step": noise + step,
        "a border": first,
        "an outlier": lone,
        "rising": np.arange(length, dtype=np.float32) + noise,
        "tiny": noise * np.float32(1e-12),
        "huge": noise * np.float32(1e15),
        "one value": np.full(length, np.float32(12345.678)),
    }


@pytest.mark.parametrize(
    ("length", "way"),
    [(37, "rows"), (5000, "rows"), (200_000, "rows"), (5000, "columns"), (5000, "whole")],
)
def test_hard_rows(compiler: Compiler, level: Target, length: int, way: str) -> None:
    found = rows(length)
    wide = np.stack(list(found.values()))
    data = {"rows": [wide], "columns": [np.ascontiguousarray(wide.T)], "whole": list(wide)}[way]
    graph = variance(data[0].shape, (1 if way == "rows" else 0,))
    bench, nest = KernelBench(compiler, level), case_of(graph).lowered.nest
    for template in bench.taking(nest):
        for passes in (1, 2):
            bench.add(nest, template.name, passes=passes, threads="all")
    expected = wide.astype(np.float64).var(axis=1)
    near = [EXACT if "mean" in name else ROUNDING for name in found]
    squared = (np.abs(wide).max(axis=1) * 3e-6) ** 2
    for kernel, candidate in zip(bench.build(), bench.candidates, strict=True):
        for threads in (1, 2):
            got = np.concatenate([run_kernel(kernel, [x], threads)[0].ravel() for x in data])
            # In two passes the square of what the mean is off by is taken off, and rounded.
            rest = squared if candidate.point["passes"] == 2 else np.zeros(len(found))
            off = np.abs(got - expected) > near * expected + 1e-6 * rest
            wrong = {name: (got[i], expected[i]) for i, name in enumerate(found) if off[i]}
            assert not wrong, (candidate.template, dict(candidate.point), wrong)


def test_infinities_and_nan_pass_on(compiler: Compiler, level: Target) -> None:
    data = np.random.default_rng(1).standard_normal((6, 500)).astype(np.float32)
    data[0, 3], data[1, 499], data[2, 0] = np.inf, -np.inf, np.nan
    data[3, 0], data[3, 499] = np.inf, -np.inf
    data[4] *= np.float32(1e25)  # its squares overflow
    for array, dims in ((data, (1,)), (np.ascontiguousarray(data.T), (0,))):
        bench, nest = (
            KernelBench(compiler, level),
            case_of(variance(array.shape, dims)).lowered.nest,
        )
        for template in bench.taking(nest):
            bench.add(nest, template.name, passes=1)
        for kernel in bench.build():
            (got,) = run_kernel(kernel, [array], 2)
            assert np.isnan(got[:4]).all()
            assert np.isposinf(got[4])
            assert np.isfinite(got[5])


def nest_of(graph: Graph) -> LoopNest:
    lowered = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert not isinstance(lowered, Refusal)
    return lowered.nest


def test_a_variance_alone_needs_no_sum() -> None:
    flat = one_pass(simplify(flatten(nest_of(variance((4, 50), (1,))))))
    assert [s.op for s in flat.statements if isinstance(s, Reduce)] == ["moment"]


@pytest.mark.parametrize("op", ["softmax", "rms_norm"])
def test_nests_without_a_variance_have_no_such_choice(
    compiler: Compiler, level: Target, op: str
) -> None:
    how: dict[str, Choice | bool | float] = (
        {"dim": 1} if op == "softmax" else {"axes": 1, "eps": 1e-5, "weight": False}
    )
    nest = nest_of(single(op, tensor(8, 100), **how))
    assert not has_moments(simplify(flatten(nest)))
    for template in KernelBench(compiler, level).taking(nest):
        assert "passes" not in {p.name for p in template.space(nest, level).parameters}


def test_rows_beyond_the_cache_are_first_guessed_in_one_pass(
    compiler: Compiler, level: Target
) -> None:
    def first(shape: tuple[int, ...], dims: tuple[int, ...], name: str) -> Choice:
        nest = nest_of(variance(shape, dims))
        template = KernelBench(compiler, level).templates()[name]
        return dict(template.space(nest, level).seeds[0])["passes"]

    assert first((4, 1 << 22), (1,), "row") == 1
    assert first((4096, 768), (1,), "row") == 2
    assert first((100_000, 64), (0,), "reduce") == 1


def test_deviations_from_another_mean_stay_two_passes() -> None:
    """The mean of other axes, or a sum divided by another number, is no variance."""
    b = GraphBuilder()
    x = b.input(tensor(8, 40))
    centred = b.op("sub", x, b.op("mean", x, dims=(0,), keepdim=True))
    b.output(b.op("sum", b.op("mul", centred, centred), dims=(1,), keepdim=False))
    other = GraphBuilder()
    y = other.input(tensor(8, 40))
    third = other.constant(np.float32(30.0))
    mean = other.op("div", other.op("sum", y, dims=(1,), keepdim=True), third)
    centred = other.op("sub", y, mean)
    other.output(other.op("sum", other.op("mul", centred, centred), dims=(1,), keepdim=False))
    for graph in (b.build(), other.build()):
        flat = simplify(flatten(nest_of(graph)))
        assert not has_moments(flat)
        assert one_pass(flat) is flat


def test_another_difference_is_no_variance() -> None:
    """Σ d² less something that is cut off at a small number."""
    b = GraphBuilder()
    x = b.input(tensor(8, 40))
    centred = b.op("sub", x, b.op("mean", x, dims=(1,), keepdim=True))
    rest = b.op("sum", centred, dims=(1,), keepdim=False)
    share = b.op("div", rest, b.op("full", shape=(), dtype="f32", value=40.0))
    low = b.op("minimum", b.op("mul", rest, share), b.op("full", shape=(), dtype="f32", value=-2.0))
    squares = b.op("sum", b.op("mul", centred, centred), dims=(1,), keepdim=False)
    b.output(b.op("sub", squares, low))
    flat = one_pass(simplify(flatten(nest_of(b.build()))))
    reduced = sorted(s.op for s in flat.statements if isinstance(s, Reduce))
    assert reduced == ["moment", "sum", "sum"]

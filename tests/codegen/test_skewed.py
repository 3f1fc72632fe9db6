"""Stages that lag a row behind each other compute what one stage after the other does."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernel_gen.codegen.cpu.reductions.rowspace import prepared
from kernel_gen.codegen.cpu.reductions.skewed import skewable
from kernel_gen.errors import Refusal
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import Target
from kernel_gen.runtime.build import Compiler
from tests.codegen.kernel_bench import KernelBench, run_kernel
from tests.codegen.kernel_graphs import case_of, single, tensor


def norm(*shape: int) -> Graph:
    """A residual sum, its norm over the last axis with scale and shift, and the sum itself."""
    b = GraphBuilder()
    x, y = b.input(tensor(*shape)), b.input(tensor(*shape))
    w, s = b.input(tensor(shape[-1])), b.input(tensor(shape[-1]))
    total = b.op("add", x, y)
    b.output(b.op("layer_norm", total, w, s, axes=1, eps=1e-5, weight=True, bias=True))
    b.output(total)
    return b.build()


def shares() -> Graph:
    """A softmax over two axes, and each row's largest share."""
    b = GraphBuilder()
    found = b.op("softmax", b.input(tensor(5, 6, 37)), dim=2)
    b.output(found)
    b.output(b.op("amax", found, dims=(2,), keepdim=False))
    return b.build()


GRAPHS = {"norm": norm(3, 7, 70), "few long rows": norm(2, 1500), "shares": shares()}


@pytest.mark.parametrize("name", GRAPHS)
def test_lagging_stages_equal_the_others_to_the_bit(
    name: str, compiler: Compiler, level: Target
) -> None:
    case, bench = case_of(GRAPHS[name]), KernelBench(compiler, level)
    nest = case.lowered.nest
    template = bench.templates()["row"]
    space = template.space(nest, level)
    choices = {p.name: p.choices for p in space.parameters}
    for keep, passes in zip(choices["keep"], itertools.cycle(choices.get("passes", (2,)))):
        for skew in (0, 1):
            point = {**dict(space.seeds[0]), "keep": keep, "passes": passes, "skew": skew,
                     "ahead": skew, "threads": "all", "unroll": 2}  # fmt: skip
            made = bench.add_point(nest, template, point)
            assert not isinstance(made, Refusal), made
    kernels = bench.build()
    for apart, lagging in zip(kernels[::2], kernels[1::2], strict=True):
        for threads in (1, 4):
            case.check(lagging, threads)
            for one, other in zip(
                run_kernel(apart, case.inputs, 1),
                run_kernel(lagging, case.inputs, threads),
                strict=True,
            ):
                np.testing.assert_array_equal(one, other)


def test_places_that_hang_on_results_do_not_lag() -> None:
    b = GraphBuilder()
    x, table = b.input(tensor(4, 40)), b.input(tensor(40))
    b.output(b.op("take", table, b.op("argmax", x, dims=(1,), keepdim=False), dim=0))
    b.output(b.op("softmax", x, dim=1))
    graphs = (b.build(), single("sum", tensor(4, 40), dims=(1,), keepdim=False))
    for graph in graphs:
        staged = prepared(case_of(graph).lowered.nest)[1].phases[0]
        assert not skewable(staged.nest, staged.phase)


def test_rows_side_by_side_do_not_lag(level: Target, compiler: Compiler) -> None:
    nest = case_of(single("softmax", tensor(8, 33), dim=1)).lowered.nest
    bench = KernelBench(compiler, level)
    for choices in ({"rows": 2}, {"threads": "split"}):
        refused = bench.add(nest, "row", skew=1, **choices)
        assert isinstance(refused, Refusal)
        assert refused.code == "no-skew"

"""Sums that are added to each other are taken as one, and only those."""

from __future__ import annotations

import pytest

from kernel_gen.codegen.flat.linear import flatten
from kernel_gen.codegen.flat.simplify import simplify
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import Reduce
from kernel_gen.ir.target import Target
from kernel_gen.runtime.build import Compiler
from tests.codegen.kernel_bench import KernelBench
from tests.codegen.kernel_graphs import case_of, check_all_templates, tensor


def pieces(dtype: DType = DType.F32) -> Graph:
    """The sums of rows of three pieces side by side."""
    b = GraphBuilder()
    parts = [b.op("neg", b.input(tensor(9, 21, dtype=dtype))) for _ in range(3)]
    b.output(b.op("sum", b.op("concat", *parts, dim=1), dims=(1,), keepdim=False))
    return b.build()


def read_twice() -> Graph:
    b = GraphBuilder()
    one, other = (b.op("sum", b.input(tensor(9, 21)), dims=(1,), keepdim=False) for _ in range(2))
    b.output(b.op("add", one, other))
    b.output(one)
    return b.build()


def rows_and_a_row() -> Graph:
    """One sum for each row, one for all of them."""
    b = GraphBuilder()
    rows, row = b.input(tensor(9, 21)), b.input(tensor(1, 21))
    b.output(b.op("add", *(b.op("sum", x, dims=(1,), keepdim=False) for x in (rows, row))))
    return b.build()


GRAPHS = {
    "pieces": (pieces(), 1),
    "pieces of i32": (pieces(DType.I32), 1),
    "read twice": (read_twice(), 2),
    "rows and a row": (rows_and_a_row(), 2),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_sums_are_joined_where_nothing_else_reads_them(name: str) -> None:
    graph, count = GRAPHS[name]
    flat = simplify(flatten(case_of(graph).lowered.nest))
    assert sum(isinstance(s, Reduce) for s in flat.statements) == count


def test_joined_sums_equal_the_reference(compiler: Compiler, level: Target) -> None:
    check_all_templates(KernelBench(compiler, level), (graph for graph, _ in GRAPHS.values()))

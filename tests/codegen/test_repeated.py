"""Rows that are read again at each step of an outer axis are walked by blocks."""

from __future__ import annotations

from kernel_gen.codegen.cpu.pointwise import Pointwise
from kernel_gen.codegen.flat.linear import flatten
from kernel_gen.codegen.flat.repeated import Repeated, repeated_rows
from kernel_gen.codegen.flat.simplify import simplify
from kernel_gen.errors import Refusal
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import Target
from kernel_gen.runtime.build import Compiler
from tests.codegen.kernel_bench import KernelBench
from tests.codegen.kernel_graphs import case_of, tensor


def table(heads: int, rows: int, width: int, own: int = 1) -> Graph:
    """heads × rows × width by a table of rows × width, or with `own` heads of one of theirs."""
    b = GraphBuilder()
    x, t = b.input(tensor(heads, rows, width)), b.input(tensor(own, rows, width))
    b.output(b.op("relu", b.op("mul", x, t)))
    return b.build()


def found(graph: Graph, cache_bytes: int) -> Repeated | None:
    flat = simplify(flatten(case_of(graph).lowered.nest))
    return repeated_rows(flat, flat.axes[-1].name, cache_bytes)


def test_a_table_larger_than_the_cache_is_read_again() -> None:
    b = GraphBuilder()  # the slice keeps rows and columns of x apart
    x, t = b.input(tensor(3, 8, 40)), b.input(tensor(8, 32))
    b.output(b.op("mul", b.op("slice", x, dim=2, start=0, stop=32, step=1), t))
    flat = simplify(flatten(case_of(b.build()).lowered.nest))
    outer, rows, width = (a.name for a in flat.axes)
    assert repeated_rows(flat, width, 1023) == Repeated(outer, rows)
    assert repeated_rows(flat, width, 1024) is None


def test_a_row_larger_than_the_cache_is_read_again_by_each() -> None:
    assert found(table(3, 8, 32), 1023) == Repeated("i0", None)  # rows and columns are one axis
    assert found(table(3, 8, 32), 1024) is None


def test_what_no_outer_axis_shares_is_not_read_again() -> None:
    assert found(table(3, 8, 32, own=3), 0) is None


def test_blocks_of_rows_read_again_equal_the_reference(compiler: Compiler, level: Target) -> None:
    bench, cases = KernelBench(compiler, level), []
    merged = case_of(table(9, 260, 72))
    b = GraphBuilder()  # halves turned against each other, as of rotary positions
    x, t = b.input(tensor(9, 260, 72)), b.input(tensor(260, 72))
    halves = [b.op("slice", x, dim=2, start=s, stop=s + 36, step=1) for s in (36, 0)]
    turned = b.op("concat", b.op("neg", halves[0]), halves[1], dim=2)
    b.output(b.op("add", b.op("mul", x, t), b.op("mul", turned, t)))
    case = case_of(b.build())
    for made, again, block in ((case, 4, 256), (case, 16, 64), (case, 8, 4096), (merged, 4, 512)):
        point = {"again": again, "block": block, "threads": "all"}
        assert not isinstance(bench.add(made.lowered.nest, "pointwise", **point), Refusal)
        cases.append(made)
    for kernel, case in zip(bench.build(), cases, strict=True):
        for threads in (1, 3):
            case.check(kernel, threads)


def test_nothing_read_again_is_refused(level: Target) -> None:
    template, nest = Pointwise(), case_of(table(3, 8, 32, own=3)).lowered.nest
    point = {**dict(template.space(nest, level).seeds[0]), "again": 4}
    refused = template.schedule(nest, level, point)
    assert isinstance(refused, Refusal)
    assert refused.code == "no-rows-again"

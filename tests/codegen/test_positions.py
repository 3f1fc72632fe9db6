"""Positions that come as values: right within their dimension whatever is read through them, and
an error, not a stray read, outside of it."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import Target
from kernel_gen.ir.types import TensorType, ValueDomain
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.kernel import LoadedKernel
from tests.codegen.kernel_bench import KernelBench, poisoned
from tests.codegen.kernel_graphs import GraphCase, case_of

ROWS, COLUMNS = 8, 3
TABLE = TensorType(DType.F32, (ROWS, COLUMNS))

Through = Callable[[GraphBuilder, int], int]
VIEWS: dict[str, tuple[Through, int]] = {
    "itself": (lambda b, t: t, ROWS),
    "padded": (lambda b, t: b.op("pad", t, low=(0, 0), high=(2, 0), value=3.0), ROWS + 2),
    "padded-before": (lambda b, t: b.op("pad", t, low=(2, 0), high=(0, 0), value=3.0), ROWS + 2),
    "sliced": (lambda b, t: b.op("slice", t, dim=0, start=2, stop=6, step=1), 4),
    "strided": (lambda b, t: b.op("slice", t, dim=0, start=1, stop=8, step=3), 3),
    "flipped": (lambda b, t: b.op("flip", t, dims=(0,)), ROWS),
    "joined": (lambda b, t: b.op("concat", t, t, dim=0), 2 * ROWS),
}


LAYOUTS = {"plain": TABLE, "repeated": TensorType(DType.F32, (ROWS, COLUMNS), (0, 1))}


def program(view: str, table_type: TensorType = TABLE) -> tuple[Graph, int]:
    """Rows of a view of a table, and the view's number of rows."""
    through, extent = VIEWS[view]
    b = GraphBuilder()
    table = b.input(table_type)
    positions = b.input(TensorType(DType.I64, (5,)), domain=ValueDomain(0, extent - 1))
    b.output(b.op("relu", b.op("take", through(b, table), positions, dim=0)))
    return b.build(), extent


def kernels(
    graph: Graph, inputs: list[np.ndarray], compiler: Compiler, target: Target
) -> tuple[GraphCase, list[LoadedKernel]]:
    """The program's kernels through every template that takes it, at random points."""
    case, bench = case_of(graph, inputs), KernelBench(compiler, target)
    for template in bench.taking(case.lowered.nest):
        for seed in range(3):
            bench.add_random(case.lowered.nest, random.Random(seed), template)
    assert bench.candidates
    return case, bench.build()


@pytest.mark.levels_in_turn
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("view", VIEWS)
def test_positions_are_checked_against_what_they_index(
    view: str, layout: str, compiler: Compiler, level: Target
) -> None:
    """Also where all rows are the same memory, and a position moves nothing."""
    graph, extent = program(view, LAYOUTS[layout])
    table = np.random.default_rng(0).standard_normal(TABLE.shape, np.float32)
    if layout == "repeated":
        table = np.broadcast_to(table[:1], TABLE.shape)
    inside = np.array([0, extent - 1, 1, 0, extent // 2])
    case, built = kernels(graph, [table, inside], compiler, level)
    for kernel in built:
        case.check(kernel)
        for outside in (-1, extent, extent + 1, -(1 << 40), 1 << 40):
            wrong = inside.copy()
            wrong[3] = outside
            given = {graph.inputs[0].value: table, graph.inputs[1].value: wrong}
            operands = [
                given[value] if value in given else poisoned(kernel.nest, number)
                for number, value in enumerate(case.lowered.operands)
            ]
            assert kernel.run(operands, 1) != 0, outside


def test_each_phase_reads_at_its_own_positions(compiler: Compiler, level: Target) -> None:
    """Phases of one kernel share a scope: what one put within its dimension is not the other's."""
    b = GraphBuilder()
    index = ValueDomain(0, ROWS - 1)
    first = b.input(TensorType(DType.I64, ()), domain=index)
    second = b.input(TensorType(DType.I32, (2, 5)), domain=index)
    steps = b.op("iota", dim=0, dtype=DType.F64, shape=(ROWS,), start=1, step=-2)
    smallest = b.op("amin", b.op("take", steps, second, dim=0), dims=(0, 1), keepdim=False)
    shares = b.op("softmax", steps, dim=0)
    for result in (smallest, shares, b.op("take", shares, first, dim=0)):
        b.output(result)
    picks = np.array([[0, 3, 7, 1, 2], [4, 6, 2, 5, 1]], np.int32)
    case, built = kernels(b.build(), [np.asarray(1, np.int64), picks], compiler, level)
    for kernel in built:
        case.check(kernel)

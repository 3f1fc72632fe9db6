"""Rows side by side read what their windows share once, and compute what single rows do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernel_gen.codegen.flat.beside import inside, side_by_side, window_axis
from kernel_gen.codegen.flat.linear import flatten
from kernel_gen.codegen.flat.simplify import simplify
from kernel_gen.errors import Refusal
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import Target
from kernel_gen.runtime.build import Compiler
from tests.codegen.kernel_bench import KernelBench
from tests.codegen.kernel_graphs import case_of, tensor


def window(dtype: DType, rows: int = 13, low: int = 1, fill: float = 0.0) -> Graph:
    """The sum of three rows and three columns around each element of a padded image."""
    b = GraphBuilder()
    x = b.input(tensor(3, rows, 21, dtype=dtype))
    x = b.op(
        "pad",
        x,
        low=(0, low, 1),
        high=(0, 2 - low, 1),
        value=int(fill) if dtype is DType.I32 else fill,
    )
    taps = [
        b.op("slice", b.op("slice", x, dim=1, start=i, stop=i + rows, step=1),
             dim=2, start=j, stop=j + 21, step=1)
        for i in range(3) for j in range(3)
    ]  # fmt: skip
    total = taps[0]
    for tap in taps[1:]:
        total = b.op("maximum" if fill else "add", total, tap)
    b.output(total)
    return b.build()


def table() -> Graph:
    """A table that all rows read: nothing that moves along with them."""
    b = GraphBuilder()
    b.output(b.op("add", b.input(tensor(5, 33)), b.input(tensor(1, 33))))
    return b.build()


def test_neighbouring_rows_load_once_what_both_read() -> None:
    flat = simplify(flatten(case_of(window(DType.F32)).lowered.nest))
    row, column = (a.name for a in flat.axes[-2:])
    assert window_axis(flat, column) == row
    plain, first, end = inside(flat, row, 4)
    assert (first, end) == (1, 9)  # steps of which all rows have a row above and one below
    assert len(set(side_by_side(plain, row, 4).loads())) == (4 + 2) * 3


def test_tables_are_no_windows() -> None:
    flat = simplify(flatten(case_of(table()).lowered.nest))
    assert window_axis(flat, flat.axes[-1].name) is None


def test_zeros_of_both_signs_are_two_values() -> None:
    flat = simplify(flatten(case_of(window(DType.F32)).lowered.nest))
    row = flat.axes[-2].name
    loads = [inside(flat, row, 1)[0].loads()[k] for k in (0, 3)]  # of a row and of the next
    signed = replace(
        flat,
        statements=tuple(replace(s, fill=f) for s, f in zip(loads, (0.0, -0.0), strict=True)),
        stores=(),
    )
    assert len(side_by_side(signed, row, 2).statements) == 4


GRAPHS = {
    "sums": window(DType.F32),
    "bf16": window(DType.BF16),
    "f64, few rows": window(DType.F64, rows=5),
    "maxima": window(DType.F32, low=2, fill=-1.5),
    "no pad above": window(DType.I32, rows=16, low=0),
}


def test_rows_side_by_side_equal_the_reference(compiler: Compiler, level: Target) -> None:
    bench, cases = KernelBench(compiler, level), []
    for number, graph in enumerate(GRAPHS.values()):
        case = case_of(graph)
        for rows in (2, 4, 8)[number % 2 :: 2]:
            point = {"rows": rows, "block": 64, "threads": "all"}
            assert not isinstance(bench.add(case.lowered.nest, "pointwise", **point), Refusal)
            cases.append(case)
    for kernel, case in zip(bench.build(), cases, strict=True):
        for threads in (1, 3):
            case.check(kernel, threads)


def test_rows_that_share_nothing_are_refused(compiler: Compiler, level: Target) -> None:
    refused = KernelBench(compiler, level).add(case_of(table()).lowered.nest, "pointwise", rows=2)
    assert isinstance(refused, Refusal)
    assert refused.code == "no-window"


@pytest.mark.parametrize("divisor", [6.0, 49.0])
def test_a_division_by_a_constant_is_a_product_unless_a_step_jumps(
    divisor: float, compiler: Compiler, level: Target
) -> None:
    x = np.arange(-4, 65, dtype=np.float32)[None] * np.float32(divisor)
    bench = KernelBench(compiler, level)
    cases = [case_of(divided(divisor, floor=floor), [x]) for floor in (False, True)]
    for case, divides in zip(cases, (False, True), strict=True):
        candidate = bench.add(case.lowered.nest, "pointwise")
        assert not isinstance(candidate, Refusal)
        assert (f"({divisor}f)" in candidate.source.files[0][1]) == divides
    for kernel, case in zip(bench.build(), cases, strict=True):
        case.check(kernel)


def divided(divisor: float, *, floor: bool) -> Graph:
    b = GraphBuilder()
    x = b.input(tensor(1, 69))
    y = b.op("div", x, b.op("full", shape=(), dtype="f32", value=divisor))
    b.output(b.op("floor", y) if floor else y)
    return b.build()

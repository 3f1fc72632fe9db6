"""Reductions across rows: column sums beside row sums, norms' gradients, long and empty columns."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gen.codegen.cpu.reductions.crossing import crossable
from kernel_gen.codegen.cpu.reductions.rowspace import prepared
from kernel_gen.errors import Refusal
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import Target
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from kernel_gen.schedule.schedule import Choice
from tests.codegen.kernel_bench import KernelBench, run_kernel
from tests.codegen.kernel_graphs import GraphCase, case_of, single, tensor


def rows_and_columns(rows: int, cols: int) -> Graph:
    """Sums and largest values of rows, sums and products of columns, of one input."""
    b = GraphBuilder()
    x = b.input(tensor(rows, cols))
    for op, dim in (("sum", 1), ("amax", 1), ("sum", 0), ("prod", 0)):
        b.output(b.op(op, x, dims=(dim,), keepdim=False))
    return b.build()


def norm_gradient(rows: int, cols: int) -> Graph:
    """Of an RMS norm: the input's gradient, and the scale's, a sum over rows."""
    b = GraphBuilder()
    x, g, weight = b.input(tensor(rows, cols)), b.input(tensor(rows, cols)), b.input(tensor(cols))
    square = b.op("mean", b.op("mul", x, x), dims=(1,), keepdim=True)
    scale = b.op("rsqrt", b.op("add", square, b.constant(np.asarray(1e-5, np.float32))))
    normed, scaled = b.op("mul", x, scale), b.op("mul", g, weight)
    mean = b.op("mean", b.op("mul", scaled, normed), dims=(1,), keepdim=True)
    b.output(b.op("mul", scale, b.op("sub", scaled, b.op("mul", normed, mean))))
    b.output(b.op("sum", b.op("mul", g, normed), dims=(0,), keepdim=False))
    return b.build()


def column(op: str, *shape: int, dtype: DType = DType.F32) -> Graph:
    return single(op, tensor(*shape, dtype=dtype), dims=(0,), keepdim=False)


GRAPHS = {
    "rows and columns": rows_and_columns(37, 53),
    "more rows than blocks": rows_and_columns(700, 9),
    "norm": norm_gradient(19, 83),
    "columns": column("sum", 70, 133),
    "columns of two axes": single("sum", tensor(5, 7, 6, 40), dims=(0, 1), keepdim=False),
    "narrow floats": column("sum", 70, 40, dtype=DType.BF16),
    "integers": column("amin", 33, 21, dtype=DType.I32),
    "no rows": column("sum", 0, 21),
}


@pytest.mark.parametrize("axis", ["contiguous", "scalar"])
def test_equals_the_reference(compiler: Compiler, level: Target, axis: str) -> None:
    bench, cases = KernelBench(compiler, level), list[GraphCase]()
    for graph in GRAPHS.values():
        case = case_of(graph)
        for rows, keep in ((1, "none"), (4, "all"))[axis == "scalar" :]:
            choices: dict[str, Choice] = {"axis": axis, "rows": rows, "cross": 1, "threads": "all"}
            template = bench.templates()["loops"]
            policies = next(
                p.choices for p in template.space(case.lowered.nest, level).parameters
                if p.name == "keep"
            )  # fmt: skip
            choices["keep"] = keep if keep in policies else policies[-1]
            added = bench.add(case.lowered.nest, "loops", **choices)
            assert not isinstance(added, Refusal), added
            cases.append(case)
    for kernel, case in zip(bench.build(), cases, strict=True):
        for threads in (1, 2, 3):
            case.check(kernel, threads)


def test_long_columns_are_accurate(compiler: Compiler) -> None:
    x = np.random.default_rng(0).random((2**18, 16), np.float32)
    case = case_of(column("sum", 2**18, 16), [x])
    bench = KernelBench(compiler, host_target())
    assert not isinstance(bench.add(case.lowered.nest, "loops", cross=1), Refusal)
    (got,) = run_kernel(bench.build()[0], [x], 2)
    np.testing.assert_allclose(got, x.sum(0, dtype=np.float64), rtol=1e-6)


def test_one_walk_serves_rows_and_columns() -> None:
    nest = case_of(rows_and_columns(37, 53)).lowered.nest
    phases = [staged.phase for staged in prepared(nest, cross=True)[1].phases]
    (stage,) = phases[0].stages
    assert (len(stage.reduces), len(stage.crosses)) == (2, 2)
    assert not any(phase.inner for phase in phases[1:])


def test_operands_of_single_rows_do_not_make_columns_of_rows() -> None:
    """Losses read labels and weights and store results, one for each row, beside long rows."""
    b = GraphBuilder()
    x, *beside = b.input(tensor(64, 500)), *(b.input(tensor(64)) for _ in range(3))
    total = b.op("sum", x, dims=(1,), keepdim=False)
    for other in beside:
        total = b.op("mul", total, other)
    b.output(total)
    assert not crossable(prepared(case_of(b.build()).lowered.nest)[0])

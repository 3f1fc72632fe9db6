"""Comparisons of positions in 32 bits, casts through integers, bytes: equal to the plain forms."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gen.errors import Refusal
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.ops import OPS, OpKind
from kernel_gen.ir.target import Target
from kernel_gen.runtime.build import Compiler
from tests.codegen.kernel_bench import KernelBench
from tests.codegen.kernel_graphs import GraphCase, case_of, tensor

RELATIONS = sorted(op for op, spec in OPS.items() if spec.kind is OpKind.COMPARE)


def compared(op: str, dtype: DType, *, flipped: bool) -> Graph:
    """cast(cast(targets[i] op j -> i64) -> dtype), j < 21."""
    b = GraphBuilder()
    rows = b.input(tensor(9, 1, dtype=DType.I64))
    places = b.op("iota", shape=(21,), dtype=DType.I64, dim=0, start=-2, step=3)
    pair = (places, rows) if flipped else (rows, places)
    b.output(b.op("cast", b.op("cast", b.op(op, *pair), dtype=DType.I64), dtype=dtype))
    return b.build()


def checked(compiler: Compiler, level: Target, cases: list[GraphCase]) -> None:
    bench = KernelBench(compiler, level)
    for case in cases:
        assert not isinstance(bench.add(case.lowered.nest, "pointwise"), Refusal)
    for kernel, case in zip(bench.build(), cases, strict=True):
        case.check(kernel)


def test_positions_against_numbers_of_any_size(compiler: Compiler, level: Target) -> None:
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    numbers = [low, -(2**32) - 2, -(2**31), -3, -2, 4, 58, 2**32 + 4, high]
    given = np.array(numbers, np.int64).reshape(9, 1)
    graphs = [
        compared(op, dtype, flipped=flipped)
        for op in RELATIONS
        for flipped in (False, True)
        for dtype in (DType.F32, DType.I8)
    ]
    checked(compiler, level, [case_of(graph, [given]) for graph in graphs])


BYTES = (DType.I8, DType.U8, DType.BOOL)


@pytest.mark.parametrize("middle", [DType.F32, DType.I16, DType.I32, DType.I64, DType.BF16])
def test_bytes_to_and_from(compiler: Compiler, level: Target, middle: DType) -> None:
    cases = []
    for source in BYTES:
        for target in BYTES:
            b = GraphBuilder()
            x = b.input(tensor(3, 37, dtype=source))
            wide = b.op("cast", x, dtype=middle)
            chosen = b.op("where", b.op("cast", x, dtype=DType.BOOL), wide, b.op("neg", wide))
            b.output(b.op("cast", chosen, dtype=DType.I8 if middle.is_float else target))
            given = np.arange(111).reshape(3, 37).astype(numpy_dtype(source))
            cases.append(case_of(b.build(), [given]))
    checked(compiler, level, cases)

"""Vectors of which some lanes lie outside of what is read, or that skip elements: the right values,
and no element touched that is not read."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import pytest

from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import Target
from kernel_gen.runtime.build import Compiler
from tests.codegen.kernel_bench import KernelBench
from tests.codegen.kernel_graphs import case_of, tensor

FILLS = {DType.BOOL: True, DType.F32: -2.5, DType.F64: 0.25, DType.F16: 1.5, DType.BF16: 3.0}
ACCESSES = {
    "pad-both": (37, {"low": (0, 3), "high": (0, 5)}),
    "pad-more-than-a-vector": (3, {"low": (0, 70), "high": (1, 41)}),
    "pad-one": (1, {"low": (0, 1), "high": (0, 1)}),
    "every-second": (77, {"start": 1, "step": 2}),
    "every-second-to-the-end": (64, {"start": 1, "step": 2}),
    "few": (9, {"start": 2, "step": 2}),
}


def program(access: str, dtype: DType) -> Graph:
    columns, attributes = ACCESSES[access]
    b = GraphBuilder()
    x = b.input(tensor(5, columns, dtype=dtype))
    if "step" in attributes:
        read = b.op("slice", x, dim=1, stop=columns, **attributes)
    else:
        read = b.op("pad", x, value=FILLS.get(dtype, 7), **attributes)
    b.output(b.op("logical_not", read) if dtype is DType.BOOL else b.op("neg", read))
    return b.build()


def at_the_edge(array: np.ndarray) -> np.ndarray:
    """A copy that ends where memory may no longer be read."""
    pages = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    block = mmap.mmap(-1, pages + mmap.PAGESIZE)
    behind = ctypes.addressof(ctypes.c_char.from_buffer(block)) + pages
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(behind), mmap.PAGESIZE, 0) == 0
    made = np.frombuffer(block, array.dtype, array.size, pages - array.nbytes)
    made = made.reshape(array.shape)
    made[...] = array
    return made


@pytest.mark.parametrize("access", ACCESSES)
def test_reads_are_right_and_stay_inside(access: str, compiler: Compiler, level: Target) -> None:
    bench, cases = KernelBench(compiler, level), []
    for dtype in DType:
        case = case_of(program(access, dtype))
        case = case_of(case.graph, [at_the_edge(array) for array in case.inputs])
        bench.add(case.lowered.nest, "pointwise")
        cases.append(case)
    assert len(bench.candidates) == len(cases)
    for case, kernel in zip(cases, bench.build(), strict=True):
        case.check(kernel)

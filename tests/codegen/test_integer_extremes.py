"""Integers at the ends of their range: ops on results that wrapped, in one kernel with the operand.

Compilers fold what they see together, and some folds hold only where nothing wraps: (-x) / 7 is not
-(x / 7) at the least integer. Each op here reads what each op that may wrap has made.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from kernel_gen.errors import Refusal
from kernel_gen.ir.arrays import Array, numpy_dtype
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.ops import OPS, OpKind
from kernel_gen.ir.target import Target
from kernel_gen.runtime.build import Compiler
from tests.codegen.kernel_bench import KernelBench
from tests.codegen.kernel_graphs import case_of, tensor

pytestmark = pytest.mark.slow
INTEGERS = (DType.I64, DType.I32, DType.I16, DType.I8, DType.U8)
_FLOATS_ONLY = frozenset(("pow", "div", "atan2", "copysign"))
_UNARY = ("abs", "neg", "bitwise_not", "relu", "sign")
_BINARY = tuple(
    name
    for name, spec in OPS.items()
    if spec.kind is OpKind.BINARY and name not in _FLOATS_ONLY and not name.startswith("logical")
)
_COMPARE = tuple(name for name, spec in OPS.items() if spec.kind is OpKind.COMPARE)
_DIVISIONS = ("floor_div", "remainder", "fmod")
_KERNELS: tuple[tuple[str, dict[str, str]], ...] = (
    ("loops", {"axis": "scalar"}),
    ("pointwise", {}),
)


class _Extremes:
    """A graph under construction over x, y and a y without zeros."""

    def __init__(self, dtype: DType) -> None:
        self.builder, self.dtype = GraphBuilder(), dtype
        kind = tensor(256, dtype=dtype)
        self.x, self.y, self.divisor = (self.builder.input(kind) for _ in range(3))

    def number(self, value: int) -> int:
        return self.builder.constant(np.asarray(value).astype(numpy_dtype(self.dtype)))

    def wrapped(self) -> list[int]:
        """x, and what may not fit the type."""
        op, x, minus = self.builder.op, self.x, self.number(-1)
        made = [op("neg", x), op("abs", x), op("mul", x, minus), op("sub", x, self.y)]
        return [x, *made, op("shift_left", x, self.number(1))]

    def read_by(self, op: str) -> None:
        """The op on each of them: with a number, and with what a compiler cannot know."""
        seconds = [self.number(0), self.x] if op in _COMPARE else [self.number(7), self.y]
        if op in _DIVISIONS:
            seconds = [self.number(7), self.number(-1), self.divisor]
        for value in self.wrapped():
            if op in _UNARY:
                self.builder.output(self.builder.op(op, value))
            else:
                for second in seconds:
                    self.builder.output(self.builder.op(op, value, second))


def _graph(dtype: DType, ops: Sequence[str]) -> Graph:
    made = _Extremes(dtype)
    for op in ops:
        made.read_by(op)
    return made.builder.build()


def _inputs(dtype: DType) -> list[Array]:
    """All pairs of sixteen numbers: the ends of the range, their halves, powers of two, small."""
    kind = np.dtype(numpy_dtype(dtype))
    low, high = int(np.iinfo(kind).min), int(np.iinfo(kind).max)
    ends = [low, low + 1, low // 2, high // 2, high // 2 + 1, high - 1, high]
    small = [-8, -7, -1, 0, 1, 2, 6, 7, 8] if low else [0, 1, 2, 3, 6, 7, 8, 9, 100]
    numbers = np.array([*ends, *small], kind)
    x, y = np.repeat(numbers, numbers.size), np.tile(numbers, numbers.size)
    return [x, y, np.where(y == 0, kind.type(3), y)]


_GROUPS = {
    "unary": _UNARY,
    "quotients": _DIVISIONS,
    "binary": tuple(op for op in _BINARY if op not in _DIVISIONS),
    "compare": _COMPARE,
}


@pytest.mark.levels_in_turn
@pytest.mark.parametrize("dtype", INTEGERS)
def test_ops_on_wrapped_results(compiler: Compiler, level: Target, dtype: DType) -> None:
    inputs, bench = _inputs(dtype), KernelBench(compiler, level)
    cases = {name: case_of(_graph(dtype, ops), inputs) for name, ops in _GROUPS.items()}
    for case in cases.values():
        for template, choices in _KERNELS:
            added = bench.add(case.lowered.nest, template, **choices)
            assert not isinstance(added, Refusal), added
    kernels = iter(bench.build())
    for name, case in cases.items():
        for template, choices in _KERNELS:
            try:
                case.check(next(kernels))
            except AssertionError as wrong:
                wrong.add_note(f"{name}: {template} {choices}")
                raise


def test_each_op_on_integers_is_tried() -> None:
    tried = {op for ops in _GROUPS.values() for op in ops}
    assert tried >= {*_BINARY, *_COMPARE}

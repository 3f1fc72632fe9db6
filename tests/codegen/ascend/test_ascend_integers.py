"""Integers on the NPU, which computes 32 bits: at the ends of their ranges, and beyond 32 bits.

64-bit values are exact wherever a kernel is made: moved whole, compared and narrowed by their
words, computed where the nest tells that they are small. The rest is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernel_gen.errors import Refusal
from kernel_gen.ir.arrays import Array, numpy_dtype
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from tests.codegen.ascend import ascend_graphs as g
from tests.codegen.ascend.ascend_run import AscendKernel, check_graph, lowered, schedule_of

I64, I32 = DType.I64, DType.I32
_ENDS = (2**31, 2**31 - 1, -(2**31), -(2**31) - 1, 2**32, 2**32 - 1, 2**62, -(2**63), 2**63 - 1, 0)
_BINARY = ("add", "sub", "mul", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor")
_UNARY = ("neg", "abs", "relu", "sign", "bitwise_not")
_COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")
_SHAPE = (9, 50)


def _wide(*shape: int, seed: int = 0) -> Array:
    """Numbers that differ in their low words, their high words or both, and the ends of both."""
    rng = np.random.default_rng(seed)
    high = np.where(rng.random(shape) < 0.5, rng.integers(-3, 3, shape) << 32, 0)
    made = rng.integers(-4, 4, shape) + high
    places = rng.permutation(made.size)[: len(_ENDS)]
    made.reshape(-1)[places] = _ENDS[: len(places)]
    return made


def _on_one(op: Callable[[GraphBuilder, int], int], *shape: int) -> Graph:
    return g.graph(lambda b: op(b, b.input(g.tensor(*shape, dtype=I64))))


def _right(graph: Graph, inputs: list[Array], workdir: Path, **choices: int | str) -> None:
    kernel = check_graph(graph, inputs, workdir, **choices)
    assert not isinstance(kernel, Refusal), kernel.sentence


def _comparisons(b: GraphBuilder, x: int, y: int) -> None:
    for op in _COMPARE:
        b.output(b.op(op, x, y))


@pytest.mark.parametrize("walk", [{}, {"lanes": 512, "buffers": 1}])
def test_comparisons_of_64_bits(walk: dict[str, int], tmp_path: Path) -> None:
    b = GraphBuilder()
    kind = g.tensor(*_SHAPE, dtype=I64)
    _comparisons(b, b.input(kind), b.input(kind))
    _right(b.build(), [_wide(*_SHAPE), _wide(*_SHAPE, seed=1)], tmp_path, **walk)


def test_comparisons_of_64_bits_with_rows_and_columns(tmp_path: Path) -> None:
    b = GraphBuilder()
    rows, columns = (b.input(g.tensor(*s, dtype=I64)) for s in ((9, 1), (50,)))
    _comparisons(b, rows, columns)
    _right(b.build(), [_wide(9, 1), _wide(50, seed=1)], tmp_path)


@pytest.mark.parametrize("number", [0, -7, 2**31 - 1, -(2**31), 2**40, -(2**63)])
def test_comparisons_of_64_bits_with_a_number(number: int, tmp_path: Path) -> None:
    b = GraphBuilder()
    x = b.input(g.tensor(*_SHAPE, dtype=I64))
    _comparisons(b, x, b.constant(np.asarray(number)))
    values = _wide(*_SHAPE)
    values[0, :5] = np.clip(np.arange(-2, 3) + float(number), -(2**63), 2**63 - 1025)
    values[1, :3] = number
    _right(b.build(), [values], tmp_path)


def test_comparisons_of_64_bits_with_positions(tmp_path: Path) -> None:
    """Where a row's largest element lies is a small number, the other side any."""

    def build(b: GraphBuilder) -> int:
        x, target = b.input(g.tensor(9, 50)), b.input(g.tensor(9, dtype=I64))
        return b.op("eq", b.op("argmax", x, dims=(1,), keepdim=False), target)

    x = np.random.default_rng(0).standard_normal((9, 50)).astype(np.float32)
    target = x.argmax(1)
    target[::3] += 2**32
    _right(g.graph(build), [x, target], tmp_path)


@pytest.mark.parametrize("dtype", [I32, DType.I16, DType.I8, DType.U8, DType.F32, DType.BOOL])
def test_conversions_of_64_bits_wrap(dtype: DType, tmp_path: Path) -> None:
    graph = _on_one(lambda b, x: b.op("cast", x, dtype=dtype), *_SHAPE)
    _right(graph, [_wide(*_SHAPE)], tmp_path)


MOVES: dict[str, Callable[[GraphBuilder, int], int]] = {
    "flip": lambda b, x: b.op("flip", x, dims=(1,)),
    "every_seventh": lambda b, x: b.op("slice", x, dim=1, start=1, stop=50, step=7),
    "transposed": lambda b, x: b.op("permute", x, dims=(1, 0)),
    "padded": lambda b, x: b.op("pad", x, low=(0, 2), high=(1, 1), value=2**40 + 1),
}


@pytest.mark.parametrize("name", MOVES)
def test_64_bits_are_moved_whole(name: str, tmp_path: Path) -> None:
    _right(_on_one(MOVES[name], *_SHAPE), [_wide(*_SHAPE)], tmp_path)


def test_what_is_known_to_be_small_is_computed(tmp_path: Path) -> None:
    """Positions, counts and sums of narrow integers are 64-bit integers for the program."""
    b = GraphBuilder()
    x, bytes_ = b.input(g.tensor(*_SHAPE)), b.input(g.tensor(*_SHAPE, dtype=DType.I8))
    positive = b.op("gt", x, b.constant(np.asarray(0, np.float32)))
    for value in (positive, bytes_):
        wide = b.op("cast", value, dtype=I64)
        total = b.op("sum", wide, dims=(1,), keepdim=False)
        b.output(b.op("add", b.op("neg", total), b.constant(np.asarray(2**30))))
    rng = np.random.default_rng(1)
    inputs = [
        rng.standard_normal(_SHAPE).astype(np.float32),
        rng.integers(-128, 127, _SHAPE, np.int8, endpoint=True),
    ]
    _right(b.build(), inputs, tmp_path)


def _positions(step: int) -> Graph:
    """x where the positions times `step` exceed 2³¹, else -x."""

    def build(b: GraphBuilder) -> int:
        x = b.input(g.tensor(*_SHAPE))
        at = b.op("iota", shape=_SHAPE[1:], dim=0, start=0, step=step, dtype=I64)
        beyond = b.op("gt", at, b.constant(np.asarray(2**31)))
        return b.op("where", beyond, x, b.op("neg", x))

    return g.graph(build)


def _sum_of_integers() -> Graph:
    def build(b: GraphBuilder) -> int:
        wide = b.op("cast", b.input(g.tensor(*_SHAPE, dtype=I32)), dtype=I64)
        return b.op("sum", wide, dims=(1,), keepdim=False)

    return g.graph(build)


@pytest.mark.parametrize(
    "graph",
    [
        _on_one(lambda b, x: b.op("add", x, x), 8),
        _on_one(lambda b, x: b.op("amax", x, dims=(0,), keepdim=False), 8),
        _on_one(lambda b, x: b.op("where", b.op("lt", x, x), x, x), 8),
        _sum_of_integers(),
        _positions(2**28),
    ],
)
def test_what_may_be_beyond_32_bits_is_refused(graph: Graph) -> None:
    made = lowered(graph)
    assert not isinstance(made, Refusal)
    refused = schedule_of(made.nest)
    assert isinstance(refused, Refusal)
    assert refused.code == "op-not-on-device"


@pytest.mark.parametrize("dtype", [I32, DType.I16, DType.I8, DType.U8])
def test_integers_wrap_at_the_ends_of_their_range(dtype: DType, tmp_path: Path) -> None:
    kind = numpy_dtype(dtype)
    limits = np.iinfo(kind.name)
    half = int(limits.max) // 2
    some = [limits.min, limits.min + 1, limits.max, limits.max - 1, half, half + 1, 0, 1, 2, 7]
    x, y = (a.reshape(-1).astype(kind) for a in np.meshgrid(some, some))
    for number, ops in enumerate((_BINARY, _UNARY, _COMPARE)):
        b = GraphBuilder()
        first, second = (b.input(g.tensor(x.size, dtype=dtype)) for _ in range(2))
        for op in ops:
            b.output(b.op(op, first) if op in _UNARY else b.op(op, first, second))
        workdir = tmp_path / str(number)
        workdir.mkdir()
        _right(b.build(), [x, y], workdir)


@pytest.mark.parametrize("dtype", [DType.I8, DType.U8])
def test_bytes_with_numbers_rows_and_other_types(dtype: DType, tmp_path: Path) -> None:
    """They are held in 16 bits: all that crosses to 32 bits and floats, and what is folded."""
    kind = numpy_dtype(dtype)
    limits = np.iinfo(kind.name)
    b = GraphBuilder()
    x, rows, other = (b.input(g.tensor(*s, dtype=t)) for s, t in (
        ((9, 256), dtype), ((9, 1), dtype), ((256,), I32)))  # fmt: skip
    low, high = (b.constant(np.asarray(n, kind)) for n in (limits.min, limits.max))
    b.output(b.op("mul", b.op("add", x, high), rows))
    b.output(b.op("mul", high, b.op("sub", low, x)))
    b.output(b.op("where", b.op("lt", x, high), b.op("mul", x, x), low))
    for to in (I32, DType.I16, DType.F16, DType.BOOL, DType.I8, DType.U8):
        b.output(b.op("cast", x, dtype=to))
    b.output(b.op("add", b.op("cast", other, dtype=dtype), x))
    for op in ("amax", "amin", "argmax"):
        b.output(b.op(op, b.op("add", x, rows), dims=(1,), keepdim=False))
    rng = np.random.default_rng(4)
    every = np.tile(np.arange(limits.min, limits.max + 1), (9, 1)).astype(kind)
    numbers = rng.integers(limits.min, limits.max, (9, 1), kind, endpoint=True)
    wide = rng.integers(-(2**31), 2**31 - 1, 256).astype(np.int32)
    _right(b.build(), [every, numbers, wide], tmp_path)


@pytest.mark.parametrize("op", ["floor_div", "remainder", "fmod"])
def test_quotients_of_32_bits_are_exact(op: str, tmp_path: Path) -> None:
    limits = np.iinfo(np.int32)
    rng = np.random.default_rng(3)
    sizes = 2 ** rng.integers(0, 31, (2, 40_000))
    a, b = (rng.integers(-s, s, endpoint=True) for s in sizes)
    near = rng.integers(-40_000, 40_000, 20_000) * (d := rng.integers(2, 50_000, 20_000))
    ends = [limits.min, limits.min + 1, limits.max, limits.max - 1, -1, 1, 2, -2, 2**30, -(2**30)]
    pairs = [(x, y) for x in (*ends, 0) for y in ends if (x, y) != (limits.min, -1)]
    a = np.concatenate([a, near + rng.integers(-1, 2, 20_000), [p[0] for p in pairs]])
    b = np.concatenate([np.where(b == 0, 7, b), d, [p[1] for p in pairs]])
    a, b = a.astype(np.int32), b.astype(np.int32)
    made = lowered(g.binary(op, a.size, dtype=DType.I32))
    assert not isinstance(made, Refusal)
    schedule = schedule_of(made.nest)
    assert not isinstance(schedule, Refusal)
    (have,) = AscendKernel(made.nest, schedule, tmp_path).run([a, b])
    want = {"floor_div": np.floor_divide, "remainder": np.remainder, "fmod": np.fmod}[op](a, b)
    np.testing.assert_array_equal(have, want)

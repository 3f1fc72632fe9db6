"""Attention as programs write it: the composite, and a softmax between two products by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from tests.codegen.kernel_graphs import tensor

F32, F64, BF16, F16, BOOL, I64 = (
    DType.F32, DType.F64, DType.BF16, DType.F16, DType.BOOL, DType.I64,
)  # fmt: skip


class Program:
    """A graph builder with the shorthands of these graphs."""

    def __init__(self, dtype: DType = F32) -> None:
        self.builder = GraphBuilder()
        self.dtype = dtype

    def x(self, *shape: int, dtype: DType | None = None) -> int:
        return self.builder.input(tensor(*shape, dtype=dtype or self.dtype))

    def op(self, name: str, *values: int, **attrs: object) -> int:
        made = self.builder.op(name, *values, **attrs)
        assert isinstance(made, int)
        return made

    def number(self, value: float) -> int:
        return self.builder.constant(np.float32(value))

    def swapped(self, value: int, rank: int = 4) -> int:
        dims = (*range(rank - 2), rank - 1, rank - 2)
        return self.op("permute", value, dims=dims)

    def graph(self, *outputs: int) -> Graph:
        for value in outputs:
            self.builder.output(value)
        return self.builder.build()


def composite(
    batch: int,
    heads: int,
    queries: int,
    keys: int,
    depth: int,
    cols: int | None = None,
    *,
    causal: bool = False,
    mask: tuple[int, ...] | None = None,
    mask_type: DType | None = None,
    dtype: DType = F32,
) -> Graph:
    """One attention composite."""
    p = Program(dtype)
    q, k = p.x(batch, heads, queries, depth), p.x(batch, heads, keys, depth)
    v = p.x(batch, heads, keys, cols or depth)
    given = [] if mask is None else [p.x(*mask, dtype=mask_type)]
    scale = 1 / math.sqrt(depth)
    return p.graph(
        p.op("attention", q, k, v, *given, scale=scale, causal=causal, mask=mask is not None)
    )


def merged_projection(batch: int, seq: int, heads: int, depth: int, dtype: DType = F32) -> Graph:
    """Slices of one projection in, positions by heads out; softmax by hand, mask of keys."""
    p = Program(dtype)
    x = p.x(batch, seq, 3 * heads * depth)
    mask = p.x(batch, 1, 1, seq)
    parts = p.op("reshape", x, shape=(batch, seq, 3, heads, depth))
    parts = p.op("permute", parts, dims=(2, 0, 3, 1, 4))
    q, k, v = (
        p.op(
            "reshape",
            p.op("slice", parts, dim=0, start=i, stop=i + 1, step=1),
            shape=(batch, heads, seq, depth),
        )
        for i in range(3)
    )
    scores = p.op("matmul", q, p.swapped(k))
    weights = p.op("softmax", p.op("add", scores, mask), dim=3)
    heads_last = p.op("permute", p.op("matmul", weights, v), dims=(0, 2, 1, 3))
    return p.graph(p.op("reshape", heads_last, shape=(batch, seq, heads * depth)))


def grouped(
    batch: int, heads: int, groups: int, queries: int, keys: int, depth: int, dtype: DType = F32
) -> Graph:
    """Grouped-query attention: each key head serves several query heads."""
    p = Program(dtype)
    q = p.x(batch, heads, queries, depth)
    shared = []
    for _ in range(2):
        wide = p.op(
            "reshape", p.x(batch, groups, keys, depth), shape=(batch, groups, 1, keys, depth)
        )
        wide = p.op("expand", wide, shape=(batch, groups, heads // groups, keys, depth))
        shared.append(p.op("reshape", wide, shape=(batch, heads, keys, depth)))
    return p.graph(p.op("attention", q, *shared, scale=0.3, causal=queries > 1, mask=False))


def rotary(batch: int, heads: int, queries: int, depth: int) -> Graph:
    """Query and key turned by their positions; soft-capped scores; a bias by position."""
    p = Program()
    cos, sin = p.x(queries, depth), p.x(queries, depth)

    def turned(value: int) -> int:
        half = depth // 2
        low = p.op("slice", value, dim=3, start=0, stop=half, step=1)
        high = p.op("slice", value, dim=3, start=half, stop=depth, step=1)
        other = p.op("concat", p.op("neg", high), low, dim=3)
        return p.op("add", p.op("mul", value, cos), p.op("mul", other, sin))

    q, k, v = (p.x(batch, heads, queries, depth) for _ in range(3))
    scores = p.op("matmul", turned(q), p.swapped(turned(k)))
    capped = p.op("mul", p.op("tanh", p.op("mul", scores, p.number(0.02))), p.number(50.0))
    biased = p.op("add", capped, p.x(1, heads, queries, queries))
    return p.graph(p.op("matmul", p.op("softmax", biased, dim=3), v))


def cached(batch: int, heads: int, past: int, depth: int) -> Graph:
    """One new key behind the cached ones."""
    p = Program()
    q = p.x(batch, heads, 1, depth)
    k, v = (
        p.op("concat", p.x(batch, heads, past, depth), p.x(batch, heads, 1, depth), dim=2)
        for _ in range(2)
    )
    return p.graph(p.op("attention", q, k, v, scale=0.25, causal=False, mask=False))


def sloped(heads: int, queries: int, keys: int, depth: int) -> Graph:
    """A causal mask with the last positions aligned, and a penalty that grows with distance."""
    p = Program()
    q, k = p.x(heads, queries, depth), p.x(heads, keys, depth)
    v, slopes = p.x(heads, keys, depth), p.x(heads, 1, 1)
    shape = (queries, keys)
    here = p.op("iota", shape=shape, dtype=I64, dim=0, start=keys - queries, step=1)
    there = p.op("iota", shape=shape, dtype=I64, dim=1, start=0, step=1)
    distance = p.op("cast", p.op("sub", there, here), dtype=F32)
    scores = p.op("add", p.op("matmul", q, p.swapped(k, 3)), p.op("mul", slopes, distance))
    seen = p.op("where", p.op("le", there, here), scores, p.number(-math.inf))
    return p.graph(p.op("matmul", p.op("softmax", seen, dim=2), v))


def windowed(heads: int, seq: int, depth: int, window: int, *, either: bool = False) -> Graph:
    """Each position sees itself and `window - 1` before it; `either`: hidden by one of two
    comparisons, instead of by no both."""
    p = Program()
    q, k, v = (p.x(heads, seq, depth) for _ in range(3))
    here, there = (
        p.op("iota", shape=(seq, seq), dtype=I64, dim=dim, start=0, step=1) for dim in (0, 1)
    )
    before = p.op("sub", here, p.builder.constant(np.int64(window)))
    if either:
        hidden = p.op("logical_or", p.op("gt", there, here), p.op("ge", before, there))
    else:
        seen = p.op("logical_and", p.op("le", there, here), p.op("gt", there, before))
        hidden = p.op("logical_not", seen)
    scores = p.op("matmul", q, p.swapped(k, 3))
    masked = p.op("where", hidden, p.number(-math.inf), scores)
    return p.graph(p.op("matmul", p.op("softmax", masked, dim=2), v))


def keys_across(batch: int, queries: int, keys: int, depth: int, cols: int) -> Graph:
    """Keys of bf16 as a matrix of depth by keys, every position by hand."""
    p = Program(BF16)
    q, k, v = p.x(batch, queries, depth), p.x(batch, depth, keys), p.x(batch, keys, cols)
    wide = [p.op("cast", value, dtype=F32) for value in (q, k, v)]
    weights = p.op("softmax", p.op("matmul", wide[0], wide[1]), dim=2)
    return p.graph(p.op("cast", p.op("matmul", weights, wide[2]), dtype=BF16))


GRAPHS: dict[str, Callable[[], Graph]] = {
    "plain": lambda: composite(2, 3, 37, 29, 20),
    "one column": lambda: composite(1, 2, 9, 14, 8, 2),
    "cross, values narrower": lambda: composite(1, 2, 70, 150, 64, 36),
    "wide heads": lambda: composite(1, 1, 19, 33, 256),
    "added mask": lambda: composite(2, 3, 33, 45, 16, mask=(2, 1, 33, 45)),
    "mask of keys": lambda: composite(2, 3, 33, 45, 16, mask=(2, 1, 1, 45)),
    "bool mask": lambda: composite(2, 3, 33, 45, 16, mask=(33, 45), mask_type=BOOL),
    "causal": lambda: composite(1, 2, 90, 90, 32, causal=True),
    "causal, more keys": lambda: composite(1, 2, 21, 150, 32, causal=True),
    "causal, fewer keys": lambda: composite(1, 2, 150, 21, 32, causal=True),
    "double": lambda: composite(1, 2, 17, 70, 12, mask=(17, 70), dtype=F64),
    "bf16": lambda: composite(2, 2, 40, 70, 32, mask=(40, 70), dtype=BF16),
    "f16 causal": lambda: composite(2, 2, 70, 70, 32, causal=True, dtype=F16),
    "merged projection": lambda: merged_projection(2, 35, 3, 16),
    "grouped": lambda: grouped(2, 8, 2, 30, 30, 16),
    "grouped decode": lambda: grouped(1, 8, 2, 1, 200, 64),
    "decode": lambda: composite(1, 3, 1, 333, 48),
    "decode bf16": lambda: grouped(1, 4, 2, 1, 150, 32, BF16),
    "decode f16, odd depth": lambda: grouped(1, 3, 1, 1, 100, 40, F16),
    "decode f16, odd values": lambda: composite(1, 2, 1, 90, 32, 33, dtype=F16),
    "rotary": lambda: rotary(2, 2, 26, 16),
    "cached": lambda: cached(2, 3, 40, 16),
    "window": lambda: windowed(2, 170, 16, 40),
    "window, either": lambda: windowed(1, 90, 16, 1, either=True),
    "sloped": lambda: sloped(3, 40, 60, 16),
}

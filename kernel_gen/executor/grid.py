"""How a nest's grid of points is cut into blocks to be evaluated one after another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from kernel_gen.ir.graph import Attrs
from kernel_gen.ir.loopnest import (
    Contract,
    LoopNest,
    Reduce,
    Store,
    closure,
    operands,
    reduced_axes,
)

Range = tuple[int, int]
Live = Sequence[Sequence[str]]
_BLOCK_POINTS = 1 << 16  # 512 KiB of float64
_OPERAND_POINTS = 1 << 20  # of a product: 8 MiB, whose memory malloc uses again
_LEAST_PRODUCT = 64  # rows or columns: thinner products keep the library waiting for memory
_FOLDED = frozenset(("sum", "prod", "any", "all", "amax", "amin"))  # of parts as of the whole


class Step(Protocol):
    """What the executor reads of a decision (`kernel_gen.schedule.schedule.Decision`)."""

    @property
    def args(self) -> Attrs: ...


class Tiling(Protocol):
    """What the executor reads of a schedule (`kernel_gen.schedule.schedule.Schedule`)."""

    def find(self, kind: str) -> Sequence[Step]:
        """Decisions of a kind; `tile` with `axis` and `size` is the one that matters here."""


def pieces(whole: Range, size: int) -> Iterator[Range]:
    """The range in pieces of `size`, the last one perhaps smaller; one piece where it is empty."""
    low, high = whole
    starts = range(low, high, max(size, 1)) or (low,)
    return ((start, min(start + size, high)) for start in starts)


def _closure(nest: LoopNest, number: int) -> frozenset[int]:
    """The statement and what it is made from."""
    return closure([number], lambda n: operands(nest.statements[n]))


def reduce_cut(
    nest: LoopNest, reduce: Reduce, live: Live, sizes: Mapping[str, int]
) -> tuple[str, int] | None:
    """The axis along which a reduction is folded piece by piece, with the pieces' size; None where
    all that it reads stays in a cache, or where a product is made along the axis."""
    if reduce.op not in _FOLDED:
        return None
    used = _closure(nest, reduce.arg)
    products = {a for n in used if isinstance(nest.statements[n], Contract) for a in live[n]}
    for axis in (name for name in sizes if name in reduce.axes and name not in products):
        size = _cut_size(nest, used, live, sizes, axis)
        if size < sizes[axis]:
            return axis, size
    return None


def store_cuts(
    nest: LoopNest, live: Live, ranges: Mapping[str, Range], schedule: Tiling | None
) -> list[tuple[list[Store], dict[str, int]]]:
    """Stores to be made together, with the sizes of the blocks in which they are.

    Axes that are reduced stay whole where a schedule decides the sizes.
    """
    extents = {axis: high - low for axis, (low, high) in ranges.items()}
    if schedule is not None:
        return [(list(nest.stores), _tile_sizes(nest, schedule, extents))]
    found: list[tuple[list[Store], dict[str, int]]] = []
    for store in sorted(nest.stores, key=lambda s: -len(_store_axes(s, live))):
        axes = _store_axes(store, live)
        for stores, sizes in found:
            if axes.issuperset(sizes):
                stores.append(store)
                break
        else:
            found.append(([store], _cached_sizes(nest, store, live, extents)))
    return found


def _store_axes(store: Store, live: Live) -> frozenset[str]:
    return frozenset(live[store.statement]).union(*(i.axes() for i in store.index))


def _tile_sizes(nest: LoopNest, schedule: Tiling, extents: Mapping[str, int]) -> dict[str, int]:
    """Sizes of blocks along the axes that the schedule cuts."""
    reduced = reduced_axes(nest.statements)
    sizes: dict[str, int] = {}
    for tile in schedule.find("tile"):
        given = dict(tile.args)
        axis, size = given.get("axis"), given.get("size")
        if not isinstance(axis, str) or not isinstance(size, int):
            continue
        if axis in extents and axis not in reduced:
            sizes[axis] = max(size, 1)
    return sizes


def _cached_sizes(
    nest: LoopNest, store: Store, live: Live, extents: Mapping[str, int]
) -> dict[str, int]:
    """Sizes with which all values that a block of a store needs stay in a cache."""
    sizes, cut = dict(extents), dict[str, int]()
    used = _closure(nest, store.statement)
    for axis in (name for name in extents if name in _store_axes(store, live)):
        size = _cut_size(nest, used, live, sizes, axis)
        if size < sizes[axis]:
            sizes[axis] = cut[axis] = size
    return cut


def _cut_size(
    nest: LoopNest, used: frozenset[int], live: Live, sizes: Mapping[str, int], axis: str
) -> int:
    """The size along `axis` with which values that live on it stay in a cache."""
    here = [n for n in used if axis in live[n]]
    if any(isinstance(nest.statements[n], Contract) for n in here):
        return _product_size(nest, used, live, sizes, axis)
    largest = _largest(here, live, sizes)
    return _share(sizes[axis], _BLOCK_POINTS, largest)


def _product_size(
    nest: LoopNest, used: frozenset[int], live: Live, sizes: Mapping[str, int], axis: str
) -> int:
    """The size along an axis of products. The library cuts them itself; what is kept small are
    the copies of their operands. They stay whole where rows along the axis are reduced: each
    reduction would make them again."""
    statements = [nest.statements[n] for n in used]
    if any(isinstance(s, Reduce) and axis in s.axes for s in statements):
        return sizes[axis]
    products = [s for s in statements if isinstance(s, Contract)]
    read = {n for s in products for n in (s.lhs, s.rhs)}
    largest = _largest([n for n in read if axis in live[n]], live, sizes)
    size = _share(sizes[axis], _OPERAND_POINTS, largest)
    least = max(_least_size(product, live, sizes, axis) for product in products)
    return min(sizes[axis], max(size, least))


def _least_size(product: Contract, live: Live, sizes: Mapping[str, int], axis: str) -> int:
    """The size along an axis with which the product's rows, or its columns, are not too few."""
    left, right = set(live[product.lhs]), set(live[product.rhs])
    if (axis in left) == (axis in right):
        return 1
    own = (left - right if axis in left else right - left) - {axis}
    return -(-_LEAST_PRODUCT // math.prod(sizes[a] for a in own))


def _largest(numbers: Sequence[int], live: Live, sizes: Mapping[str, int]) -> int:
    return max((math.prod(sizes[a] for a in live[n]) for n in numbers), default=0)


def _share(size: int, points: int, largest: int) -> int:
    """The part of `size` that brings a value of `largest` points down to `points`."""
    return max(1, size * points // largest) if largest > points else size

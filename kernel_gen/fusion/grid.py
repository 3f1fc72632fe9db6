"""How a nest's grid of points is cut into blocks to be evaluated one after another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from kernel_gen.ir.graph import Attrs
from kernel_gen.ir.loopnest import Contract, LoopNest, Reduce

Range = tuple[int, int]
_BLOCK_POINTS = 1 << 15  # 256 KiB of float64


class Step(Protocol):
    """What the executor reads of a decision (`kernel_gen.schedule.schedule.Decision`)."""

    @property
    def args(self) -> Attrs: ...


class Tiling(Protocol):
    """What the executor reads of a schedule (`kernel_gen.schedule.schedule.Schedule`)."""

    def find(self, kind: str) -> Sequence[Step]:
        """Decisions of a kind; `tile` with `axis` and `size` is the one that matters here."""


def blocks(
    nest: LoopNest, extents: Mapping[str, int], schedule: Tiling | None
) -> Iterator[dict[str, Range]]:
    """Ranges of all axes, block after block. Axes that are reduced stay whole."""
    reduced = {a for s in nest.statements if isinstance(s, Reduce | Contract) for a in s.axes}
    if schedule is None:
        sizes = _cached_sizes(nest, extents, reduced)
    else:
        sizes = _tile_sizes(schedule, extents, reduced)
    cuts = [
        [(low, min(low + sizes[axis], extent)) for low in range(0, extent, max(sizes[axis], 1))]
        for axis, extent in extents.items()
    ]
    whole = [c or [(0, 0)] for c in cuts]
    for ranges in itertools.product(*whole):
        yield dict(zip(extents, ranges, strict=True))


def _tile_sizes(schedule: Tiling, extents: Mapping[str, int], reduced: set[str]) -> dict[str, int]:
    """Sizes of blocks along all axes, as the schedule decides them."""
    sizes = dict(extents)
    for tile in schedule.find("tile"):
        given = dict(tile.args)
        axis, size = given.get("axis"), given.get("size")
        if isinstance(axis, str) and isinstance(size, int) and axis in extents:
            sizes[axis] = sizes[axis] if axis in reduced else max(size, 1)
    return sizes


def _cached_sizes(nest: LoopNest, extents: Mapping[str, int], reduced: set[str]) -> dict[str, int]:
    """Sizes with which a block's values stay in a cache, where no value is computed much more often
    for it. Products stay whole: the library cuts them itself."""
    sizes = dict(extents)
    if any(isinstance(statement, Contract) for statement in nest.statements):
        return sizes
    live = nest.statement_axes()
    work = [math.prod(extents[a] for a in axes) for axes in live]
    for axis in [a for a in extents if a not in reduced]:
        largest = max((math.prod(sizes[a] for a in axes) for axes in live), default=0)
        cuts = min(extents[axis], -(-largest // _BLOCK_POINTS))
        beside = sum(w for w, axes in zip(work, live, strict=True) if axis not in axes)
        if cuts > 1 and beside * cuts <= sum(work):
            sizes[axis] = -(-extents[axis] // cuts)
    return sizes

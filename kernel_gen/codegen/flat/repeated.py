"""Rows that are read again at each step of an axis outside theirs.

    out[h, p, d] = x[h, p, d] * t[p, d]

All of t is read once for each h; where it is larger than a cache, from memory or the next cache.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest


@dataclass(frozen=True, slots=True)
class Repeated:
    """`over`: the axis at whose steps rows are read again; `rows`: the axis on which they lie, None
    where it is one row, read along the vector axis alone."""

    over: str
    rows: str | None


def repeated_rows(nest: FlatNest, vector: str, cache_bytes: int) -> Repeated | None:
    """What vectors along `vector` read again after more than `cache_bytes` of it; None if nothing.

    Of several axes the one at which most bytes are. Only what lies along axes of known extents and
    does not hang on values counts.
    """
    walked = [a.name for a in nest.axes if a.name != vector]
    loads = [s for s in dict.fromkeys(nest.loads()) if not s.values and vector in s.at.axes()]
    best, most = None, 0
    for position, over in enumerate(walked):
        inside = walked[position + 1 :]
        rows = inside[-1] if inside else None
        again = [s for s in loads if over not in s.at.axes() and {rows} - {None} <= s.at.axes()]
        sizes = [_bytes(nest, s, {vector, *inside}) for s in again]
        total = sum(size for size in sizes if size > cache_bytes)
        if total > most:
            best, most = Repeated(over, rows), total
    return best


def _bytes(nest: FlatNest, load: FlatLoad, axes: Set[str]) -> int:
    """Bytes that a load reads along some axes; 0 where an extent is not known."""
    count = nest.buffers[load.buffer].type.dtype.bytes
    for axis in load.at.axes() & axes:
        extent = nest.extent(axis)
        count *= extent if isinstance(extent, int) else 0
    return count

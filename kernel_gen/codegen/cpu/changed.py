"""The part of an output that is not the very element of the input it takes the place of.

    x[:, 5:7] = y   ->   where(i < 5, x, where(i < 7, y, x)):  only 5 <= i < 7 is new

Over the input itself the rest need not be written, nor read. Per axis, and then the box of them.
"""

from __future__ import annotations

from dataclasses import replace

from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, FlatStatement, FlatStore
from kernel_gen.codegen.flat.simplify import shifted
from kernel_gen.ir.index import axis_index
from kernel_gen.ir.loopnest import Axis, Compute, Guard, IndexValue

Span = tuple[int, int]
"""Positions from the first to before the second."""


def changed_part(nest: FlatNest, source: int, output: int) -> FlatNest | None:
    """The nest over the box outside of which each element of `output`, its only one, is that of
    `source`; None where the box is the whole, or an extent is symbolic."""
    if len(nest.stores) != 1 or nest.stores[0].buffer != output:
        return None
    if not all(isinstance(axis.extent, int) for axis in nest.axes):
        return None
    box = {axis.name: _changed(nest, source, axis) for axis in nest.axes}
    if all(span == (0, axis.extent) for axis, span in zip(nest.axes, box.values(), strict=True)):
        return None
    axes = tuple(Axis(name, high - low) for name, (low, high) in box.items())
    return replace(shifted(nest, {name: low for name, (low, _) in box.items()}), axes=axes)


def _changed(nest: FlatNest, source: int, axis: Axis) -> Span:
    """Positions along an axis outside of which nothing changes."""
    assert isinstance(axis.extent, int)
    kept = _Kept(nest, nest.stores[0], source, axis.name, axis.extent)
    spans = kept.spans(nest.stores[0].statement)
    low = next((high for first, high in spans if first == 0), 0)
    high = next((first for first, end in spans if end == axis.extent), axis.extent)
    return (low, high) if low < high else (0, 1)  # an element written over itself


class _Kept:
    """Spans of an axis at which statements are the element that the store replaces, whatever the
    positions along other axes."""

    def __init__(
        self, nest: FlatNest, store: FlatStore, source: int, axis: str, extent: int
    ) -> None:
        self._nest, self._store, self._source = nest, store, source
        self._axis, self._extent = axis, extent

    def spans(self, number: int) -> list[Span]:
        """Disjoint and ascending, neighbours joined."""
        statement = self._nest.statements[number]
        whole = (0, self._extent)
        match statement:
            case FlatLoad() if self._is_old(statement):
                found = [whole]
                for guard in statement.guards:
                    found = _both(found, [_where_true(guard, self._axis, whole)])
                return found
            case Compute(op="where", args=(condition, yes, no)):
                split = self._split(condition)
                if split is None:
                    return _both(self.spans(yes), self.spans(no))
                below = _both(self.spans(yes), [(0, split)])
                return _joined([*below, *_both(self.spans(no), [(split, self._extent)])])
        return []

    def _is_old(self, load: FlatLoad) -> bool:
        stored = self._nest.buffers[self._store.buffer].type.dtype
        exact = load.dtype in (stored, stored.compute)
        return load.buffer == self._source and load.at == self._store.at and exact

    def _split(self, condition: int) -> int | None:
        """The position below which a comparison along the axis holds, and only there."""
        statement = self._nest.statements[condition]
        if not isinstance(statement, Compute) or statement.op != "lt":
            return None
        position, limit = (self._nest.statements[a] for a in statement.args)
        known = _number(limit)
        if not isinstance(position, IndexValue) or known is None:
            return None
        if position.index.terms != axis_index(self._axis).terms:
            return None
        return min(max(known - position.index.const, 0), self._extent)


def _number(statement: FlatStatement) -> int | None:
    match statement:
        case Compute(op="const", attrs=attrs):
            value = dict(attrs).get("value")
            return value if isinstance(value, int) else None
    return None


def _where_true(guard: Guard, axis: str, whole: Span) -> Span:
    """Where a guard along the axis holds; nowhere that one knows of for any other."""
    if guard.index.terms != axis_index(axis).terms or not isinstance(guard.high, int):
        return 0, 0
    return max(guard.low - guard.index.const, 0), min(guard.high - guard.index.const, whole[1])


def _both(some: list[Span], others: list[Span]) -> list[Span]:
    pairs = ((max(a, c), min(b, d)) for a, b in some for c, d in others)
    return [(low, high) for low, high in pairs if low < high]


def _joined(spans: list[Span]) -> list[Span]:
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found

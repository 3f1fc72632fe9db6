"""Cutting an axis where a concat joins its pieces, so that each piece is read without a test.

A concat lowers to a chain of selects on the position along an axis. Where the cuts are multiples of
one size, the axis becomes one of that size, and what lives on it is computed once per piece:

    out[i] = where(i < 4, x[i], y[i - 4])    i < 8
    out[i] = x[i];  out[i + 4] = y[i]        i < 4
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from kernel_gen.fusion.affine import Extents, bounds, plain_axis, rebuild
from kernel_gen.fusion.draft import Draft, moved, needed_by_stores
from kernel_gen.fusion.nest_builder import NestBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import Index, axis_index
from kernel_gen.ir.loopnest import (
    Compute,
    Contract,
    Guard,
    IndexValue,
    Load,
    Reduce,
    Statement,
    Store,
    operands,
)

_MAX_PIECES = 32
_MAX_STATEMENTS = 400  # of the cut nest: beyond it, compile time is not worth the selects
_JOINS = {
    "sum": "add",
    "prod": "mul",
    "amax": "maximum",
    "amin": "minimum",
    "any": "logical_or",
    "all": "logical_and",
}


def split_pieces(draft: Draft) -> Draft:
    """Cuts every axis that a concat runs along, where that is possible and worth it."""
    for axis in list(draft.extents):
        size = _piece(draft, axis)
        if size is not None:
            draft = _Cut(draft, axis, size).run()
    return draft


def _piece(draft: Draft, axis: str) -> int | None:
    """Size of the pieces, None where the axis is not cut."""
    extent = draft.extents[axis]
    cuts = {cut for s in draft.statements for cut in _cut_of(draft, s, axis)}
    if not cuts or not isinstance(extent, int):
        return None
    size = math.gcd(extent, *cuts)
    pieces = extent // size
    copied = 0
    for statement, live in zip(draft.statements, draft.live, strict=True):
        reduced = isinstance(statement, Reduce | Contract) and axis in statement.axes
        if isinstance(statement, Contract) and (reduced or axis in live):
            return None
        if isinstance(statement, Reduce) and reduced and statement.op not in _JOINS:
            return None
        copied += (axis in live and not _vanishes(statement)) or reduced
    small = pieces <= _MAX_PIECES and pieces * copied <= _MAX_STATEMENTS
    return size if small and pieces > 1 else None


def _vanishes(statement: Statement) -> bool:
    """Whether a statement of the chain stands for one piece only once it is cut."""
    if isinstance(statement, Compute):
        return statement.op in ("lt", "where")
    return isinstance(statement, IndexValue) or bool(
        isinstance(statement, Load) and statement.guards
    )


def _cut_of(draft: Draft, statement: Statement, axis: str) -> list[int]:
    """The constant c of `axis < c`."""
    if not isinstance(statement, Compute) or statement.op != "lt":
        return []
    left, right = (draft.statements[number] for number in statement.args)
    if not isinstance(left, IndexValue) or plain_axis(left.index) != axis:
        return []
    value = dict(right.attrs).get("value") if isinstance(right, Compute) else None
    return [value] if isinstance(value, int) and value > 0 else []


class _Cut:
    """One cut: statements that live on the axis have a number per piece, others one for all.

    A piece gets only what it needs: of a chain of selects, the side that it takes.
    """

    def __init__(self, draft: Draft, axis: str, size: int) -> None:
        self._draft = draft
        self._axis = axis
        extent = draft.extents[axis]
        count = extent // size if isinstance(extent, int) else 1
        self._shifts = [{axis: axis_index(axis) + piece * size} for piece in range(count)]
        self._nest = NestBuilder()
        self._nest.extents = {**draft.extents, axis: size}
        self._numbers: list[dict[int, int]] = [{} for _ in self._shifts]
        self._decided = [self._decisions(piece) for piece in range(count)]

    def run(self) -> Draft:
        """The draft over the shorter axis."""
        needed = [self._needed(decided) for decided in self._decided]
        for number, statement in enumerate(self._draft.statements):
            pieces = [piece for piece, wanted in enumerate(needed) if number in wanted]
            if pieces:
                self._place(number, statement, pieces)
        stores = [s for store in self._draft.stores for s in self._stores(store)]
        nest = self._nest
        return Draft(nest.extents, tuple(nest.statements), tuple(nest.live), tuple(stores))

    def _decisions(self, piece: int) -> dict[int, bool]:
        """Comparisons that all of a piece answers alike."""
        found: dict[int, bool] = {}
        for number, statement in enumerate(self._draft.statements):
            if isinstance(statement, Compute) and statement.op == "lt":
                left, right = (self._draft.statements[arg] for arg in statement.args)
                limit = _constant(right)
                if isinstance(left, IndexValue) and isinstance(limit, int):
                    at = rebuild(left.index, self._shifts[piece], {}, self._nest.extents)
                    low, high = bounds(at, self._nest.extents)
                    if high < limit or low >= limit:
                        found[number] = high < limit
        return found

    def _needed(self, decided: Mapping[int, bool]) -> set[int]:
        """Statements of the draft that a piece is made of."""
        found = needed_by_stores(self._draft)
        for number in reversed(range(len(self._draft.statements))):
            if number in found or self._is_joined(self._draft.statements[number]):
                found.update(self._operands(number, decided))
        return found

    def _operands(self, number: int, decided: Mapping[int, bool]) -> Sequence[int]:
        statement = self._draft.statements[number]
        if number in decided:
            return ()
        side = _side(statement, decided)
        return operands(statement) if side is None else (side,)

    def _is_joined(self, statement: Statement) -> TypeGuard[Reduce]:
        return isinstance(statement, Reduce) and self._axis in statement.axes

    def _place(self, number: int, statement: Statement, pieces: Sequence[int]) -> None:
        """Numbers of a statement in the pieces that need it; in all of them where it is shared."""
        everywhere = range(len(self._shifts))
        if self._is_joined(statement):
            parts = [self._copy(number, statement, piece) for piece in everywhere]
            shared = self._joined(statement, parts)
        elif self._axis in self._draft.live[number]:
            for piece in pieces:
                self._numbers[piece][number] = self._copy(number, statement, piece)
            return
        else:
            shared = self._copy(number, statement, pieces[0])
        for piece in everywhere:
            self._numbers[piece][number] = shared

    def _copy(self, number: int, statement: Statement, piece: int) -> int:
        decided, numbers = self._decided[piece], self._numbers[piece]
        if number in decided:
            return self._nest.const(decided[number], DType.BOOL)
        side = _side(statement, decided)
        if side is not None:
            return numbers[side]
        new = moved(statement, self._shifts[piece], numbers, self._nest.extents)
        if isinstance(new, Load):
            new = replace(new, guards=_open(new, self._nest.extents))
        return self._nest.add(new)

    def _joined(self, reduce: Reduce, parts: list[int]) -> int:
        total = parts[0]
        for part in parts[1:]:
            total = self._nest.compute(_JOINS[reduce.op], (total, part), reduce.dtype)
        return total

    def _stores(self, store: Store) -> list[Store]:
        live = set(self._draft.live[store.statement])
        live |= {axis for index in store.index for axis in index.axes()}
        pieces = range(len(self._shifts)) if self._axis in live else (0,)
        return [self._store(store, piece) for piece in pieces]

    def _store(self, store: Store, piece: int) -> Store:
        def index(old: Index) -> Index:
            return rebuild(old, self._shifts[piece], self._numbers[piece], self._nest.extents)

        numbers = self._numbers[piece]
        return Store(store.buffer, tuple(map(index, store.index)), numbers[store.statement])


def _constant(statement: Statement) -> object:
    if isinstance(statement, Compute) and statement.op == "const":
        return dict(statement.attrs)["value"]
    return None


def _side(statement: Statement, decided: Mapping[int, bool]) -> int | None:
    """The side that a select takes where its condition is decided."""
    if not isinstance(statement, Compute) or statement.op != "where":
        return None
    condition, chosen, other = statement.args
    return (chosen if decided[condition] else other) if condition in decided else None


def _open(load: Load, extents: Extents) -> tuple[Guard, ...]:
    """Guards of a load that may fail within the extents."""
    kept = []
    for guard in load.guards:
        low, high = bounds(guard.index, extents)
        if low < guard.low or not isinstance(guard.high, int) or high >= guard.high:
            kept.append(guard)
    return tuple(kept)

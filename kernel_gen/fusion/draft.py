"""A nest on its way: statements over named axes; loads and stores still name program values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernel_gen.fusion.affine import Extents, rebuild
from kernel_gen.fusion.nest_builder import NestBuilder
from kernel_gen.ir.index import AxisTerm, Index
from kernel_gen.ir.loopnest import (
    Compute,
    Contract,
    Guard,
    IndexValue,
    Load,
    Reduce,
    Statement,
    Store,
    indices,
    operands,
)
from kernel_gen.ir.types import Dim


@dataclass(frozen=True, slots=True)
class Draft:
    """Axes with extents, statements in order, the axes each one lives on, and stores."""

    extents: dict[str, Dim]
    statements: tuple[Statement, ...]
    live: tuple[frozenset[str], ...]
    stores: tuple[Store, ...]

    def all_indices(self) -> list[Index]:
        """Every index expression of the nest."""
        found = [index for statement in self.statements for index in indices(statement)]
        return found + [index for store in self.stores for index in store.index]


def draft_of(nest: NestBuilder, stores: tuple[Store, ...]) -> Draft:
    """A nest as it was built."""
    return Draft(nest.extents, tuple(nest.statements), tuple(nest.live), stores)


def rewritten(draft: Draft, axes: Mapping[str, Index], extents: Extents) -> Draft:
    """The draft with axes replaced; statements that became equal are one, unused ones vanish.

    With {r0: i1}: 0 load x[i0, i1]   1 load x[i0, r0]   2 reduce sum 1 over r0
    becomes        0 load x[i0, i1]   1 reduce sum 0 over i1
    """
    nest = NestBuilder()
    nest.extents = dict(extents)
    numbers: dict[int, int] = {}

    def index(old: Index) -> Index:
        return rebuild(old, axes, numbers, extents)

    for number in sorted(_needed(draft)):
        numbers[number] = nest.add(moved(draft.statements[number], axes, numbers, extents))
    stores = tuple(
        Store(s.buffer, tuple(index(i) for i in s.index), numbers[s.statement])
        for s in draft.stores
    )
    return Draft(nest.extents, tuple(nest.statements), tuple(nest.live), stores)


def needed_by_stores(draft: Draft) -> set[int]:
    """Statements that the stores read, their indices included."""
    indirect = {n for store in draft.stores for i in store.index for n in i.statements()}
    return indirect | {store.statement for store in draft.stores}


def _needed(draft: Draft) -> set[int]:
    waiting = list(needed_by_stores(draft))
    found: set[int] = set()
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting.extend(operands(draft.statements[number]))
    return found


def moved(
    old: Statement, axes: Mapping[str, Index], numbers: Mapping[int, int], extents: Extents
) -> Statement:
    """A statement with axes replaced and the statements it reads renumbered."""

    def index(value: Index) -> Index:
        return rebuild(value, axes, numbers, extents)

    match old:
        case Load():
            guards = tuple(Guard(index(g.index), g.low, g.high) for g in old.guards)
            return replace(old, index=tuple(index(i) for i in old.index), guards=guards)
        case IndexValue():
            return replace(old, index=index(old.index))
        case Compute():
            return Compute(old.op, tuple([numbers[a] for a in old.args]), old.dtype, old.attrs)
        case Reduce():
            return replace(old, arg=numbers[old.arg], axes=_inner(old.axes, axes))
        case Contract():
            inner = _inner(old.axes, axes)
            return replace(old, lhs=numbers[old.lhs], rhs=numbers[old.rhs], axes=inner)


def _inner(old: tuple[str, ...], axes: Mapping[str, Index]) -> tuple[str, ...]:
    """Axes of a reduction after replacement, outermost part of a split axis first."""
    found: list[str] = []
    for axis in old:
        terms = axes[axis].terms if axis in axes else ((AxisTerm(axis), 1),)
        ordered = sorted(terms, key=lambda item: -item[1])
        found += [term.axis for term, _ in ordered if isinstance(term, AxisTerm)]
    return tuple(found)

"""Rewrites of a flat nest before loops are made: unit axes go, adjacent axes merge, sums that are
added to each other become one (`sums`), exponentials that are taken twice are taken once
(`exponentials`).

x[i, j] + y[i, j], both contiguous, i < 4, j < 5   ->   x[i] + y[i], i < 20
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from kernel_gen.codegen.flat.exponentials import shared_exponentials
from kernel_gen.codegen.flat.linear import (
    FlatLoad,
    FlatNest,
    FlatStatement,
    FlatStore,
    Linear,
    Poly,
)
from kernel_gen.codegen.flat.sums import joined_sums
from kernel_gen.ir.index import AxisTerm, FloorDiv, Index, Mod, axis_index
from kernel_gen.ir.loopnest import Axis, Contract, Guard, IndexValue, Reduce, reduced_axes
from kernel_gen.ir.types import Dim


def simplify(nest: FlatNest) -> FlatNest:
    """The nest without unit axes, with axes merged that every access walks as one, with sums joined
    and exponentials shared."""
    return shared_exponentials(joined_sums(merge_axes(drop_unit_axes(nest))))


def drop_unit_axes(nest: FlatNest) -> FlatNest:
    """Axes of extent 1 that nothing reduces over are replaced by 0."""
    reduced = reduced_axes(nest.statements)
    gone = {a.name for a in nest.axes if a.extent == 1 and a.name not in reduced}
    if not gone:
        return nest
    zero = {name: Index() for name in gone}
    kept = tuple(a for a in nest.axes if a.name not in gone)
    mapped = map_accesses(
        nest, lambda at: _without(at, gone, zero), lambda index: index.substitute(zero)
    )
    return replace(mapped, axes=kept)


def _without(at: Linear, gone: set[str], zero: dict[str, Index]) -> Linear:
    terms = []
    for term, coeff in at.terms:
        if isinstance(term, AxisTerm) and term.axis in gone:
            continue
        if isinstance(term, FloorDiv):
            term = FloorDiv(term.index.substitute(zero), term.divisor)
        elif isinstance(term, Mod):
            term = Mod(term.index.substitute(zero), term.divisor)
        terms.append((term, coeff))
    return Linear(tuple(terms), at.const)


def map_accesses(
    nest: FlatNest, on_offset: Callable[[Linear], Linear], on_index: Callable[[Index], Index]
) -> FlatNest:
    """The nest with offsets and indices rewritten."""

    def guards(found: tuple[Guard, ...]) -> tuple[Guard, ...]:
        return tuple(replace(g, index=on_index(g.index)) for g in found)

    def statement(s: FlatStatement) -> FlatStatement:
        if isinstance(s, FlatLoad):
            return replace(s, at=on_offset(s.at), guards=guards(s.guards))
        if isinstance(s, IndexValue):
            return replace(s, index=on_index(s.index))
        return s

    def store(s: FlatStore) -> FlatStore:
        return replace(s, at=on_offset(s.at), guards=guards(s.guards))

    return replace(
        nest,
        statements=tuple(statement(s) for s in nest.statements),
        stores=tuple(store(s) for s in nest.stores),
    )


def shifted(nest: FlatNest, steps: Mapping[str, int]) -> FlatNest:
    """The accesses of a nest with axes counted from other positions: what it did at 3 + i along an
    axis of `steps` {axis: 3}, it does at i."""
    moves = {name: axis_index(name) + step for name, step in steps.items() if step}

    def offset(at: Linear) -> Linear:
        terms, const = [], at.const
        for term, coeff in at.terms:
            if isinstance(term, AxisTerm) and term.axis in moves:
                const = const + coeff * moves[term.axis].const
            elif isinstance(term, FloorDiv):
                term = FloorDiv(term.index.substitute(moves), term.divisor)
            elif isinstance(term, Mod):
                term = Mod(term.index.substitute(moves), term.divisor)
            terms.append((term, coeff))
        return Linear(tuple(terms), const)

    return map_accesses(nest, offset, lambda index: index.substitute(moves)) if moves else nest


def merge_axes(nest: FlatNest) -> FlatNest:
    """Merges neighbouring axes of known extents as long as any pair may be merged."""
    position = 0
    while position + 1 < len(nest.axes):
        outer, inner = (axis.extent for axis in nest.axes[position : position + 2])
        if isinstance(outer, int) and isinstance(inner, int) and mergeable(nest, position):
            nest = merged(nest, position, outer * inner)
            position = max(position - 1, 0)
        else:
            position += 1
    return nest


def mergeable(nest: FlatNest, position: int) -> bool:
    """Whether nothing tells the axis at `position` and the next one apart."""
    outer, inner = nest.axes[position : position + 2]
    pair = {outer.name, inner.name}
    for s in nest.statements:
        if isinstance(s, IndexValue) and pair & s.index.axes():
            return False
        if isinstance(s, Reduce | Contract) and not _reduced_together(s, outer.name, inner.name):
            return False
    return all(_walks_as_one(access, outer, inner) for access in nest.accesses())


def _reduced_together(s: Reduce | Contract, outer: str, inner: str) -> bool:
    present = (outer in s.axes, inner in s.axes)
    if present[0] != present[1]:
        return False
    if not present[0] or not isinstance(s, Reduce) or not s.op.startswith("arg"):
        return True
    return s.axes.index(inner) == s.axes.index(outer) + 1


def _walks_as_one(access: FlatLoad | FlatStore, outer: Axis, inner: Axis) -> bool:
    if any({outer.name, inner.name} & g.index.axes() for g in access.guards):
        return False
    at = access.at
    affine = at.is_affine_in(outer.name) and at.is_affine_in(inner.name)
    return affine and at.coeff(outer.name) == at.coeff(inner.name) * Poly.of(inner.extent)


def merged(nest: FlatNest, position: int, extent: Dim) -> FlatNest:
    """Two neighbouring axes as one, whose `extent` is the product of theirs.

    Before: axes (i < 4, j < 5), offset 5·i + j.  After: axis (i < 20), offset i.
    """
    outer, inner = nest.axes[position : position + 2]
    axes = (*nest.axes[:position], Axis(outer.name, extent), *nest.axes[position + 2 :])

    def offset(at: Linear) -> Linear:
        step = at.coeff(inner.name)
        pair = {AxisTerm(outer.name), AxisTerm(inner.name)}
        terms = [(t, c) for t, c in at.terms if t not in pair]
        if step != Poly():
            terms.append((AxisTerm(outer.name), step))
        return Linear(tuple(terms), at.const)

    mapped = map_accesses(nest, offset, lambda index: index)
    statements = tuple(_without_axis(s, inner.name) for s in mapped.statements)
    return replace(mapped, axes=axes, statements=statements)


def _without_axis(s: FlatStatement, gone: str) -> FlatStatement:
    if isinstance(s, Reduce | Contract):
        return replace(s, axes=tuple(a for a in s.axes if a != gone))
    return s

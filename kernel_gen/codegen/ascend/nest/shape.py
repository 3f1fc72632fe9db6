"""The flat nest as the vector templates see it: reductions in simple terms, symbolic axes merged.

x[i, j] + y[i, j], both contiguous, i < s0, j < s1   ->   x[i] + y[i], i < s9000 = s0·s1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kernel_gen.codegen.ascend.nest.plain_reductions import without_special_reductions
from kernel_gen.codegen.flat.linear import (
    FlatLoad,
    FlatNest,
    FlatStatement,
    FlatStore,
    Linear,
    Poly,
    flatten,
)
from kernel_gen.codegen.flat.simplify import drop_unit_axes, map_accesses
from kernel_gen.ir.index import AxisTerm
from kernel_gen.ir.loopnest import Axis, Contract, IndexValue, LoopNest, Reduce
from kernel_gen.ir.types import Sym

_FIRST_DERIVED = 9000  # symbols of merged axes: s9000, s9001, …


@dataclass(frozen=True, slots=True)
class Shaped:
    """A nest with merged axes. `derived` are the extents of merged axes with symbols in them."""

    nest: FlatNest
    derived: Mapping[str, Poly] = field(default_factory=dict)

    def symbols(self) -> tuple[str, ...]:
        """Symbols of the program that extents and offsets hold, derived ones taken apart."""
        found = set(self.nest.symbols()) - set(self.derived)
        for poly in self.derived.values():
            found |= {name for monomial, _ in poly.terms for name in monomial}
        return tuple(sorted(found - set(self.derived)))


def shaped(nest: LoopNest) -> Shaped:
    """`nest` ready for planning."""
    flat = drop_unit_axes(flatten(without_special_reductions(nest)))
    if not flat.axes:
        flat = replace(flat, axes=(Axis("i0", 1),))
    derived: dict[str, Poly] = {}
    position = 0
    while position + 1 < len(flat.axes):
        merged = _merged(flat, position, derived)
        if merged is None:
            position += 1
        else:
            flat = merged
            position = max(position - 1, 0)
    return Shaped(flat, derived)


# ---- merging -------------------------------------------------------------------------------------


def _merged(nest: FlatNest, position: int, derived: dict[str, Poly]) -> FlatNest | None:
    """The nest with two neighbouring axes as one, or None where some access tells them apart."""
    outer, inner = nest.axes[position], nest.axes[position + 1]
    pair = {outer.name, inner.name}
    span = Poly.of(inner.extent)
    for s in nest.statements:
        if isinstance(s, IndexValue) and pair & s.index.axes():
            return None
        if isinstance(s, Reduce | Contract) and len(pair & set(s.axes)) == 1:
            return None
    for access in nest.accesses():
        if not _walks_as_one(access, outer.name, inner.name, span):
            return None
    whole = Poly.of(outer.extent) * span
    extent: int | Sym
    if whole.const is not None:
        extent = whole.const
    else:
        name = f"s{_FIRST_DERIVED + len(derived)}"
        derived[name] = _plain(whole, derived)
        extent = Sym(name)
    axes = (*nest.axes[:position], Axis(outer.name, extent), *nest.axes[position + 2 :])
    mapped = map_accesses(nest, lambda at: _joined(at, outer.name, inner.name), lambda i: i)
    statements = tuple(_without_axis(s, inner.name) for s in mapped.statements)
    return replace(mapped, axes=axes, statements=statements)


def _plain(poly: Poly, derived: Mapping[str, Poly]) -> Poly:
    """The polynomial in the program's own symbols."""
    total = Poly()
    for monomial, factor in poly.terms:
        part = Poly.of(factor)
        for name in monomial:
            part = part * derived.get(name, Poly.of(Sym(name)))
        total = total + part
    return total


def _walks_as_one(access: FlatLoad | FlatStore, outer: str, inner: str, span: Poly) -> bool:
    if any({outer, inner} & g.index.axes() for g in access.guards):
        return False
    at = access.at
    affine = at.is_affine_in(outer) and at.is_affine_in(inner)
    return affine and at.coeff(outer) == at.coeff(inner) * span


def _joined(at: Linear, outer: str, inner: str) -> Linear:
    step = at.coeff(inner)
    pair = {AxisTerm(outer), AxisTerm(inner)}
    terms = [(t, c) for t, c in at.terms if t not in pair]
    if step != Poly():
        terms.append((AxisTerm(outer), step))
    return Linear(tuple(terms), at.const)


def _without_axis(s: FlatStatement, gone: str) -> FlatStatement:
    if isinstance(s, Reduce | Contract):
        return replace(s, axes=tuple(a for a in s.axes if a != gone))
    return s

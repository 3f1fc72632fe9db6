"""The flat nest as the vector templates see it: reductions in simple terms, symbolic axes merged.

x[i, j] + y[i, j], both contiguous, i < s0, j < s1   ->   x[i] + y[i], i < s9000 = s0·s1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kernel_gen.codegen.ascend.nest.plain_reductions import without_special_reductions
from kernel_gen.codegen.flat.linear import FlatNest, Poly, flatten
from kernel_gen.codegen.flat.simplify import drop_unit_axes, mergeable, merged
from kernel_gen.ir.loopnest import Axis, LoopNest
from kernel_gen.ir.types import Dim, Sym

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
        if mergeable(flat, position):
            flat = merged(flat, position, _joint_extent(flat, position, derived))
            position = max(position - 1, 0)
        else:
            position += 1
    return Shaped(flat, derived)


def _joint_extent(nest: FlatNest, position: int, derived: dict[str, Poly]) -> Dim:
    """The product of two axes' extents: a symbol of its own where one of them is symbolic."""
    outer, inner = nest.axes[position : position + 2]
    whole = Poly.of(outer.extent) * Poly.of(inner.extent)
    if whole.const is not None:
        return whole.const
    name = f"s{_FIRST_DERIVED + len(derived)}"
    derived[name] = _plain(whole, derived)
    return Sym(name)


def _plain(poly: Poly, derived: Mapping[str, Poly]) -> Poly:
    """The polynomial in the program's own symbols."""
    total = Poly()
    for monomial, factor in poly.terms:
        part = Poly.of(factor)
        for name in monomial:
            part = part * derived.get(name, Poly.of(Sym(name)))
        total = total + part
    return total

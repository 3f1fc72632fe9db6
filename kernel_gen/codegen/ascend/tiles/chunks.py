"""Vector phases around a product over a chunk of its rows, so that both kinds of cores work side by
side."""

from __future__ import annotations

from dataclasses import replace

from kernel_gen.codegen.flat.linear import FlatNest, Linear, Poly
from kernel_gen.codegen.flat.phases import plan_phases
from kernel_gen.codegen.flat.simplify import map_accesses
from kernel_gen.ir.loopnest import Axis, IndexValue
from kernel_gen.ir.types import Sym

LOW, COUNT = Sym("s9997"), Sym("s9998")
"""First row and number of rows of the chunk at hand, where a product runs in chunks of rows."""


def chunked(nest: FlatNest, axis: str) -> FlatNest | None:
    """The nest over a chunk of `axis`, offsets moved by its first row; None where the axis is not
    an outer one everywhere, or where more than offsets depends on it."""
    if any(axis not in phase.outer for phase in plan_phases(nest)):
        return None
    for s in nest.statements:
        if isinstance(s, IndexValue) and axis in s.index.axes():
            return None
    for access in nest.accesses():
        guarded = any(axis in g.index.axes() for g in access.guards)
        if guarded or access.at.statements() or not access.at.is_affine_in(axis):
            return None

    def moved(at: Linear) -> Linear:
        return Linear(at.terms, at.const + at.coeff(axis) * Poly.of(LOW))

    shifted = map_accesses(nest, moved, lambda index: index)
    axes = tuple(Axis(a.name, COUNT) if a.name == axis else a for a in nest.axes)
    return replace(shifted, axes=axes)

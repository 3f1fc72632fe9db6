"""Products that sum over several axes, as convolutions do: neighbouring axes become one.

    y[b, o, i, j] = Σ w[o, c, u, v] · x[b, c, i+u, j+v]     w as it lies: rows o, columns cuv
                                                            x' = x gathered, [b, cuv, ij]
                                                            y' = w · x' for each b

An operand is taken as it lies where its axes follow each other in memory in the product's order;
else the vector cores write it so into the workspace first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from kernel_gen.codegen.flat.linear import FlatNest, Linear, Poly
from kernel_gen.ir.index import AxisTerm
from kernel_gen.ir.loopnest import Axis

ROWS, COLUMNS, SUMMED = "joinedRows", "joinedColumns", "joinedSum"
"""Axes that several of a nest become."""


def extents(nest: FlatNest, axes: Sequence[str]) -> int | None:
    """The number of points of some axes; None where one of them is symbolic."""
    total = 1
    for axis in axes:
        extent = nest.extent(axis)
        if not isinstance(extent, int):
            return None
        total *= extent
    return total


def follow(nest: FlatNest, at: Linear, axes: Sequence[str]) -> bool:
    """Whether axes, outermost first, lie in memory as one does."""
    for outer, inner in pairwise(axes):
        extent = nest.extent(inner)
        step, within = at.coeff(outer).const, at.coeff(inner).const
        if not isinstance(extent, int) or step is None or within is None:
            return False
        if step != within * extent:
            return False
    return True


def join(at: Linear, axes: Sequence[str], name: str) -> Linear:
    """An offset with `axes`, which follow each other, as the one axis `name`."""
    gone = set(axes)
    kept = tuple((t, c) for t, c in at.terms if not (isinstance(t, AxisTerm) and t.axis in gone))
    step: Poly = at.coeff(axes[-1])
    added = ((AxisTerm(name), step),) if step.terms else ()
    return Linear((*kept, *added), at.const)


def innermost(nest: FlatNest, at: Linear, axes: Sequence[str]) -> tuple[str, ...]:
    """The most of `axes`, from the last one on, that follow each other."""
    for start in range(len(axes)):
        if follow(nest, at, axes[start:]) and extents(nest, axes[start:]) is not None:
            return tuple(axes[start:])
    return tuple(axes[-1:])


def with_joined(nest: FlatNest, joined: Sequence[tuple[str, int]]) -> FlatNest:
    """The nest that knows the extents of joined axes, too."""
    return replace(nest, axes=(*nest.axes, *(Axis(name, extent) for name, extent in joined)))

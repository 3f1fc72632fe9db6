"""Static extents of axes, for templates that refuse symbolic ones."""

from __future__ import annotations

import math

from kernel_gen.ir.loopnest import Axis


def extent(axis: Axis) -> int:
    """The static extent of an axis."""
    assert isinstance(axis.extent, int)
    return axis.extent


def elems(axes: tuple[Axis, ...]) -> int:
    """Number of points of several axes."""
    return math.prod(map(extent, axes))

"""Broadcasting of shapes with symbols: equal extents match, 1 matches anything."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gen.ir.types import Dim, Shape


def broadcast_dims(a: Dim, b: Dim) -> Dim | None:
    """The common extent, or None: 1 gives way; a symbol equals only itself."""
    if a == b or b == 1:
        return a
    return b if a == 1 else None


def broadcast_shapes(shapes: Sequence[Shape]) -> Shape | None:
    """NumPy's broadcast shape, or None if two extents do not match."""
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for position, extent in enumerate(shape, start=rank - len(shape)):
            common = broadcast_dims(result[position], extent)
            if common is None:
                return None
            result[position] = common
    return tuple(result)

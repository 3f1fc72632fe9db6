"""Rectangular parts of arrays: what a load or store touches whose every index is one axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from kernel_gen.fusion.grid import Range
from kernel_gen.ir.index import AxisTerm, Index


@dataclass(frozen=True, slots=True)
class Window:
    """The part of an array, and the axis along each of the dimensions that are left."""

    part: tuple[int | slice, ...]
    axes: tuple[str, ...]

    def of(self, array: NDArray[Any], axes: Sequence[str]) -> NDArray[Any]:
        """A view of the part with a dimension (of 1 where there is none) for each of `axes`."""
        present = [axis for axis in axes if axis in self.axes]
        view = array[(*self.part, ...)].transpose([self.axes.index(axis) for axis in present])
        return view[(*(slice(None) if axis in present else None for axis in axes), ...)]


def window(
    index: Sequence[Index], block: Mapping[str, Range], shape: Sequence[int]
) -> Window | None:
    """The window of an access within `shape`; None where it is none, or reaches outside."""
    part: list[int | slice] = []
    axes: list[str] = []
    for at, extent in zip(index, shape, strict=True):
        match at.terms:
            case () if 0 <= at.const < extent:
                part.append(at.const)
            case ((AxisTerm(axis), 1),) if axis not in axes:
                low, high = (end + at.const for end in block[axis])
                if low < 0 or high > extent:
                    return None
                part.append(slice(low, high))
                axes.append(axis)
            case _:
                return None
    return Window(tuple(part), tuple(axes))

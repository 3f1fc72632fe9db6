"""What loads and stores touch, as views: rectangular parts, and strided ones for reading.

x[i + 1, 2 * j]                 a view of x, one dimension for i, one for j
x[i + k - 1], 0 <= i + k - 1    a view of x with a border of the fill, i + k windows over it
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from kernel_gen.executor.grid import Range
from kernel_gen.ir.index import AxisTerm, Index, axis_index


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


def strided(
    source: NDArray[Any], index: Sequence[Index], block: Mapping[str, Range], axes: Sequence[str]
) -> NDArray[Any] | None:
    """What a load reads, as a view with a dimension (of 1 where there is none) for each of `axes`;
    None where an index is not a sum of axes, or reaches outside."""
    first: list[int] = []
    steps: dict[str, int] = {}
    for at, extent, step in zip(index, source.shape, source.strides, strict=True):
        reach = _reach(at, block)
        if reach is None or reach[0] < 0 or reach[1] >= extent:
            return None
        first.append(at.const + sum(at.coeff(a) * block[a][0] for a in at.axes()))
        for axis in at.axes():
            steps[axis] = steps.get(axis, 0) + at.coeff(axis) * step
    shape = [block[axis][1] - block[axis][0] if axis in steps else 1 for axis in axes]
    begin = source[tuple(slice(at, at + 1) for at in first)]
    return as_strided(begin, shape, [steps.get(axis, 0) for axis in axes], writeable=False)


def bordered(
    source: NDArray[Any],
    index: Sequence[Index],
    limits: Mapping[Index, Range],
    block: Mapping[str, Range],
    fill: NDArray[Any],
) -> tuple[NDArray[Any], list[Index]] | None:
    """The part of `source` that a guarded load reads, in the type of `fill`, which also stands
    wherever a guard fails, and the load's indices into that part. `limits` are the guards: the
    range in which an index has to lie.

    None where a guard is on something else than one of the indices, an index is not a sum of axes,
    or what the guards let through lies outside of `source`.
    """
    if not limits.keys() <= set(index):
        return None
    inner: list[slice] = []
    place: list[slice] = []
    shape: list[int] = []
    moved: list[Index] = []
    for at, extent in zip(index, source.shape, strict=True):
        steps = _steps(at, block)
        if steps is None:
            return None
        low, high = limits.get(at, (0, extent))
        begin = max(steps.first, -(-(low - steps.const) // steps.coeff))
        end = min(steps.end, -(-(high - steps.const) // steps.coeff))
        if at not in limits and (begin, end) != (steps.first, steps.end):
            return None
        if begin >= end:
            begin = end = steps.first  # nothing passes the guard
        part = steps.part(begin, end)
        if begin < end and (part.start < 0 or part.stop > extent):
            return None
        inner.append(part)
        place.append(slice(begin - steps.first, end - steps.first))
        shape.append(steps.end - steps.first)
        moved.append(steps.index + Index(const=-steps.first))
    made = np.full(shape, fill, fill.dtype)
    made[tuple(place)] = source[tuple(inner)]
    return made, moved


@dataclass(frozen=True, slots=True)
class _Steps:
    """The values of an index, `const + coeff · k` for first <= k < end, and k as an index."""

    const: int
    coeff: int
    first: int
    end: int
    index: Index

    def part(self, begin: int, end: int) -> slice:
        """The elements for begin <= k < end."""
        if begin >= end:
            return slice(0, 0)
        last = self.const + self.coeff * (end - 1)
        return slice(self.const + self.coeff * begin, last + 1, self.coeff)


def _steps(at: Index, block: Mapping[str, Range]) -> _Steps | None:
    """One axis is walked in its steps, all between the least and the largest sum of several."""
    reach = _reach(at, block)
    match at.terms:
        case ((AxisTerm(axis), coeff),) if reach is not None and coeff > 0:
            return _Steps(at.const, coeff, *block[axis], axis_index(axis))
        case _ if reach is not None:
            return _Steps(0, 1, reach[0], reach[1] + 1, at)
        case _:
            return None


def _reach(index: Index, block: Mapping[str, Range]) -> Range | None:
    """The least and the largest value of an index in a block; None if it is no sum of axes, or
    there is no value."""
    low = high = index.const
    for term, coeff in index.terms:
        if not isinstance(term, AxisTerm) or block[term.axis][0] >= block[term.axis][1]:
            return None
        ends = sorted((coeff * block[term.axis][0], coeff * (block[term.axis][1] - 1)))
        low, high = low + ends[0], high + ends[1]
    return low, high

"""Splitting axes so that divisions and remainders of reshapes become plain axes."""

from __future__ import annotations

from kernel_gen.fusion.affine import plain_axis
from kernel_gen.fusion.draft import Draft, rewritten
from kernel_gen.ir.index import AxisTerm, FloorDiv, Index, Mod, Term, make_index
from kernel_gen.ir.types import Dim

_ROUNDS = 4  # a split can lay bare another one inside it


def split_axes(draft: Draft) -> Draft:
    """i < 12 read as i // 4 and i % 4 becomes two axes.

    load x[i0 // 4, i0 % 4]   store out[i0]          (i0 < 12)
    load x[i0_0, i0_1]        store out[4·i0_0 + i0_1]   (i0_0 < 3, i0_1 < 4)
    """
    for _ in range(_ROUNDS):
        divisors: dict[str, set[int]] = {}
        for index in draft.all_indices():
            _collect(index, divisors)
        extents = dict(draft.extents)
        axes: dict[str, Index] = {}
        for axis, found in divisors.items():
            parts = _factors(draft.extents[axis], found)
            if len(parts) > 1:
                axes[axis] = _replace(axis, parts, extents)
        if not axes:
            break
        draft = rewritten(draft, axes, extents)
    return draft


def _collect(index: Index, found: dict[str, set[int]]) -> None:
    """Divisors of single axes: 4 and 12 of i in `(i // 4) % 3`."""
    for term, _ in index.terms:
        if isinstance(term, FloorDiv | Mod):
            scaled = _scaled_axis(term.index)
            if scaled is not None:
                axis, scale = scaled
                found.setdefault(axis, set()).add(scale * term.divisor)
            _collect(term.index, found)


def _scaled_axis(index: Index) -> tuple[str, int] | None:
    """(axis, d) where the index is `axis // d`, or a remainder of that."""
    axis = plain_axis(index)
    if axis is not None:
        return axis, 1
    if index.const or len(index.terms) != 1 or index.terms[0][1] != 1:
        return None
    term = index.terms[0][0]
    if isinstance(term, FloorDiv):
        inner = _scaled_axis(term.index)
        return None if inner is None else (inner[0], inner[1] * term.divisor)
    return _scaled_axis(term.index) if isinstance(term, Mod) else None


def _factors(extent: Dim, divisors: set[int]) -> list[int]:
    """Extents of the parts, outermost first: (24, {4, 12}) -> [2, 3, 4]."""
    if not isinstance(extent, int) or extent == 0:
        return []
    parts: list[int] = []
    step = 1
    for divisor in sorted(divisors):
        if divisor % step == 0 and extent % divisor == 0 and step < divisor < extent:
            parts.append(divisor // step)
            step = divisor
    return [extent // step, *reversed(parts)]


def _replace(axis: str, parts: list[int], extents: dict[str, Dim]) -> Index:
    """Adds the parts to `extents` and gives the axis in terms of them."""
    del extents[axis]
    terms: dict[Term, int] = {}
    step = 1
    for position, part in reversed(list(enumerate(parts))):
        name = f"{axis}_{position}"
        extents[name] = part
        terms[AxisTerm(name)] = step
        step *= part
    return make_index(terms)

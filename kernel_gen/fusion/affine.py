"""Arithmetic on index expressions that knows the extents of the axes.

Divisions and remainders come from reshapes; knowing how far each axis runs, most of them vanish:
with j < 4, `(4·i + j) // 4` is `i` and `(4·i + j) % 4` is `j`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from kernel_gen.ir.index import (
    AxisTerm,
    FloorDiv,
    Index,
    Mod,
    Term,
    ValueTerm,
    make_index,
    weighted_sum,
)
from kernel_gen.ir.types import Dim

Extents = Mapping[str, Dim]
ZERO = Index()
_FAR = 2**62  # beyond every index: extents are below 2**48


def bounds(index: Index, extents: Extents) -> tuple[int, int]:
    """Inclusive bounds of an index; indirect terms are unbounded."""
    low = high = index.const
    for term, coeff in index.terms:
        ends = [end * coeff for end in _term_bounds(term, extents)]
        low += min(ends)
        high += max(ends)
    return low, high


def _term_bounds(term: Term, extents: Extents) -> tuple[int, int]:
    if isinstance(term, AxisTerm):
        extent = extents[term.axis]
        return 0, (max(extent - 1, 0) if isinstance(extent, int) else _FAR)
    if isinstance(term, ValueTerm):
        return -_FAR, _FAR
    low, high = bounds(term.index, extents)
    if isinstance(term, FloorDiv):
        return low // term.divisor, high // term.divisor
    return 0, term.divisor - 1


def _split(index: Index, factor: int) -> tuple[Index, Index]:
    """`index == factor·first + second`, as far as coefficients divide."""
    whole = tuple((t, c // factor) for t, c in index.terms if c % factor == 0)
    rest = tuple((t, c) for t, c in index.terms if c % factor)
    return Index(whole, index.const // factor), Index(rest, index.const % factor)


def _splits(index: Index, divisor: int, extents: Extents) -> Iterator[tuple[int, Index, Index]]:
    """(g, first, second): `index == g·first + second`, 0 <= second < g, g divides `divisor`."""
    factors = {math.gcd(coeff, divisor) for _, coeff in index.terms} - {1}
    for factor in sorted(factors, reverse=True):
        whole, rest = _split(index, factor)
        low, high = bounds(rest, extents)
        if low >= 0 and high < factor:
            yield factor, whole, rest


def divide(index: Index, divisor: int, extents: Extents) -> Index:
    """`index // divisor`, simplified."""
    if divisor == 1:
        return index
    whole, rest = _split(index, divisor)
    low, high = (end // divisor for end in bounds(rest, extents))
    if low == high:
        return whole + low
    for factor, first, _ in _splits(rest, divisor, extents):
        return whole + divide(first, divisor // factor, extents)
    if len(rest.terms) == 1 and rest.const == 0:
        term, coeff = rest.terms[0]
        if isinstance(term, FloorDiv) and coeff == 1:
            return whole + divide(term.index, term.divisor * divisor, extents)
    return whole + Index(((FloorDiv(rest, divisor), 1),))


def remainder(index: Index, divisor: int, extents: Extents) -> Index:
    """`index % divisor`, simplified."""
    if divisor == 1:
        return ZERO
    rest = _split(index, divisor)[1]
    low, high = (end // divisor for end in bounds(rest, extents))
    if low == high:
        return rest + -low * divisor
    for factor, first, second in _splits(rest, divisor, extents):
        return remainder(first, divisor // factor, extents) * factor + second
    if len(rest.terms) == 1 and rest.const == 0:
        term, coeff = rest.terms[0]
        if isinstance(term, Mod) and coeff == 1 and term.divisor % divisor == 0:
            return remainder(term.index, divisor, extents)
    return Index(((Mod(rest, divisor), 1),))


def rebuild(
    index: Index, axes: Mapping[str, Index], statements: Mapping[int, int], extents: Extents
) -> Index:
    """The index with axes replaced and statements renumbered, simplified with the new `extents`."""
    parts = ((_rebuild_term(t, axes, statements, extents), coeff) for t, coeff in index.terms)
    return weighted_sum(parts, index.const)


def _rebuild_term(
    term: Term, axes: Mapping[str, Index], statements: Mapping[int, int], extents: Extents
) -> Index:
    if isinstance(term, AxisTerm):
        return axes.get(term.axis, Index(((term, 1),)))
    if isinstance(term, ValueTerm):
        moved = replace(term, statement=statements.get(term.statement, term.statement))
        return Index(((moved, 1),))
    inner = rebuild(term.index, axes, statements, extents)
    if isinstance(term, FloorDiv):
        return divide(inner, term.divisor, extents)
    return remainder(inner, term.divisor, extents)


def plain_axis(index: Index) -> str | None:
    """The axis if the index is exactly one axis, else None."""
    if index.const == 0 and len(index.terms) == 1:
        term, coeff = index.terms[0]
        if isinstance(term, AxisTerm) and coeff == 1:
            return term.axis
    return None


def linear(indices: tuple[Index, ...], shape: tuple[int, ...]) -> Index:
    """Row-major position: (i, j) in shape (3, 4) -> 4·i + j."""
    total = ZERO
    for index, extent in zip(indices, shape, strict=True):
        total = total * extent + index
    return make_index(dict(total.terms), total.const)

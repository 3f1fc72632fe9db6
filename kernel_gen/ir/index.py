"""Index expressions: integer functions of the axes of a loop nest.

An `Index` is `const + Σ coeff · term`; a term is the name of an axis, the value of an integer
statement of the nest (indirect reads: gather, embedding), or a floor division or remainder of
another index by a positive integer (reshapes that merge axes).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.types import Dim


@dataclass(frozen=True, slots=True, order=True)
class AxisTerm:
    """The loop variable of an axis."""

    axis: str


@dataclass(frozen=True, slots=True)
class ValueTerm:
    """The value of an integer statement (its position in `LoopNest.statements`).

    With `extent` it is a position in a dimension of that size, whatever the index makes of it: a
    value outside of it is an error of the program's caller.
    """

    statement: int
    extent: Dim | None = None


@dataclass(frozen=True, slots=True)
class FloorDiv:
    index: Index
    divisor: int


@dataclass(frozen=True, slots=True)
class Mod:
    index: Index
    divisor: int


Term = AxisTerm | ValueTerm | FloorDiv | Mod


@dataclass(frozen=True, slots=True)
class Index:
    """`const + Σ coeff · term`, terms unique, in canonical order, coefficients non-zero."""

    terms: tuple[tuple[Term, int], ...] = ()
    const: int = 0

    def __add__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index(self.terms, self.const + other)
        merged = dict(self.terms)
        for term, coeff in other.terms:
            merged[term] = merged.get(term, 0) + coeff
        return make_index(merged, self.const + other.const)

    def __mul__(self, factor: int) -> Index:
        return make_index({t: c * factor for t, c in self.terms}, self.const * factor)

    def axes(self) -> frozenset[str]:
        """Names of the axes that occur, inside divisions and remainders too."""
        found: set[str] = set()
        for term, _ in self.terms:
            if isinstance(term, AxisTerm):
                found.add(term.axis)
            elif isinstance(term, FloorDiv | Mod):
                found |= term.index.axes()
        return frozenset(found)

    def statements(self) -> frozenset[int]:
        """Integer statements that the index reads (indirect access)."""
        return frozenset(term.statement for term in self.values())

    def values(self) -> frozenset[ValueTerm]:
        """Terms that read a value, inside divisions and remainders too."""
        found: set[ValueTerm] = set()
        for term, _ in self.terms:
            if isinstance(term, ValueTerm):
                found.add(term)
            elif isinstance(term, FloorDiv | Mod):
                found |= term.index.values()
        return frozenset(found)

    def coeff(self, axis: str) -> int:
        """Coefficient of the plain axis term (0 if the axis occurs only inside div/mod)."""
        return dict(self.terms).get(AxisTerm(axis), 0)

    def substitute(self, replace: Mapping[str, Index]) -> Index:
        """The index with axes replaced: {j: 4·j1 + j0} in `j + 1` gives `4·j1 + j0 + 1`."""
        parts = ((_substituted(term, replace), coeff) for term, coeff in self.terms)
        return weighted_sum(parts, self.const)


def _substituted(term: Term, replace: Mapping[str, Index]) -> Index:
    if isinstance(term, AxisTerm):
        return replace.get(term.axis, Index(((term, 1),)))
    if isinstance(term, FloorDiv):
        return Index(((FloorDiv(term.index.substitute(replace), term.divisor), 1),))
    if isinstance(term, Mod):
        return Index(((Mod(term.index.substitute(replace), term.divisor), 1),))
    return Index(((term, 1),))


def axis_index(axis: str) -> Index:
    """The index that is just one axis."""
    return Index(((AxisTerm(axis), 1),))


def make_index(terms: Mapping[Term, int], const: int = 0) -> Index:
    """Canonical index from a mapping of terms to coefficients; zero coefficients vanish."""
    for term in terms:
        if isinstance(term, FloorDiv | Mod) and term.divisor <= 0:
            raise InvalidGraph(f"index divides by {term.divisor}")
    kept = [item for item in terms.items() if item[1]]
    if len(kept) > 1:
        kept.sort(key=lambda item: repr(item[0]))
    return Index(tuple(kept), const)


def weighted_sum(parts: Iterable[tuple[Index, int]], const: int) -> Index:
    """The parts times their factors, and a constant."""
    merged: dict[Term, int] = {}
    for part, factor in parts:
        const += part.const * factor
        for term, coeff in part.terms:
            merged[term] = merged.get(term, 0) + coeff * factor
    return make_index(merged, const)

"""Linear addresses of a nest: one offset in elements per access, axes collapsed where possible.

    x[i, j] of shape (4, s0)  ->  s0·i + j

Coefficients may hold symbols of the program (`Poly`), so one code path serves static and dynamic
shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import AxisTerm, FloorDiv, Index, Mod, Term, ValueTerm
from kernel_gen.ir.loopnest import (
    Axis,
    Buffer,
    Compute,
    Contract,
    Guard,
    IndexValue,
    LoopNest,
    Reduce,
    indices,
)
from kernel_gen.ir.types import Dim, Sym, TensorType

Monomial = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Poly:
    """An integer polynomial in the program's symbols: Σ factor · Π symbols."""

    terms: tuple[tuple[Monomial, int], ...] = ()

    @staticmethod
    def of(dim: Dim) -> Poly:
        """The polynomial of one dimension: 4 -> 4, Sym("s0") -> s0."""
        return _poly({(dim.name,): 1} if isinstance(dim, Sym) else {(): dim})

    def __add__(self, other: Poly) -> Poly:
        total = dict(self.terms)
        for monomial, factor in other.terms:
            total[monomial] = total.get(monomial, 0) + factor
        return _poly(total)

    def __mul__(self, other: Poly | int) -> Poly:
        if isinstance(other, int):
            return _poly({m: f * other for m, f in self.terms})
        total: dict[Monomial, int] = {}
        for m1, f1 in self.terms:
            for m2, f2 in other.terms:
                key = tuple(sorted(m1 + m2))
                total[key] = total.get(key, 0) + f1 * f2
        return _poly(total)

    @property
    def const(self) -> int | None:
        """The value if no symbol occurs, else None."""
        if not self.terms:
            return 0
        return self.terms[0][1] if len(self.terms) == 1 and not self.terms[0][0] else None

    def text(self) -> str:
        """A C expression over i64 variables named like the symbols."""
        parts = ["*".join([str(f), *m]) for m, f in self.terms]
        return "(" + " + ".join(parts) + ")" if parts else "0"


def _poly(terms: Mapping[Monomial, int]) -> Poly:
    return Poly(tuple(sorted((m, f) for m, f in terms.items() if f)))


ONE = Poly.of(1)


def product(dims: Iterable[Dim]) -> Poly:
    """Product of dimensions."""
    total = ONE
    for dim in dims:
        total = total * Poly.of(dim)
    return total


@dataclass(frozen=True, slots=True)
class Linear:
    """An offset in elements: `const + Σ coeff · term`; terms unique."""

    terms: tuple[tuple[Term, Poly], ...] = ()
    const: Poly = Poly()

    def coeff(self, axis: str) -> Poly:
        """Coefficient of the plain axis term."""
        return dict(self.terms).get(AxisTerm(axis), Poly())

    def axes(self) -> frozenset[str]:
        return frozenset().union(*(_term_axes(t) for t, _ in self.terms))

    def statements(self) -> frozenset[int]:
        return frozenset().union(*(_term_statements(t) for t, _ in self.terms))

    def is_affine_in(self, axis: str) -> bool:
        """False if the axis occurs inside a division or remainder."""
        return not any(
            isinstance(t, FloorDiv | Mod) and axis in t.index.axes() for t, _ in self.terms
        )


def _term_axes(term: Term) -> frozenset[str]:
    if isinstance(term, AxisTerm):
        return frozenset((term.axis,))
    return term.index.axes() if isinstance(term, FloorDiv | Mod) else frozenset()


def _term_statements(term: Term) -> frozenset[int]:
    if isinstance(term, ValueTerm):
        return frozenset((term.statement,))
    return term.index.statements() if isinstance(term, FloorDiv | Mod) else frozenset()


@dataclass(frozen=True, slots=True)
class FlatLoad:
    """`Load` with one linear offset.

    `values` are those that its indices and guards read.
    """

    buffer: int
    at: Linear
    dtype: DType
    guards: tuple[Guard, ...] = ()
    fill: float | int | bool = 0
    values: tuple[ValueTerm, ...] = ()


@dataclass(frozen=True, slots=True)
class FlatStore:
    """`Store` with one linear offset."""

    buffer: int
    at: Linear
    statement: int
    guards: tuple[Guard, ...] = ()


FlatStatement = FlatLoad | Compute | IndexValue | Reduce | Contract


@dataclass(frozen=True)
class FlatNest:
    """A nest with linear offsets; statements are numbered as in the nest it was made of."""

    axes: tuple[Axis, ...]
    buffers: tuple[Buffer, ...]
    statements: tuple[FlatStatement, ...]
    stores: tuple[FlatStore, ...]

    def extent(self, axis: str) -> Dim:
        return next(a.extent for a in self.axes if a.name == axis)

    def extent_text(self, axis: str) -> str:
        """C expression of an axis's extent."""
        return dim_text(self.extent(axis))

    def statement_axes(self) -> tuple[frozenset[str], ...]:
        """Axes on which each statement's value lives."""
        return self._statement_axes

    @cached_property  # all that is planned for a nest asks for them again
    def _statement_axes(self) -> tuple[frozenset[str], ...]:
        found: list[frozenset[str]] = []
        for statement in self.statements:
            live = own_axes(statement).union(*(found[used] for used in flat_operands(statement)))
            if isinstance(statement, Reduce | Contract):
                live -= set(statement.axes)
            found.append(live)
        return tuple(found)

    def symbols(self) -> tuple[str, ...]:
        """Names of the symbols that occur in extents, offsets and guards."""
        found = {a.extent.name for a in self.axes if isinstance(a.extent, Sym)}
        for access in self.accesses():
            polys = [access.at.const, *(p for _, p in access.at.terms)]
            found |= {name for p in polys for monomial, _ in p.terms for name in monomial}
            found |= {g.high.name for g in access.guards if isinstance(g.high, Sym)}
        found |= {t.extent.name for t in self._values() if isinstance(t.extent, Sym)}
        return tuple(sorted(found))

    def _values(self) -> list[ValueTerm]:
        """Values that loads and index values read."""
        positions = [s.index for s in self.statements if isinstance(s, IndexValue)]
        read = [term for index in positions for term in index.values()]
        return [*read, *(term for load in self.loads() for term in load.values)]

    def accesses(self) -> list[FlatLoad | FlatStore]:
        return [*self.loads(), *self.stores]

    def loads(self) -> list[FlatLoad]:
        return [s for s in self.statements if isinstance(s, FlatLoad)]


def dim_text(dim: Dim) -> str:
    return dim.name if isinstance(dim, Sym) else str(dim)


def own_axes(statement: FlatStatement) -> frozenset[str]:
    """Axes that the statement's own indices use."""
    match statement:
        case FlatLoad():
            return statement.at.axes().union(*(g.index.axes() for g in statement.guards))
        case IndexValue():
            return statement.index.axes()
        case _:
            return frozenset()


def flat_operands(statement: FlatStatement) -> tuple[int, ...]:
    """Earlier statements whose values a statement reads, indirect indices included."""
    match statement:
        case FlatLoad():
            # All of them: a position along a dimension of stride 0 moves nothing and is checked.
            return tuple(sorted({term.statement for term in statement.values}))
        case IndexValue():
            return tuple(sorted(statement.index.statements()))
        case Compute():
            return statement.args
        case Reduce():
            return (statement.arg,)
        case Contract():
            return (statement.lhs, statement.rhs)


def flatten(nest: LoopNest) -> FlatNest:
    """The nest with linear offsets, same axes."""
    statements: list[FlatStatement] = []
    for s in nest.statements:
        if isinstance(s, Compute | IndexValue | Reduce | Contract):
            statements.append(s)
        else:
            kind = nest.buffers[s.buffer].type
            read = frozenset[ValueTerm]().union(*(index.values() for index in indices(s)))
            values = tuple(sorted(read, key=repr))
            at = linearise(kind, s.index)
            statements.append(FlatLoad(s.buffer, at, s.dtype, s.guards, s.fill, values))
    stores = tuple(
        FlatStore(s.buffer, linearise(nest.buffers[s.buffer].type, s.index), s.statement, s.guards)
        for s in nest.stores
    )
    return FlatNest(nest.axes, nest.buffers, tuple(statements), stores)


def linearise(kind: TensorType, index: tuple[Index, ...]) -> Linear:
    """The offset of `index` in a tensor: Σ index_k · stride_k."""
    total: dict[Term, Poly] = {}
    const = Poly()
    for part, stride in zip(index, _strides(kind), strict=True):
        const = const + stride * part.const
        for term, coeff in part.terms:
            total[term] = total.get(term, Poly()) + stride * coeff
    kept = sorted(((t, p) for t, p in total.items() if p.terms), key=lambda item: repr(item[0]))
    return Linear(tuple(kept), const)


@lru_cache(maxsize=4096)  # the tensors of a program are addressed in each of its candidates
def _strides(kind: TensorType) -> tuple[Poly, ...]:
    if kind.strides is not None:
        return tuple(Poly.of(s) for s in kind.strides)
    dims = [max(d, 1) if isinstance(d, int) else d for d in kind.shape]  # as contiguous_strides
    return tuple(product(dims[k + 1 :]) for k in range(kind.rank))

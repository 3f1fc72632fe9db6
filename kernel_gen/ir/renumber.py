"""A nest's statements at other numbers: `place[n]` is where statement `n` stands now.

0 load   1 exp 0        place {0: 0, 1: 2}: 0 load   1 neg 0   2 exp 0
store out[i0] = 1                                              store out[i0] = 2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import overload

from kernel_gen.ir.index import FloorDiv, Index, Mod, Term, ValueTerm, make_index
from kernel_gen.ir.loopnest import (
    Compute,
    Contract,
    Guard,
    IndexValue,
    Load,
    Reduce,
    Statement,
    Store,
)


@overload
def renumbered(statement: Load, place: Mapping[int, int]) -> Load: ...
@overload
def renumbered(
    statement: Compute | IndexValue | Reduce | Contract, place: Mapping[int, int]
) -> Compute | IndexValue | Reduce | Contract: ...
def renumbered(statement: Statement, place: Mapping[int, int]) -> Statement:
    """The statement with its operands, those of its indices too, where they stand now."""
    match statement:
        case Compute():
            return replace(statement, args=tuple(place[a] for a in statement.args))
        case Reduce():
            return replace(statement, arg=place[statement.arg])
        case Contract():
            return replace(statement, lhs=place[statement.lhs], rhs=place[statement.rhs])
        case IndexValue():
            return replace(statement, index=renumbered_index(statement.index, place))
        case Load():
            index = tuple(renumbered_index(i, place) for i in statement.index)
            guards = renumbered_guards(statement.guards, place)
            return replace(statement, index=index, guards=guards)


def renumbered_store(store: Store, place: Mapping[int, int]) -> Store:
    """The store of a statement where it stands now."""
    return replace(
        store,
        statement=place[store.statement],
        index=tuple(renumbered_index(i, place) for i in store.index),
        guards=renumbered_guards(store.guards, place),
    )


def renumbered_guards(guards: tuple[Guard, ...], place: Mapping[int, int]) -> tuple[Guard, ...]:
    """The guards on statements where they stand now."""
    return tuple(replace(guard, index=renumbered_index(guard.index, place)) for guard in guards)


def renumbered_index(index: Index, place: Mapping[int, int]) -> Index:
    """The index, reading statements where they stand now."""
    terms = {renumbered_term(term, place): coeff for term, coeff in index.terms}
    return make_index(terms, index.const)


def renumbered_term(term: Term, place: Mapping[int, int]) -> Term:
    """The term of an index, reading a statement where it stands now."""
    if isinstance(term, ValueTerm):
        return replace(term, statement=place[term.statement])
    if isinstance(term, FloorDiv):
        return FloorDiv(renumbered_index(term.index, place), term.divisor)
    if isinstance(term, Mod):
        return Mod(renumbered_index(term.index, place), term.divisor)
    return term

"""Statements at other numbers: everything that names one follows it."""

from __future__ import annotations

import pytest

from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import FloorDiv, Index, Mod, ValueTerm, axis_index
from kernel_gen.ir.loopnest import (
    Compute,
    Contract,
    Guard,
    IndexValue,
    Load,
    Reduce,
    Statement,
    Store,
    operands,
)
from kernel_gen.ir.renumber import renumbered, renumbered_store

READ = Index(((ValueTerm(1, 8), 2),), 3) + axis_index("i0")
NESTED = Index(((FloorDiv(READ, 2), 1),)) + Index(((Mod(READ, 5), 1),))
STATEMENTS: tuple[Statement, ...] = (
    Compute("add", (0, 1), DType.F32),
    Reduce("sum", 1, ("i0",), DType.F32),
    Contract(0, 1, ("i0",), DType.F32),
    IndexValue(NESTED),
    Load(0, (READ, NESTED), DType.F32, (Guard(READ, 0, 8),), 1.0),
)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda s: type(s).__name__)
def test_all_operands_follow(statement: Statement) -> None:
    place = {0: 4, 1: 7}
    moved = renumbered(statement, place)
    assert operands(moved) == tuple(place[n] for n in operands(statement))
    assert renumbered(moved, {new: old for old, new in place.items()}) == statement


def test_a_stores_guards_follow() -> None:
    store = Store(2, (READ,), 1, (Guard(NESTED, 0, 8),))
    moved = renumbered_store(store, {1: 7})
    assert moved.statement == 7
    assert {n for i in (*moved.index, moved.guards[0].index) for n in i.statements()} == {7}

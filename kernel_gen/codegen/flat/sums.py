"""Sums that are only added to each other become one sum.

    2 reduce sum 0 over r
    3 reduce sum 1 over r              3 compute add 0 1
    4 compute add 2 3            ->    4 reduce sum 3 over r

A row of pieces side by side, summed, is such a chain: one accumulator and one fold of its lanes
instead of one for each piece.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from kernel_gen.codegen.flat.linear import FlatNest, FlatStatement, flat_operands
from kernel_gen.codegen.flat.phases import closure, store_operands
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.loopnest import Compute, Reduce


def joined_sums(nest: FlatNest) -> FlatNest:
    """The nest with sums of the same rows over the same axes joined, if nothing else reads them."""
    statements, live = list(nest.statements), nest.statement_axes()
    uses = Counter(operand for s in statements for operand in flat_operands(s))
    uses.update(operand for store in nest.stores for operand in store_operands(store))
    for number, statement in enumerate(nest.statements):
        if not isinstance(statement, Compute) or statement.op != "add":
            continue
        one, other = (statements[arg] for arg in statement.args)
        alone = all(uses[arg] == 1 for arg in statement.args)
        alike = len({live[arg] for arg in statement.args}) == 1
        if alone and alike and _joins(statements, statement, one, other):
            assert isinstance(one, Reduce)
            assert isinstance(other, Reduce)
            later = max(statement.args)
            statements[later] = Compute("add", (one.arg, other.arg), statement.dtype)
            statements[number] = replace(one, arg=later)
    joined = replace(nest, statements=tuple(statements))
    return nest if joined == nest else without_idle_sums(joined)


def _joins(
    statements: list[FlatStatement], add: Compute, one: FlatStatement, other: FlatStatement
) -> bool:
    """Whether both are sums over the same axes, of values that an addition leaves in their type."""
    if not isinstance(one, Reduce) or not isinstance(other, Reduce):
        return False
    kinds = {add.dtype, *(s.dtype for r in (one, other) for s in (r, statements[r.arg]))}
    same = one.op == other.op == "sum" and one.axes == other.axes
    return same and kinds == {add.dtype.compute}


def without_idle_sums(nest: FlatNest) -> FlatNest:
    """Sums that nothing reads any more are not made; numbers of the others stay as they are."""
    roots = [s for store in nest.stores for s in store_operands(store)]
    needed = closure(nest, roots, frozenset())

    def kept(number: int, statement: FlatStatement) -> FlatStatement:
        if number in needed or not isinstance(statement, Reduce):
            return statement
        return Compute("const", (), statement.dtype, attrs(value=0))

    return replace(nest, statements=tuple(kept(n, s) for n, s in enumerate(nest.statements)))

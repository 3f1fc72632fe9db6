"""The exponential of a log-softmax is the softmax.

    0 x   1 reduce amax 0   2 sub 0 1   3 exp 2   4 reduce sum 3
    5 log 4   6 sub 2 5   7 exp 6             ->             7 div 3 4

A loss and its gradient take one exponential of each element instead of two, and the difference from
the logarithm, whose rounding grows with its size, is not taken. With the row's largest element
taken off, no exponential is above 1 and their sum is at least 1 or NaN, so that neither form
overflows where the other does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kernel_gen.codegen.flat.linear import FlatNest, FlatStatement
from kernel_gen.ir.loopnest import Compute, Reduce


def shared_exponentials(nest: FlatNest) -> FlatNest:
    """The nest with exponentials of log-softmaxes as quotients of those that their sums take."""
    statements = list(nest.statements)
    for number, statement in enumerate(nest.statements):
        parts = _quotient(nest.statements, statement)
        if parts is not None:
            statements[number] = Compute("div", parts, statement.dtype)
    return replace(nest, statements=tuple(statements))


def _quotient(
    statements: Sequence[FlatStatement], statement: FlatStatement
) -> tuple[int, int] | None:
    """(exponential, sum) whose quotient `statement` is, all of one type."""
    difference = _operands(statements, statement, "exp")
    if difference is None or (terms := _of(statements, difference[0], "sub")) is None:
        return None
    shifted, logarithm = terms
    if (total := _of(statements, logarithm, "log")) is None:
        return None
    reduced = statements[total[0]]
    if not isinstance(reduced, Reduce) or reduced.op != "sum":
        return None
    if _of(statements, reduced.arg, "exp") != (shifted,):
        return None
    below = _of(statements, shifted, "sub")
    if below is None or not _is_largest(statements[below[1]], below[0], reduced):
        return None
    read = (*difference, *terms, *total, reduced.arg, *below)
    alike = {statement.dtype, *(statements[s].dtype for s in read)} == {statement.dtype}
    return (reduced.arg, total[0]) if alike else None


def _is_largest(statement: FlatStatement, of: int, beside: Reduce) -> bool:
    """Whether a statement is the largest element `of` the rows that another one sums."""
    if not isinstance(statement, Reduce):
        return False
    return statement.op == "amax" and statement.arg == of and statement.axes == beside.axes


def _of(statements: Sequence[FlatStatement], number: int, op: str) -> tuple[int, ...] | None:
    return _operands(statements, statements[number], op)


def _operands(
    statements: Sequence[FlatStatement], statement: FlatStatement, op: str
) -> tuple[int, ...] | None:
    """The operands of a statement that computes `op`."""
    known = isinstance(statement, Compute) and statement.op == op
    return statement.args if known and isinstance(statement, Compute) else None

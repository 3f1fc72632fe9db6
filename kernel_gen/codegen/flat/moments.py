"""Variances in one pass over their data.

    1 reduce sum 0 over r              1 reduce sum 0 over r
    3 compute div 1 n                  3 compute div 1 n
    4 compute sub 0 3            ->    4 compute sub 0 3
    5 compute mul 4 4
    6 reduce sum 5 over r              6 reduce moment 0 over r

A *moment* is Σ (x - mean of x)², whose accumulator finds the mean itself
(`kernel_gen.codegen.cpu.reductions.moment`): nothing waits for the sum, and the data are read once.
"""

from __future__ import annotations

import math
from dataclasses import replace

from kernel_gen.codegen.flat.linear import FlatNest, FlatStatement
from kernel_gen.codegen.flat.phases import closure, store_operands
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.loopnest import Compute, Reduce

MOMENT = "moment"


def one_pass(nest: FlatNest) -> FlatNest:
    """The nest with each sum of squared deviations as a moment; itself where it has none."""
    found = {n: m for n in range(len(nest.statements)) if (m := _moment(nest, n)) is not None}
    if not found:
        return nest
    changed = tuple(found.get(n, s) for n, s in enumerate(nest.statements))
    return _without_idle_sums(replace(nest, statements=changed))


def has_moments(nest: FlatNest) -> bool:
    """Whether the nest sums squared deviations from a mean."""
    return any(_moment(nest, n) is not None for n in range(len(nest.statements)))


def _moment(nest: FlatNest, number: int) -> Reduce | None:
    """What statement `number` is in one pass, if it is Σ (x - Σ x / n)² over the same elements."""
    total = nest.statements[number]
    if not isinstance(total, Reduce) or total.op != "sum":
        return None
    if not total.dtype.is_float or total.dtype.compute is not total.dtype:
        return None  # a narrow type is rounded to after each step
    square = _computed(nest, total.arg, "mul")
    if square is None or square.args[0] != square.args[1]:
        return None
    centred = _computed(nest, square.args[0], "sub")
    if centred is None or not _is_mean(nest, centred.args[1], centred.args[0], total):
        return None
    if any(nest.statements[s].dtype is not total.dtype for s in (total.arg, *centred.args)):
        return None
    return replace(total, op=MOMENT, arg=centred.args[0])


def _is_mean(nest: FlatNest, number: int, of: int, over: Reduce) -> bool:
    """Whether a statement is the mean of statement `of` over the axes of `over`."""
    quotient = _computed(nest, number, "div")
    if quotient is None:
        return False
    total, count = (nest.statements[arg] for arg in quotient.args)
    extents = [nest.extent(axis) for axis in over.axes]
    if not isinstance(total, Reduce) or (total.op, total.arg) != ("sum", of):
        return False
    if not isinstance(count, Compute) or count.op != "const" or set(total.axes) != set(over.axes):
        return False
    known = [extent for extent in extents if isinstance(extent, int)]
    return len(known) == len(extents) and dict(count.attrs)["value"] == math.prod(known)


def _computed(nest: FlatNest, number: int, op: str) -> Compute | None:
    statement = nest.statements[number]
    return statement if isinstance(statement, Compute) and statement.op == op else None


def _without_idle_sums(nest: FlatNest) -> FlatNest:
    """Sums that nothing reads any more are not made; numbers of the others stay as they are."""
    roots = [s for store in nest.stores for s in store_operands(store)]
    needed = closure(nest, roots, frozenset())

    def kept(number: int, statement: FlatStatement) -> FlatStatement:
        if number in needed or not isinstance(statement, Reduce):
            return statement
        return Compute("const", (), statement.dtype, attrs(value=0))

    return replace(nest, statements=tuple(kept(n, s) for n, s in enumerate(nest.statements)))

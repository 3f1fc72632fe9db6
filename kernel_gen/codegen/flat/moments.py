"""Variances in one pass over their data.

    1 reduce sum 0 over r              1 reduce sum 0 over r
    3 compute div 1 n                  3 compute div 1 n
    4 compute sub 0 3            ->    4 compute sub 0 3
    5 compute mul 4 4
    6 reduce sum 5 over r              6 reduce moment 0 over r

A *moment* is Σ (x - mean of x)², whose accumulator finds the mean itself
(`kernel_gen.codegen.cpu.reductions.moment`): nothing waits for the sum, and the data are read once.
Where two passes take off what the mean's own rounding adds, the moment is there in place of the
difference:

    7 reduce sum 4 over r
    8 compute div 7 3
    9 compute mul 7 8
   10 compute const most
   11 compute minimum 9 10
   12 compute sub 6 11          ->    12 reduce moment 0 over r
"""

from __future__ import annotations

import math
from dataclasses import replace

from kernel_gen.codegen.flat.linear import FlatNest
from kernel_gen.codegen.flat.sums import without_idle_sums
from kernel_gen.ir.loopnest import Compute, Reduce

MOMENT = "moment"
_LARGE = 1e30  # keeps nothing but an infinity from being taken off


def one_pass(nest: FlatNest) -> FlatNest:
    """The nest with each sum of squared deviations as a moment; itself where it has none."""
    found = {n: m for n in range(len(nest.statements)) if (m := _moment(nest, n)) is not None}
    if not found:
        return nest
    changed = tuple(found.get(n, s) for n, s in enumerate(nest.statements))
    return without_idle_sums(replace(nest, statements=changed))


def has_moments(nest: FlatNest) -> bool:
    """Whether the nest sums squared deviations from a mean."""
    return any(_moment(nest, n) is not None for n in range(len(nest.statements)))


def _moment(nest: FlatNest, number: int) -> Reduce | None:
    """What statement `number` is in one pass, if it is Σ (x - Σ x / n)², corrected or not."""
    statement = nest.statements[number]
    if isinstance(statement, Reduce):
        return _of_squares(nest, statement)
    difference = _computed(nest, number, "sub")
    total = nest.statements[difference.args[0]] if difference is not None else None
    if difference is None or not isinstance(total, Reduce):
        return None
    return _of_squares(nest, total) if _is_excess(nest, difference.args[1], total) else None


def _of_squares(nest: FlatNest, total: Reduce) -> Reduce | None:
    """The moment that a sum is, if it is one of squares of deviations from their mean."""
    if total.op != "sum" or not total.dtype.is_float or total.dtype.compute is not total.dtype:
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


def _is_excess(nest: FlatNest, number: int, total: Reduce) -> bool:
    """Whether a statement is (Σ d)² / n, kept below a large number, beside a `total` of d²."""
    finite, square = _computed(nest, number, "minimum"), _computed(nest, total.arg, "mul")
    if finite is None or square is None:
        return False
    product, limit = _computed(nest, finite.args[0], "mul"), nest.statements[finite.args[1]]
    if product is None or not isinstance(limit, Compute) or not _is_large(limit):
        return False
    rest, mean = product.args
    quotient = _computed(nest, mean, "div")
    same = quotient is not None and quotient.args[0] == rest
    return same and _is_mean(nest, mean, square.args[0], total)


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


def _is_large(limit: Compute) -> bool:
    value = dict(limit.attrs).get("value")
    return limit.op == "const" and isinstance(value, int | float) and value >= _LARGE


def _computed(nest: FlatNest, number: int, op: str) -> Compute | None:
    statement = nest.statements[number]
    return statement if isinstance(statement, Compute) and statement.op == op else None

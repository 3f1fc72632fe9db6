"""Between which integers the values of a nest lie, as far as its text tells.

The vector unit computes integers in 32 bits. Positions, counts and what is converted from narrower
types are 64-bit integers for the program and small all the same; for loads nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from kernel_gen.codegen.flat.linear import FlatNest, FlatStatement
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import AxisTerm, FloorDiv, Index, Term, ValueTerm
from kernel_gen.ir.loopnest import Compute, IndexValue, Reduce
from kernel_gen.ir.types import Dim

_MOST_SYMBOLIC = 2**30
"""Extents that a symbol stands for: a longer axis, of floats, does not fit a chip's memory beside
its result."""


class Range(NamedTuple):
    """From `low` to `high`, both included."""

    low: int
    high: int

    def fits(self, dtype: DType) -> bool:
        """Whether all values are of a type."""
        limits = range_of(dtype)
        return limits.low <= self.low and self.high <= limits.high


def range_of(dtype: DType) -> Range:
    """All values of an integer type; those of floats when they become 64-bit integers."""
    if dtype is DType.BOOL:
        return Range(0, 1)
    bits = 64 if dtype.is_float else 8 * dtype.bytes
    if dtype is DType.U8:
        return Range(0, 2**bits - 1)
    return Range(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def ranges_of(nest: FlatNest) -> tuple[Range, ...]:
    """The range of each statement; its type's where results wrap. Positions are as they are, and
    may be beyond their type."""
    found: list[Range] = []
    for statement in nest.statements:
        made = _range(nest, statement, found)
        exact = isinstance(statement, IndexValue) or made.fits(statement.dtype)
        found.append(made if exact else range_of(statement.dtype))
    return tuple(found)


def _range(nest: FlatNest, statement: FlatStatement, found: Sequence[Range]) -> Range:
    limits = range_of(statement.dtype)
    if statement.dtype.is_float:
        return limits
    match statement:
        case IndexValue():
            return _of_index(nest, statement.index, found)
        case Reduce():
            return _reduced(nest, statement, found[statement.arg])
        case Compute(op="const"):
            value = dict(statement.attrs)["value"]
            assert isinstance(value, int | float | bool)
            return Range(int(value), int(value))
        case Compute():
            made = _computed(statement.op, [found[a] for a in statement.args])
            return made or limits
    return limits


def _reduced(nest: FlatNest, reduce: Reduce, arg: Range) -> Range:
    if reduce.op in ("amax", "amin"):
        return arg
    extents = [nest.extent(axis) for axis in reduce.axes]
    count = math.prod(e if isinstance(e, int) else _MOST_SYMBOLIC for e in extents)
    if reduce.op == "sum":
        return Range(min(0, count * arg.low), max(0, count * arg.high))
    return range_of(reduce.dtype)


def _computed(op: str, args: Sequence[Range]) -> Range | None:
    """The range of an op's results before they wrap; None where nothing is known."""
    match op, args:
        case "cast" | "floor" | "ceil" | "round" | "trunc", [a]:
            return a
        case "neg", [a]:
            return Range(-a.high, -a.low)
        case "abs", [a]:
            return Range(0, max(-a.low, a.high, 0))
        case "relu", [a]:
            return Range(max(a.low, 0), max(a.high, 0))
        case "add", [a, b]:
            return Range(a.low + b.low, a.high + b.high)
        case "sub", [a, b]:
            return Range(a.low - b.high, a.high - b.low)
        case "mul", [a, b]:
            corners = [x * y for x in a for y in b]
            return Range(min(corners), max(corners))
        case "maximum", [a, b]:
            return Range(max(a.low, b.low), max(a.high, b.high))
        case "minimum", [a, b]:
            return Range(min(a.low, b.low), min(a.high, b.high))
        case "where", [_, a, b]:
            return Range(min(a.low, b.low), max(a.high, b.high))
    return None


def _of_index(nest: FlatNest, index: Index, found: Sequence[Range]) -> Range:
    low = high = index.const
    for term, coeff in index.terms:
        part = _of_term(nest, term, found)
        ends = coeff * part.low, coeff * part.high
        low, high = low + min(ends), high + max(ends)
    return Range(low, high)


def _of_term(nest: FlatNest, term: Term, found: Sequence[Range]) -> Range:
    match term:
        case AxisTerm():
            return Range(0, _most(nest.extent(term.axis)) - 1)
        case ValueTerm():
            known = found[term.statement]
            return known if term.extent is None else Range(0, _most(term.extent) - 1)
        case FloorDiv():
            part = _of_index(nest, term.index, found)
            return Range(part.low // term.divisor, part.high // term.divisor)
    return Range(0, term.divisor - 1)


def _most(extent: Dim) -> int:
    return extent if isinstance(extent, int) else _MOST_SYMBOLIC

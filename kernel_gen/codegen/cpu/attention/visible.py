"""Which keys a row may see, where the scores say so by positions alone.

    scores = where(key <= query + 3, x, -inf)      row i sees the keys below i + 4
    scores = where(key > query - 256, x, -inf)     row i sees the keys from i - 255 on

Keys that no row of a block may see weigh nothing, so their blocks are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernel_gen.codegen.flat.linear import FlatNest
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import Index, axis_index
from kernel_gen.ir.loopnest import Compute, IndexValue

_SMALLER = {"le": 1, "lt": 0}  # what is added to the right side to make it an exclusive end
_MIRRORED = {"ge": "le", "gt": "lt"}
_NEGATED = {"ge": "lt", "gt": "le", "le": "gt", "lt": "ge"}
_LARGEST = 1 << 31
_NOT = ("logical_not", "bitwise_not")
_BOTH = {False: ("logical_and", "bitwise_and"), True: ("logical_or", "bitwise_or")}
"""Ops of two conditions that both hold where theirs does, or does not if negated."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A row sees keys below `at`, or if `begins` from it on: an index over batch and rows."""

    at: Index
    begins: bool = False


def limits(nest: FlatNest, scores: int, keys: str) -> tuple[Limit, ...]:
    """All bounds that follow from the condition under which a score is not -inf."""
    masked = nest.statements[scores]
    if not isinstance(masked, Compute) or masked.op != "where":
        return ()
    condition, *branches = masked.args
    hidden = [constant(nest, branch) == -math.inf for branch in branches]
    if sum(hidden) != 1:
        return ()
    return tuple(_bounds(nest, condition, keys, negated=hidden[0]))


def _bounds(nest: FlatNest, condition: int, keys: str, *, negated: bool) -> list[Limit]:
    """Bounds where the condition holds, or where it does not if `negated`."""
    statement = nest.statements[condition]
    if not isinstance(statement, Compute):
        return []
    if statement.op in _NOT:
        return _bounds(nest, statement.args[0], keys, negated=not negated)
    if statement.op in _BOTH[negated]:
        both = (_bounds(nest, arg, keys, negated=negated) for arg in statement.args)
        return [limit for bounds in both for limit in bounds]
    return _compared(nest, statement, keys, negated=negated)


def _compared(nest: FlatNest, statement: Compute, keys: str, *, negated: bool) -> list[Limit]:
    if statement.op not in _NEGATED:
        return []
    op = _NEGATED[statement.op] if negated else statement.op
    low, high = statement.args
    if op in _MIRRORED:
        op, low, high = _MIRRORED[op], high, low
    left, right = _position(nest, low), _position(nest, high)
    if left is None or right is None:
        return []
    return _limit(left, right + _SMALLER[op], keys)


def _position(nest: FlatNest, number: int) -> Index | None:
    """An integer that positions alone make up."""
    statement = nest.statements[number]
    if isinstance(statement, IndexValue):
        return statement.index
    if not isinstance(statement, Compute) or statement.dtype is not DType.I64:
        return None
    if statement.op == "const":
        value = constant(nest, number)
        small = value is not None and abs(value) <= _LARGEST  # nothing wraps in 64 bits
        return Index(const=int(value)) if value is not None and small else None
    if statement.op not in ("add", "sub"):
        return None
    left, right = (_position(nest, arg) for arg in statement.args)
    if left is None or right is None:
        return None
    return left + (right if statement.op == "add" else right * -1)


def constant(nest: FlatNest, position: int) -> float | None:
    """The number that a statement is, None if it is none."""
    statement = nest.statements[position]
    if not isinstance(statement, Compute) or statement.op != "const":
        return None
    value = dict(statement.attrs)["value"]
    return float(value) if isinstance(value, bool | int | float) else None


def _limit(left: Index, right: Index, keys: str) -> list[Limit]:
    """key + rest < right  ->  key < right - rest;  left < key + rest  ->  key >= left - rest + 1"""
    begins = keys in right.axes()
    side, other = (right, left) if begins else (left, right)
    rest = side + axis_index(keys) * -1
    if keys in rest.axes() or keys in other.axes() or rest.statements() or other.statements():
        return []
    return [Limit(other + rest * -1 + int(begins), begins)]

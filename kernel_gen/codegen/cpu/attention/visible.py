"""Which keys a row may see, where the scores say so by positions alone.

    scores = where(key <= query + 3, x, -inf)      row i sees the keys below i + 4

Keys behind the last one that a block of rows may see weigh nothing, so their blocks are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernel_gen.codegen.flat.linear import FlatNest
from kernel_gen.ir.index import Index, axis_index
from kernel_gen.ir.loopnest import Compute, IndexValue

_SMALLER = {"le": 1, "lt": 0}  # what is added to the right side to make it an exclusive end
_MIRRORED = {"ge": "le", "gt": "lt"}


@dataclass(frozen=True, slots=True)
class Limit:
    """A row sees keys below `end`, an index over axes of batch and rows."""

    end: Index


def limits(nest: FlatNest, scores: int, keys: str) -> tuple[Limit, ...]:
    """All bounds that follow from the condition under which a score is not -inf."""
    masked = nest.statements[scores]
    if not isinstance(masked, Compute) or masked.op != "where":
        return ()
    otherwise = nest.statements[masked.args[2]]
    if not isinstance(otherwise, Compute) or dict(otherwise.attrs).get("value") != -math.inf:
        return ()
    return tuple(_bounds(nest, masked.args[0], keys))


def _bounds(nest: FlatNest, condition: int, keys: str) -> list[Limit]:
    statement = nest.statements[condition]
    if not isinstance(statement, Compute) or len(statement.args) != 2:
        return []
    if statement.op in ("logical_and", "bitwise_and"):
        return [limit for arg in statement.args for limit in _bounds(nest, arg, keys)]
    op, (low, high) = statement.op, statement.args
    if op in _MIRRORED:
        op, low, high = _MIRRORED[op], high, low
    left, right = nest.statements[low], nest.statements[high]
    if op not in _SMALLER or not isinstance(left, IndexValue) or not isinstance(right, IndexValue):
        return []
    return _limit(left.index, right.index + _SMALLER[op], keys)


def _limit(left: Index, right: Index, keys: str) -> list[Limit]:
    """key + rest < right  ->  key < right - rest."""
    rest = left + axis_index(keys) * -1
    if keys in rest.axes() or keys in right.axes() or rest.statements() or right.statements():
        return []
    return [Limit(right + rest * -1)]

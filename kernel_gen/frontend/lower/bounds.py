"""How small and how large the integers of a tensor can be, from the ops that made it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernel_gen.frontend.lower.core import Lowering, Val
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.call import Call
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.types import Dim

_MOVES = ("reshape", "expand", "permute", "slice", "cast")
_ANY = -(2**63)


@dataclass(frozen=True, slots=True)
class Bounds:
    """All elements lie in [low, high], though none need lie near either."""

    low: int
    high: int

    def within(self, other: Bounds) -> bool:
        return other.low <= self.low and self.high <= other.high


def bounds_of(c: Lowering, value: Val) -> Bounds:
    """Bounds of a tensor of integers or bools; where nothing more is known, those of its type."""
    return _bounds(c, value, {})


def _bounds(c: Lowering, value: Val, known: dict[int, Bounds]) -> Bounds:
    """`known`: those of tensors looked at already, by id; what many ops read is looked at once."""
    if value.dtype is DType.BOOL:
        return Bounds(0, 1)
    if value.id not in known:
        numbers = np.iinfo(numpy_dtype(value.dtype).name)
        limits, found = Bounds(int(numbers.min), int(numbers.max)), _made_bounds(c, value, known)
        known[value.id] = found if found and found.within(limits) else limits  # else it may wrap
    return known[value.id]


def _made_bounds(c: Lowering, value: Val, known: dict[int, Bounds]) -> Bounds | None:
    """What the op behind a value says of it; None where that is nothing."""
    made = c.made(value)
    if made is None:
        return None
    op, operands, attrs = made
    call = Call(op, tuple(operand.type for operand in operands), attrs)
    match op:
        case "full":
            return _hull(call.integer("value", _ANY))
        case "iota":
            start, steps = call.integer("start", _ANY), _last(c, value.shape[call.integer("dim")])
            return _hull(start, start + call.integer("step", _ANY) * steps)
        case "argtopk":
            return Bounds(0, _last(c, call.x.shape[call.dim("dim")]))
        case "argmax" | "argmin":
            return Bounds(0, math.prod(_last(c, call.x.shape[d]) + 1 for d in call.dims()) - 1)
    if op not in ("add", "mul", *_MOVES) or any(o.dtype.is_float for o in operands):
        return None
    return _computed(op, [_bounds(c, operand, known) for operand in operands])


def _last(c: Lowering, extent: Dim) -> int:
    """The last position along an extent, where it is as large as it can be."""
    return max(c.builder.largest(extent) - 1, 0)


def _computed(op: str, operands: list[Bounds]) -> Bounds:
    first, last = operands[0], operands[-1]
    if op == "add":
        return Bounds(first.low + last.low, first.high + last.high)
    if op == "mul":
        return _hull(*(a * b for a in (first.low, first.high) for b in (last.low, last.high)))
    return first


def _hull(*numbers: int) -> Bounds:
    return Bounds(min(numbers), max(numbers))

"""Expansions of topk: the extreme of what is left, again and again.

topk(x, k=2, dim=1) -> v0, p0 = amax(x), argmax(x)
                       rest = where(iota == p0, lowest, x)
                       v1, p1 = amax(rest), argmax(rest);  concat(v0, v1)

Of equal elements the first comes first, and NaN before all numbers. Where only lowest elements are
left, `argmax` cannot tell them from those that were taken: the first that was not comes next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernel_gen.ir.call import Call
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.emitter import Emitter

Operands = tuple[int, ...]


def expand_topk(e: Emitter, call: Call, operands: Operands) -> int:
    """The k largest elements along `dim`, the largest first."""
    values, _ = _Selection.of(e, call, operands[0]).take()
    return e.cast(e.op("concat", *values, dim=call.dim("dim")), call.x.dtype)


def expand_argtopk(e: Emitter, call: Call, operands: Operands) -> int:
    """Their positions (i64)."""
    _, positions = _Selection.of(e, call, operands[0]).take()
    return e.op("concat", *positions, dim=call.dim("dim"))


@dataclass(frozen=True, slots=True)
class _Selection:
    """Elements `x` with their positions along `dim`, of which `count` are taken."""

    e: Emitter
    x: int
    dim: int
    count: int
    places: int

    @staticmethod
    def of(e: Emitter, call: Call, x: int) -> _Selection:
        dim = call.dim("dim")
        shape = tuple(n if d == dim else 1 for d, n in enumerate(call.x.shape))
        places = e.op("iota", shape=shape, dtype=str(DType.I64), dim=dim, start=0, step=1)
        return _Selection(e, e.widen(x), dim, call.integer("k", 1), places)

    def take(self) -> tuple[list[int], list[int]]:
        """Values and positions, each with extent 1 along `dim`."""
        e = self.e
        values: list[int] = []
        positions: list[int] = []
        taken: int | None = None
        for _ in range(self.count):
            left = self.x if taken is None else e.op("where", taken, self._lowest(), self.x)
            values.append(self._reduced("amax", left))
            place = self._reduced("argmax", left)
            if taken is not None:
                place = e.op("where", self._is_lowest(values[-1]), self._first_left(taken), place)
            positions.append(place)
            hit = e.op("eq", self.places, place)
            taken = hit if taken is None else e.op("logical_or", taken, hit)
        return values, positions

    def _reduced(self, op: str, value: int) -> int:
        return self.e.op(op, value, dims=(self.dim,), keepdim=True)

    def _lowest(self) -> int:
        dtype = self.e.type(self.x).dtype
        least = 0 if dtype is DType.U8 else -(1 << (8 * dtype.bytes - 1))
        return self.e.scalar(-math.inf if dtype.is_float else least, self.x)

    def _is_lowest(self, value: int) -> int:
        """Not by a comparison of floats, whose result checks hold to be unsure near equality."""
        if not self.e.type(value).dtype.is_float:
            return self.e.op("eq", value, self._lowest())
        return self.e.op("isinf", self.e.with_scalar("minimum", value, 0.0))

    def _first_left(self, taken: int) -> int:
        left = self.e.cast(self.e.op("logical_not", taken), DType.F32)
        return self._reduced("argmax", left)

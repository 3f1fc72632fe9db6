"""Reductions that the vector unit lacks, in terms of sum, prod, amax and amin of numbers.

    argmax v over r      m = amax v;  amin where(v == m or v != v, r, 2³¹-1)
    any v                amax of v as fp32, != 0
    amax v (floats)      where(amax where(v == v, 0, 1) > 0, NaN, amax where(v == v, v, -inf))

The last one says what happens to NaN, as the instructions do not; it is left out where a NaN
reaches every output anyway (softmax: the sum of the exponentials).
"""

from __future__ import annotations

from dataclasses import replace

from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.index import Index, axis_index
from kernel_gen.ir.loopnest import Compute, IndexValue, LoopNest, Reduce, Statement, operands
from kernel_gen.ir.renumber import renumbered, renumbered_store

_STRICT = {
    "add", "sub", "mul", "div", "exp", "neg", "abs", "sqrt", "rsqrt", "log", "tanh", "sigmoid",
    "erf", "reciprocal",
}  # fmt: skip
"""Ops whose result is NaN where an operand is."""


def without_special_reductions(nest: LoopNest) -> LoopNest:
    """The nest with plain reductions only."""
    return _Rewrite(nest).run()


class _Rewrite:
    def __init__(self, nest: LoopNest) -> None:
        self._nest = nest
        self._made: list[Statement] = []
        self._place: dict[int, int] = {}

    def run(self) -> LoopNest:
        for number, statement in enumerate(self._nest.statements):
            made = renumbered(statement, self._place)
            self._place[number] = (
                self._reduce(number, made) if isinstance(made, Reduce) else self._add(made)
            )
        stores = tuple(renumbered_store(store, self._place) for store in self._nest.stores)
        return replace(self._nest, statements=tuple(self._made), stores=stores)

    def _add(self, statement: Statement) -> int:
        self._made.append(statement)
        return len(self._made) - 1

    def _compute(self, op: str, args: tuple[int, ...], dtype: DType) -> int:
        attributes = attrs(dtype=dtype) if op == "cast" else ()
        return self._add(Compute(op, args, dtype, attributes))

    def _const(self, value: float, dtype: DType) -> int:
        return self._add(Compute("const", (), dtype, attrs(value=value)))

    def _reduce(self, number: int, r: Reduce) -> int:
        dtype = self._made[r.arg].dtype
        if r.op in ("argmax", "argmin"):
            return self._position(r, dtype)
        if r.op in ("any", "all") or dtype is DType.BOOL:
            op = {"any": "amax", "all": "amin", "sum": "amax", "prod": "amin"}.get(r.op, r.op)
            as_float = self._compute("cast", (r.arg,), DType.F32)
            made = self._add(Reduce(op, as_float, r.axes, DType.F32))
            return self._compute("cast", (made,), r.dtype)
        if r.op in ("amax", "amin") and dtype.is_float and not self._shows_anyway(number):
            return self._extreme(r, dtype)
        return self._add(r)

    def _extreme(self, r: Reduce, dtype: DType) -> int:
        worst = float("-inf") if r.op == "amax" else float("inf")
        plain = self._compute("eq", (r.arg, r.arg), DType.BOOL)
        clean = self._compute("where", (plain, r.arg, self._const(worst, dtype)), dtype)
        odd = self._compute(
            "where", (plain, self._const(0.0, dtype), self._const(1.0, dtype)), dtype
        )
        best = self._add(Reduce(r.op, clean, r.axes, r.dtype))
        any_odd = self._add(Reduce("amax", odd, r.axes, dtype))
        fine = self._compute("eq", (any_odd, self._const(0.0, dtype)), DType.BOOL)
        return self._compute("where", (fine, best, self._const(float("nan"), dtype)), r.dtype)

    def _position(self, r: Reduce, dtype: DType) -> int:
        best = self._add(Reduce("amax" if r.op == "argmax" else "amin", r.arg, r.axes, dtype))
        hit = self._compute("eq", (r.arg, best), DType.BOOL)
        if dtype.is_float:
            odd = self._compute("isnan", (r.arg,), DType.BOOL)
            hit = self._compute("logical_or", (hit, odd), DType.BOOL)
        index = Index()
        for name in r.axes:
            extent = self._nest.axis(name).extent
            index = index * (extent if isinstance(extent, int) else 1) + axis_index(name)
        at = self._add(IndexValue(index, DType.I32))
        position = self._compute("where", (hit, at, self._const(2**31 - 1, DType.I32)), DType.I32)
        least = self._add(Reduce("amin", position, r.axes, DType.I32))
        return self._compute("cast", (least,), r.dtype)

    def _shows_anyway(self, number: int) -> bool:
        """Whether a NaN under reduction `number` makes every value stored after it NaN: all paths
        from the reduction to a store pass a sum, over the same axes, of what is strict in the same
        operand."""
        nest = self._nest
        r = nest.statements[number]
        assert isinstance(r, Reduce)
        strict, sums, tainted = {r.arg}, set[int](), {number}
        for position in range(r.arg + 1, len(nest.statements)):
            s = nest.statements[position]
            used = set(operands(s))
            if isinstance(s, Compute) and s.op in _STRICT:
                if used & strict:
                    strict.add(position)
                if used & sums:
                    sums.add(position)
            if isinstance(s, Reduce) and s.op == "sum" and s.arg in strict and s.axes == r.axes:
                sums.add(position)
            if used & tainted:
                tainted.add(position)
        return all(s.statement in sums for s in nest.stores if s.statement in tainted)

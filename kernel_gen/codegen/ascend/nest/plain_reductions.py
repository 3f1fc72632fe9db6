"""Reductions that the vector unit lacks, in terms of sum, prod, amax and amin of numbers.

    argmax v over r      m = amax v;  amin where(v == m, r, 2³¹-1)
           of floats     w = where(v == v, v, -inf), m = amax w, with r - (2³¹-1) where v != v:
                         below all others, and so the first NaN; the least is put right again
    any v                amax of v as fp32, != 0
    of bytes             of int32
    amax v (floats)      where(amax where(v == v, 0, 1) > 0, NaN, amax where(v == v, v, -inf))

Floats say what happens to NaN, as the instructions do not; that is left out of amax where a NaN
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
_MOST = 2**31 - 1


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
            made = self._fold(op, as_float, r.axes, DType.F32)
            return self._compute("cast", (made,), r.dtype)
        if r.op in ("amax", "amin") and dtype.is_float and not self._shows_anyway(number):
            return self._extreme(r, dtype)
        return self._fold(r.op, r.arg, r.axes, r.dtype)

    def _fold(self, op: str, arg: int, axes: tuple[str, ...], dtype: DType) -> int:
        """A plain reduction; bytes are widened first, as rows are folded in 32 bits."""
        if dtype not in (DType.I8, DType.U8):
            return self._add(Reduce(op, arg, axes, dtype))
        wide = self._compute("cast", (arg,), DType.I32)
        return self._compute("cast", (self._add(Reduce(op, wide, axes, DType.I32)),), dtype)

    def _clean(self, r: Reduce, dtype: DType) -> tuple[int, int]:
        """Where floats are numbers, and the same floats with NaN below, or beyond, all others."""
        worst = float("-inf") if r.op in ("amax", "argmax") else float("inf")
        plain = self._compute("eq", (r.arg, r.arg), DType.BOOL)
        return plain, self._compute("where", (plain, r.arg, self._const(worst, dtype)), dtype)

    def _extreme(self, r: Reduce, dtype: DType) -> int:
        plain, clean = self._clean(r, dtype)
        odd = self._compute(
            "where", (plain, self._const(0.0, dtype), self._const(1.0, dtype)), dtype
        )
        best = self._fold(r.op, clean, r.axes, r.dtype)
        any_odd = self._add(Reduce("amax", odd, r.axes, dtype))
        fine = self._compute("eq", (any_odd, self._const(0.0, dtype)), DType.BOOL)
        return self._compute("where", (fine, best, self._const(float("nan"), dtype)), r.dtype)

    def _position(self, r: Reduce, dtype: DType) -> int:
        at = self._add(IndexValue(self._along(r), DType.I32))
        if dtype.is_float:
            least = self._position_or_nan(r, dtype, at)
        else:
            keys = self._keys(r, r.arg, dtype, at)
            least = self._add(Reduce("amin", keys, r.axes, DType.I32))
        return self._compute("cast", (least,), r.dtype)

    def _keys(self, r: Reduce, value: int, dtype: DType, at: int) -> int:
        """Positions `at` of the extreme of `value`; elsewhere the largest number."""
        best = self._fold("amax" if r.op == "argmax" else "amin", value, r.axes, dtype)
        hit = self._compute("eq", (value, best), DType.BOOL)
        return self._compute("where", (hit, at, self._const(_MOST, DType.I32)), DType.I32)

    def _position_or_nan(self, r: Reduce, dtype: DType, at: int) -> int:
        plain, clean = self._clean(r, dtype)
        low = self._const(-_MOST, DType.I32)
        odd = self._compute("add", (at, low), DType.I32)
        keys = self._compute("where", (plain, self._keys(r, clean, dtype, at), odd), DType.I32)
        least = self._add(Reduce("amin", keys, r.axes, DType.I32))
        is_odd = self._compute("lt", (least, self._const(0, DType.I32)), DType.BOOL)
        back = self._compute("sub", (least, low), DType.I32)
        return self._compute("where", (is_odd, back, least), DType.I32)

    def _along(self, r: Reduce) -> Index:
        """The position of an element among those reduced."""
        index = Index()
        for name in r.axes:
            extent = self._nest.axis(name).extent
            index = index * (extent if isinstance(extent, int) else 1) + axis_index(name)
        return index

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

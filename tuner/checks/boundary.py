"""Where rounding may legitimately change a discrete result: the *ambiguous* elements of a nest.

Before → after, for y = where(x·w > 0, a, b):

    2 mul 0 1                         2 mul 0 1
    3 gt 2 zero                       3 gt 2 zero
    4 where 3 a b                     4 where 3 a b
    store y = 4                       5 |2 - zero| <= tolerance · (1 + |2| + |zero|)
                                      store y = 4, ambiguous = 5

The transform appends, for each statement, a bool statement that says whether float64 lies within
tolerance of a boundary the value hangs on; it passes through arithmetic by "or" and through
reductions by "any". Values that no rounding has touched (loads, integers, maxima of them) have no
boundary: `x > 0` on an input must be exact.
"""

from __future__ import annotations

from dataclasses import replace

from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.loopnest import (
    Buffer,
    BufferRole,
    Compute,
    Contract,
    IndexValue,
    Load,
    LoopNest,
    Reduce,
    Statement,
    Store,
    operands,
)
from kernel_gen.ir.types import TensorType

_COMPARE = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_INTEGER_STEPS = frozenset(("floor", "ceil", "trunc"))
_QUOTIENT_STEPS = frozenset(("floor_div", "remainder", "fmod"))
# Ops that give one of their operands' values back, at most with another sign.
_SELECTING = frozenset(("abs", "neg", "relu", "maximum", "minimum", "where", "cast", "const"))


def with_ambiguity(nest: LoopNest, tolerance: float) -> tuple[LoopNest, tuple[int | None, ...]]:
    """`nest` with bool outputs for ambiguity, and per output buffer the new buffer's position.

    The new buffers stand after the old ones; None where an output has no boundary. `tolerance` is
    relative to the operands of the discrete step, plus one.
    """
    tracer = _Tracer(nest, tolerance)
    taints = [tracer.taint(position) for position in range(len(nest.statements))]
    return tracer.finish(taints)


class _Tracer:
    """Appends ambiguity statements to a nest's own."""

    def __init__(self, nest: LoopNest, tolerance: float) -> None:
        self._nest = nest
        self._tolerance = tolerance
        self._statements: list[Statement] = list(nest.statements)
        self._taints: list[int | None] = []
        self._exact: list[bool] = []

    def taint(self, position: int) -> int | None:
        """The bool statement of a statement, None where it cannot be ambiguous."""
        statement = self._nest.statements[position]
        own = self._own_boundary(statement)
        inherited = [self._taints[used] for used in operands(statement)]
        if isinstance(statement, Reduce | Contract):
            inherited = [self._any(taint, statement.axes) for taint in inherited]
        found: int | None = own
        for taint in inherited:
            found = self._either(found, taint)
        self._taints.append(found)
        self._exact.append(self._is_exact(statement, found))
        return found

    def finish(self, taints: list[int | None]) -> tuple[LoopNest, tuple[int | None, ...]]:
        buffers = list(self._nest.buffers)
        stores = list(self._nest.stores)
        masks: list[int | None] = []
        for position, buffer in enumerate(self._nest.buffers):
            if buffer.role is not BufferRole.OUTPUT:
                continue
            own = [store for store in self._nest.stores if store.buffer == position]
            if all(taints[store.statement] is None for store in own):
                masks.append(None)
                continue
            masks.append(len(buffers))
            stores += [self._mask_store(store, len(buffers), taints) for store in own]
            mask_type = TensorType(DType.BOOL, buffer.type.shape)
            buffers.append(Buffer(mask_type, BufferRole.OUTPUT))
        statements = tuple(self._statements)
        nest = replace(
            self._nest, buffers=tuple(buffers), statements=statements, stores=tuple(stores)
        )
        return nest, tuple(masks)

    def _mask_store(self, store: Store, buffer: int, taints: list[int | None]) -> Store:
        taint = taints[store.statement]
        statement = self._constant(False, DType.BOOL) if taint is None else taint
        return replace(store, buffer=buffer, statement=statement)

    def _is_exact(self, statement: Statement, taint: int | None) -> bool:
        if not statement.dtype.is_float:
            return taint is None
        match statement:
            case Load() | IndexValue():
                return True
            case Compute():
                used = all(self._exact[arg] for arg in statement.args)
                return statement.op in _SELECTING and used
            case Reduce():
                return statement.op in ("amax", "amin") and self._exact[statement.arg]
            case Contract():
                return False

    def _own_boundary(self, statement: Statement) -> int | None:
        match statement:
            case Compute():
                return self._compute_boundary(statement)
            case Reduce() if statement.op in ("argmax", "argmin"):
                return None if self._exact[statement.arg] else self._near_tie(statement)
            case _:
                return None

    def _compute_boundary(self, statement: Compute) -> int | None:
        floats = [a for a in statement.args if self._statements[a].dtype.is_float]
        if not floats:
            return None
        if statement.op in _QUOTIENT_STEPS:
            quotient = self._compute("div", statement.args, self._dtype(floats[0]))
            return self._near_integer(quotient)
        if all(self._exact[arg] for arg in floats):
            return None
        if statement.op in _COMPARE:
            return self._near(statement.args[0], statement.args[1])
        return self._step_boundary(statement, floats[-1])

    def _step_boundary(self, statement: Compute, arg: int) -> int | None:
        if statement.op == "round":
            half = self._constant(0.5, self._dtype(arg))
            return self._near_integer(self._compute("sub", (arg, half), self._dtype(arg)))
        if statement.op in ("sign", "copysign") or (
            statement.op == "cast" and statement.dtype is DType.BOOL
        ):
            return self._near(arg, self._constant(0.0, self._dtype(arg)))
        to_integer = statement.op == "cast" and statement.dtype.is_integer
        return self._near_integer(arg) if statement.op in _INTEGER_STEPS or to_integer else None

    def _near_integer(self, arg: int) -> int:
        return self._near(arg, self._compute("round", (arg,), self._dtype(arg)))

    def _near(self, left: int, right: int) -> int:
        """|left - right| <= tolerance · (1 + |left| + |right|)."""
        dtype = self._dtype(left)
        gap = self._compute("abs", (self._compute("sub", (left, right), dtype),), dtype)
        size = self._compute("abs", (left,), dtype)
        size = self._compute("add", (size, self._compute("abs", (right,), dtype)), dtype)
        size = self._compute("add", (size, self._constant(1.0, dtype)), dtype)
        allowed = self._compute("mul", (size, self._constant(self._tolerance, dtype)), dtype)
        return self._compute("le", (gap, allowed), DType.BOOL)

    def _near_tie(self, statement: Reduce) -> int:
        """More than one element lies within tolerance of the extreme one."""
        op = "amax" if statement.op == "argmax" else "amin"
        dtype = self._dtype(statement.arg)
        extreme = self._append(Reduce(op, statement.arg, statement.axes, dtype))
        close = self._near(statement.arg, extreme)
        counted = self._compute("cast", (close,), DType.I64)
        total = self._append(Reduce("sum", counted, statement.axes, DType.I64))
        return self._compute("gt", (total, self._constant(1, DType.I64)), DType.BOOL)

    def _any(self, taint: int | None, axes: tuple[str, ...]) -> int | None:
        if taint is None:
            return None
        return self._append(Reduce("any", taint, axes, DType.BOOL))

    def _either(self, left: int | None, right: int | None) -> int | None:
        if left is None or right is None:
            return left if right is None else right
        return self._compute("logical_or", (left, right), DType.BOOL)

    def _dtype(self, statement: int) -> DType:
        return self._statements[statement].dtype

    def _constant(self, value: float | int | bool, dtype: DType) -> int:
        return self._append(Compute("const", (), dtype, attrs(value=value)))

    def _compute(self, op: str, args: tuple[int, ...], dtype: DType) -> int:
        extra = attrs(dtype=str(dtype)) if op == "cast" else ()
        return self._append(Compute(op, args, dtype, extra))

    def _append(self, statement: Statement) -> int:
        self._statements.append(statement)
        return len(self._statements) - 1

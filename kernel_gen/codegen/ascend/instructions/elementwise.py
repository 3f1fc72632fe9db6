"""Scalar ops of a nest as vector instructions.

Semantics are torch's: NaN propagates through maximum, minimum and relu (said with a comparison, as
the instructions promise nothing), integers wrap. Accuracy of composed functions: `floats.py`.
"""

from __future__ import annotations

import numpy as np

from kernel_gen.codegen.ascend.instructions.floats import Floats
from kernel_gen.codegen.ascend.instructions.integers import DIVISIONS, Integers, shortened
from kernel_gen.codegen.ascend.instructions.steps import Lanes, Value
from kernel_gen.codegen.ascend.instructions.wide_integers import Words
from kernel_gen.codegen.ascend.instructions.writer import (
    HELD,
    Const,
    Operand,
    Writer,
    wrapped_number,
)
from kernel_gen.errors import Refusal
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.evaluate_elementwise import ELEMENTWISE

_MODES = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}
_SWAPPED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
_BYTES = (DType.I8, DType.U8)
_NARROW = (*_BYTES, DType.I16)
_WITHIN = {
    "maximum", "minimum", "relu", "sign", "floor", "ceil", "round", "trunc", "bitwise_and",
    "bitwise_or", "bitwise_xor", "shift_right",
}  # fmt: skip
"""Ops whose results lie within the type of their operands."""
_FLOATS = {
    "add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "exp", "exp2", "expm1", "log",
    "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tan", "tanh", "erf",
    "sigmoid", "relu", "sign", "floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite",
    "where", "cast", "pow", "copysign", "sinh", "cosh", *_MODES,
}  # fmt: skip
_INTEGERS = {
    "add", "sub", "mul", "maximum", "minimum", "neg", "abs", "relu", "sign", "floor", "ceil",
    "round", "trunc", "where", "cast", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
    "shift_left", "shift_right", *DIVISIONS, *_MODES,
}  # fmt: skip
_BOOLS = {
    "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_not", "where", "cast", "maximum", "minimum", "add", "mul", "eq", "ne",
}  # fmt: skip
_WIDE = {"cast", "lt", "le", "gt", "ge", "eq", "ne"}


def refuse_op(op: str, operand: DType, args: list[Operand | None]) -> Refusal | None:
    """Why the vector unit cannot compute `op` on values of `operand`'s type."""
    if operand is DType.I64:
        known = _WIDE
    elif operand is DType.BOOL:
        known = _BOOLS
    else:
        known = _FLOATS if operand.is_float else _INTEGERS
    constant = len(args) == 2 and isinstance(args[1], Const)
    if op not in known or (op in ("shift_left", "shift_right") and not constant):
        return Refusal("op-not-on-device", f"the vector unit has no {op} on {operand}")
    return None


def folded(op: str, dtype: DType, args: list[Const]) -> Const:
    """The value of an op on constants."""
    kind = np.float64 if args[0].dtype.is_float else np.int64
    with np.errstate(all="ignore"):
        if op == "cast":
            value = args[0].value
        else:
            value = ELEMENTWISE[op](*(np.asarray(a.value, kind) for a in args)).item()
    return constant(value, dtype)


def constant(value: float | int | bool, dtype: DType) -> Const:
    """A number as a type holds it: small integers wrap."""
    if dtype is DType.BOOL:
        return Const(bool(value), dtype)
    if dtype.is_float:
        return Const(float(value), dtype)
    return Const(wrapped_number(value, dtype) if dtype in _NARROW else int(value), dtype)


class Elementwise:
    """Computes statements with a writer."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer
        self._floats, self._integers = Floats(writer), Integers(writer)
        self._words = Words(writer)

    def compute(self, op: str, dtype: DType, source: DType, args: list[Operand]) -> Operand:
        """`op` with a result of `dtype` on operands of type `source`."""
        constants = [a for a in args if isinstance(a, Const)]
        if len(constants) == len(args):
            return folded(op, dtype, constants)
        if op == "cast":
            value = args[0]
            assert isinstance(value, Value)
            return self.cast(value, source, dtype)
        if op == "where":
            return self._where(args, dtype)
        if op in _MODES:
            return self._compare(_MODES[op], source, args)
        if source is DType.BOOL:
            return self._bool(op, args)
        if source.is_float:
            made = self._floats.compute(op, args)
            return made if dtype in (DType.F32, DType.BOOL) else self.rounded(made, dtype)
        made = self._integers.compute(op, args, narrow=source in _NARROW)
        return made if op in _WITHIN and dtype is source else self.wrapped(made, dtype)

    # ---- conversions ---------------------------------------------------------------------------

    def rounded(self, v: Value, dtype: DType) -> Value:
        """An fp32 value rounded to a narrow float."""
        kind = "half" if dtype is DType.F16 else "bfloat16_t"
        return self.w.cast(self.w.cast(v, kind, "RINT"), "float", "NONE")

    def cast(self, v: Value, source: DType, dtype: DType) -> Value:
        """Conversion between held values: floats truncate, to bool `!= 0`."""
        w = self.w
        if dtype is DType.BOOL:
            if source is DType.BOOL:
                return v
            return w.compare("NE", self._number(v), 0)
        if source is DType.BOOL:
            half = w.as_half(v)
            return w.cast(half, HELD[dtype], "NONE" if dtype.is_float else "RINT")
        if dtype.is_float:
            held = v if v.ctype == "float" else self._number(v)
            exact = dtype is DType.F32 or source is dtype
            return held if exact else self.rounded(held, dtype)
        if source.is_float:
            if dtype is DType.I64:
                return w.cast(v, "int64_t", "TRUNC")
            return self.wrapped(w.cast(v, "int32_t", "TRUNC"), dtype)
        if v.ctype == "int16_t":
            if dtype in _BYTES:
                return v if source is dtype else self.wrapped(v, dtype)
            return w.cast(self._number(v), "int32_t", "RINT")
        return self.wrapped(v if dtype is DType.I64 else self._words.low(v), dtype)

    def _number(self, v: Value) -> Value:
        """A value as fp32."""
        if v.ctype in ("float", "half"):
            return v
        return self.w.cast(v, "float", "RINT" if v.ctype == "int64_t" else "NONE")

    def wrapped(self, v: Value, dtype: DType) -> Value:
        """An integer reduced to a narrow type's range, as overflow wraps, and held as that is."""
        if dtype not in _NARROW:
            return v
        short = shortened(self.w, v, 8 * dtype.bytes, signed=dtype is not DType.U8)
        return short if short.ctype == HELD[dtype] else self.w.cast(short, HELD[dtype], "NONE")

    # ---- comparison, selection, bools ----------------------------------------------------------

    def _compare(self, mode: str, source: DType, args: list[Operand]) -> Value:
        a, b = args
        if isinstance(a, Const):
            a, b, mode = b, a, _SWAPPED[mode]
        assert isinstance(a, Value)
        if source is DType.BOOL:
            a = self.w.as_half(a)
            b = self.w.as_half(b) if isinstance(b, Value) else b
        if source in _BYTES:
            a, b = (
                self.w.cast(x, "half", "NONE") if isinstance(x, Value) else x for x in (a, b)
            )  # exact
            assert isinstance(a, Value)
        elif not source.is_float and source is not DType.BOOL:
            return self._compare_integers(mode, a, b)
        return self.w.compare(mode, a, b.value if isinstance(b, Const) else b)

    def _compare_integers(self, mode: str, a: Value, b: Operand) -> Value:
        """Only equality exists: a <= b where max(a, b) == b."""
        w = self.w
        small, other = self._words.saturated(a, b), self._words.saturated(b, a)
        if small is None or other is None:
            return self._compare_words(mode, a, b)
        assert isinstance(small, Value)
        if isinstance(other, Const):
            other = w.constant(other.value, "int32_t", small.lanes)
        if mode in ("EQ", "NE"):
            same = w.compare("EQ", small, other)
            return same if mode == "EQ" else w.negated(same)
        low, high = (small, other) if mode in ("LE", "GT") else (other, small)
        at_most = w.compare("EQ", w.binary("Max", low, high), high)
        return at_most if mode in ("LE", "GE") else w.negated(at_most)

    def _compare_words(self, mode: str, a: Value, b: Operand) -> Value:
        """Of 64 bits, some of them beyond 32."""
        if mode in ("EQ", "NE"):
            same = self._words.equal(a, b)
            return same if mode == "EQ" else self.w.negated(same)
        low, high = (a, b) if mode in ("LE", "GT") else (b, a)
        at_most = self._words.at_most(low, high)
        return at_most if mode in ("LE", "GE") else self.w.negated(at_most)

    def _where(self, args: list[Operand], dtype: DType) -> Operand:
        condition, a, b = args
        if isinstance(condition, Const):
            return a if condition.value else b
        w = self.w
        held = HELD[dtype]
        lanes = condition.lanes
        for part in (a, b):
            lanes = w.join(lanes, part.lanes) if isinstance(part, Value) else lanes
        bits = condition
        if condition.lanes is not lanes or condition.ctype != "bits":
            bits = w.as_bits(w.spread(w.as_half(condition), lanes))
        if isinstance(b, Const) and held not in ("int32_t", "int16_t"):
            return w.select(bits, self._side(a, held, lanes), b.value)
        return w.select(bits, self._side(a, held, lanes), self._side(b, held, lanes))

    def _side(self, part: Operand, held: str, lanes: Lanes) -> Value:
        w = self.w
        if isinstance(part, Const):
            return w.constant(part.value, held, lanes)
        return w.spread(w.as_half(part), lanes)

    def _bool(self, op: str, args: list[Operand]) -> Value:
        w = self.w
        if op in ("logical_not", "bitwise_not"):
            assert isinstance(args[0], Value)
            return self.w.negated(args[0])
        known = [a for a in args if isinstance(a, Value)]
        a = w.as_half(known[0])
        if len(known) == 1:
            other = next(float(c.value) for c in args if isinstance(c, Const))
            b: Value = w.constant(other, "half", a.lanes)
        else:
            b = w.as_half(known[1])
        if op in ("logical_xor", "bitwise_xor"):
            return w.compare("NE", a, b)
        both = op in ("logical_and", "bitwise_and", "mul", "minimum")
        return w.binary("Min" if both else "Max", a, b)

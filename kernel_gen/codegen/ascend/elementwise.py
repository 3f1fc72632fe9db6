"""Scalar ops of a nest as vector instructions.

Semantics are torch's: NaN propagates through maximum, minimum and relu (said with a comparison, as
the instructions promise nothing), integers wrap. Accuracy of composed functions: tanh, erf, log1p,
expm1 4 ulp; sigmoid 3 ulp; exp2 and pow relative 2^-17 near the ends of the range; sin and cos
2^-22 absolute for |x| <= 10^4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_gen.codegen.ascend.steps import Lanes, Value
from kernel_gen.codegen.ascend.writer import HELD, Const, Operand, Writer
from kernel_gen.errors import InternalError, Refusal
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.evaluate_elementwise import ELEMENTWISE

_MODES = {"eq": "EQ", "ne": "NE", "lt": "LT", "le": "LE", "gt": "GT", "ge": "GE"}
_SWAPPED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}
_DIRECT = {"exp": "Exp", "sqrt": "Sqrt", "abs": "Abs", "log": "Ln"}
_ROUND = {"floor": "FLOOR", "ceil": "CEIL", "round": "RINT", "trunc": "TRUNC"}
_NARROW = (DType.I8, DType.U8, DType.I16)
_FLOATS = {
    "add", "sub", "mul", "div", "maximum", "minimum", "neg", "abs", "exp", "exp2", "expm1", "log",
    "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tan", "tanh", "erf",
    "sigmoid", "relu", "sign", "floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite",
    "where", "cast", "pow", "copysign", "sinh", "cosh", *_MODES,
}  # fmt: skip
_INTEGERS = {
    "add", "sub", "mul", "maximum", "minimum", "neg", "abs", "relu", "sign", "floor", "ceil",
    "round", "trunc", "where", "cast", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not",
    "shift_left", "shift_right", *_MODES,
}  # fmt: skip
_BOOLS = {
    "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or",
    "bitwise_xor", "bitwise_not", "where", "cast", "maximum", "minimum", "add", "mul", "eq", "ne",
}  # fmt: skip
ERF_SMALL = (7.780889427522197e-05, -0.0007989509031176567, 0.005186138208955526,
             -0.026852747425436974, 0.11283561587333679, -0.376126229763031,
             1.1283791065216064)  # fmt: skip
"""erf(x) / x in powers of x² below 1, fitted by least squares on the relative error: 2.9 ulp."""
_WIDE = {"cast", "lt", "le", "gt", "ge", "eq", "ne"}


def refuse_op(op: str, operand: DType, args: list[Operand | None]) -> Refusal | None:
    """Why the vector unit cannot compute `op` on values of `operand`'s type."""
    if operand is DType.I64:
        known = _WIDE
    elif operand is DType.BOOL:
        known = _BOOLS
    else:
        known = _FLOATS if operand.is_float else _INTEGERS
    constant_exponent = len(args) == 2 and isinstance(args[1], Const)
    if op not in known or (op in ("pow", "shift_left", "shift_right") and not constant_exponent):
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
    if dtype is DType.BOOL:
        return Const(bool(value), dtype)
    return Const(float(value) if dtype.is_float else int(value), dtype)


class Elementwise:
    """Computes statements with a writer."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer

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
            made = self._float(op, args)
            return made if dtype in (DType.F32, DType.BOOL) else self.rounded(made, dtype)
        return self.wrapped(self._integer(op, args), dtype)

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
            return (
                w.cast(half, "float", "NONE") if dtype.is_float else w.cast(half, "int32_t", "RINT")
            )
        if dtype.is_float:
            held = v if v.ctype == "float" else self._number(v)
            exact = dtype is DType.F32 or source is dtype
            return held if exact else self.rounded(held, dtype)
        if source.is_float:
            if dtype is DType.I64:
                return w.cast(v, "int64_t", "TRUNC")
            return self.wrapped(w.cast(v, "int32_t", "TRUNC"), dtype)
        if v.ctype == "int64_t" and dtype is not DType.I64:
            v = w.cast(v, "int32_t", "NONE")
        return self.wrapped(v, dtype)

    def _number(self, v: Value) -> Value:
        """A value as fp32."""
        if v.ctype in ("float", "half"):
            return v
        return self.w.cast(v, "float", "RINT" if v.ctype == "int64_t" else "NONE")

    def wrapped(self, v: Value, dtype: DType) -> Value:
        """An int32 reduced to a narrow integer's range, as overflow wraps."""
        if dtype not in _NARROW:
            return v
        w, bits = self.w, 32 - dtype.bytes * 8
        kind = "uint32_t" if dtype is DType.U8 else "int32_t"
        c = f"static_cast<{kind}>({bits})"
        n = w.count(v.lanes)
        at = ".ReinterpretCast<uint32_t>()" if kind == "uint32_t" else ""
        left = w.emit(f"ShiftLeft({{d}}{at}, {v.token}{at}, {c}, {n});", "int32_t", v.lanes, v)
        return w.emit(
            f"ShiftRight({{d}}{at}, {left.token}{at}, {c}, {n});", "int32_t", v.lanes, left
        )

    # ---- comparison, selection, bools ----------------------------------------------------------

    def _compare(self, mode: str, source: DType, args: list[Operand]) -> Value:
        a, b = args
        if isinstance(a, Const):
            a, b, mode = b, a, _SWAPPED[mode]
        assert isinstance(a, Value)
        if source is DType.BOOL:
            a = self.w.as_half(a)
            b = self.w.as_half(b) if isinstance(b, Value) else b
        if not source.is_float and source is not DType.BOOL:
            return self._compare_integers(mode, a, b)
        return self.w.compare(mode, a, b.value if isinstance(b, Const) else b)

    def _compare_integers(self, mode: str, a: Value, b: Operand) -> Value:
        """Only equality exists: a <= b where max(a, b) == b."""
        w = self.w
        if a.ctype == "int64_t":
            a = w.cast(a, "int32_t", "NONE")
        if isinstance(b, Const):
            b = w.constant(b.value, "int32_t", a.lanes)
        elif b.ctype == "int64_t":
            b = w.cast(b, "int32_t", "NONE")
        if mode in ("EQ", "NE"):
            same = w.compare("EQ", a, b)
            return same if mode == "EQ" else self._negated(same)
        low, high = (a, b) if mode in ("LE", "GT") else (b, a)
        at_most = w.compare("EQ", w.binary("Max", low, high), high)
        return at_most if mode in ("LE", "GE") else self._negated(at_most)

    def _negated(self, v: Value) -> Value:
        if v.ctype == "bits":
            return self.w.flipped(v)
        half = self.w.as_half(v)
        return self.w.scalar("Adds", self.w.scalar("Muls", half, -1.0), 1.0)

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
        if isinstance(b, Const) and held != "int32_t":
            return w.select(bits, self._side(a, held, lanes), b.value)
        return w.select(bits, self._side(a, held, lanes), self._side(b, held, lanes))

    def _side(self, part: Operand, held: str, lanes: Lanes) -> Value:
        w = self.w
        if isinstance(part, Const):
            return w.constant(part.value, held, lanes)
        part = w.as_half(part)
        if part.ctype == "int64_t":
            part = w.cast(part, "int32_t", "NONE")
        return w.spread(part, lanes)

    def _bool(self, op: str, args: list[Operand]) -> Value:
        w = self.w
        if op in ("logical_not", "bitwise_not"):
            assert isinstance(args[0], Value)
            return self._negated(args[0])
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

    # ---- floats --------------------------------------------------------------------------------

    def _float(self, op: str, args: list[Operand]) -> Value:
        if len(args) == 2:
            return self._float_binary(op, args[0], args[1])
        a = args[0]
        assert isinstance(a, Value)
        if op in _DIRECT:
            return self.w.unary(_DIRECT[op], a)
        if op in _ROUND:
            return self.w.cast(a, "float", _ROUND[op])
        made: Callable[[Value], Value] = getattr(self, f"_{op}")
        return made(a)

    def _float_binary(self, op: str, a: Operand, b: Operand) -> Value:
        w = self.w
        if isinstance(b, Const):
            assert isinstance(a, Value)
            return self._with_constant(op, a, float(b.value))
        if isinstance(a, Const):
            if op in ("add", "mul", "maximum", "minimum"):
                return self._with_constant(op, b, float(a.value))
            if op == "sub":
                return w.scalar("Adds", w.scalar("Muls", b, -1.0), float(a.value))
            a = w.constant(float(a.value), "float", b.lanes)
        if op in ("maximum", "minimum"):
            return self._extreme(op, a, b)
        if op == "copysign":
            return self._copysign(a, b)
        return w.binary({"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div"}[op], a, b)

    def _with_constant(self, op: str, a: Value, c: float) -> Value:
        w = self.w
        match op:
            case "add":
                return w.scalar("Adds", a, c)
            case "sub":
                return w.scalar("Adds", a, -c)
            case "mul":
                return w.scalar("Muls", a, c)
            case "div" if c != 0 and abs(np.frexp(c)[0]) == 0.5 and 2.0**-100 < abs(c) < 2.0**100:
                return w.scalar("Muls", a, 1 / c)
            case "maximum" | "minimum":
                if np.isnan(c):
                    return w.constant(c, "float", a.lanes)
                beyond = w.flipped(w.compare("LE" if op == "maximum" else "GE", a, c))
                return w.select(beyond, a, c)  # NaN is beyond
            case "pow":
                return self._power(a, c)
        return self._float_binary(op, a, w.constant(c, "float", a.lanes))

    def _extreme(self, op: str, a: Value, b: Value) -> Value:
        """NaN from either side: `a >= b` fails for a NaN in b, and one in a is put back."""
        w = self.w
        lanes = w.join(a.lanes, b.lanes)
        a, b = w.spread(a, lanes), w.spread(b, lanes)
        larger = w.select(w.compare("GE" if op == "maximum" else "LE", a, b), a, b)
        return w.select(w.compare("EQ", a, a), larger, a)

    def _copysign(self, a: Value, b: Value) -> Value:
        w = self.w
        lanes = w.join(a.lanes, b.lanes)
        a, b, n = w.spread(a, lanes), w.spread(b, lanes), w.count(lanes)
        u, one = ".ReinterpretCast<uint32_t>()", "static_cast<uint32_t>(31)"
        low = w.emit(f"ShiftRight({{d}}{u}, {b.token}{u}, {one}, {n});", "float", lanes, b)
        sign = w.emit(f"ShiftLeft({{d}}{u}, {low.token}{u}, {one}, {n});", "float", lanes, low)
        size, i = w.unary("Abs", a), ".ReinterpretCast<int32_t>()"
        text = f"Add({{d}}{i}, {size.token}{i}, {sign.token}{i}, {n});"
        return w.lanewise(text, "float", lanes, size, sign)

    def _power(self, a: Value, exponent: float) -> Value:
        w = self.w
        if exponent == 0:
            return w.constant(1.0, "float", a.lanes)
        if exponent == 0.5:
            return w.unary("Sqrt", a)
        if exponent < 0:
            return self._reciprocal(self._power(a, -exponent))
        if exponent == int(exponent) and exponent <= 64:
            made, square, left = None, a, int(exponent)
            while left:
                if left & 1:
                    made = square if made is None else w.binary("Mul", made, square)
                left >>= 1
                square = w.binary("Mul", square, square) if left else square
            assert made is not None
            return made
        return w.unary("Exp", w.scalar("Muls", w.unary("Ln", a), exponent))

    def _neg(self, a: Value) -> Value:
        return self.w.scalar("Muls", a, -1.0)

    def _relu(self, a: Value) -> Value:
        return self._with_constant("maximum", a, 0.0)

    def _reciprocal(self, a: Value) -> Value:
        return self.w.binary("Div", self.w.constant(1.0, "float", a.lanes), a)

    def _rsqrt(self, a: Value) -> Value:
        return self._reciprocal(self.w.unary("Sqrt", a))

    def _sign(self, a: Value) -> Value:
        w = self.w
        one = w.constant(1.0, "float", a.lanes)
        above = w.select(w.compare("GT", a, 0.0), one, 0.0)
        return w.binary("Sub", above, w.select(w.compare("LT", a, 0.0), one, 0.0))

    def _isnan(self, a: Value) -> Value:
        return self._negated(self.w.compare("EQ", a, a))

    def _isinf(self, a: Value) -> Value:
        return self.w.compare("EQ", self.w.unary("Abs", a), float("inf"))

    def _isfinite(self, a: Value) -> Value:
        return self.w.compare("LT", self.w.unary("Abs", a), float("inf"))

    def _sigmoid(self, a: Value) -> Value:
        e = self.w.unary("Exp", self.w.scalar("Muls", a, -1.0))
        return self._reciprocal(self.w.scalar("Adds", e, 1.0))

    def _exp2(self, a: Value) -> Value:
        return self.w.unary("Exp", self.w.scalar("Muls", a, 0.6931471805599453))

    def _log2(self, a: Value) -> Value:
        return self.w.scalar("Muls", self.w.unary("Ln", a), 1.4426950408889634)

    def _log10(self, a: Value) -> Value:
        return self.w.scalar("Muls", self.w.unary("Ln", a), 0.4342944819032518)

    def _log1p(self, a: Value) -> Value:
        """log(u) for u = 1 + a rounded, times a / (u - 1): what the rounding lost comes back."""
        w = self.w
        u = w.scalar("Adds", a, 1.0)
        less = w.scalar("Adds", u, -1.0)
        scaled = w.binary("Mul", w.unary("Ln", u), w.binary("Div", a, less))
        plain = w.select(w.compare("EQ", less, 0.0), a, scaled)
        return w.select(w.compare("EQ", a, float("inf")), a, plain)

    def _expm1(self, a: Value) -> Value:
        w = self.w
        p = self._polynomial(a, (1.3868435e-3, 8.366432e-3, 4.16674614e-2, 0.16666545, 0.5))
        small = w.binary("Add", w.binary("Mul", w.binary("Mul", a, a), p), a)
        large = w.scalar("Adds", w.unary("Exp", a), -1.0)
        return w.select(w.compare("GE", w.unary("Abs", a), 0.34), large, small)

    def _polynomial(self, x: Value, coefficients: tuple[float, ...]) -> Value:
        """Horner's scheme, the highest power first."""
        w = self.w
        p = w.scalar("Adds", w.scalar("Muls", x, coefficients[0]), coefficients[1])
        for c in coefficients[2:]:
            p = w.scalar("Adds", w.binary("Mul", p, x), c)
        return p

    def _signed(self, size: Value, like: Value) -> Value:
        """`size` with the sign of `like`."""
        return self.w.select(
            self.w.compare("LT", like, 0.0), self.w.scalar("Muls", size, -1.0), size
        )

    def _tanh(self, x: Value) -> Value:
        """x + x³·P(x²) below 0.6, else 1 - 2 / (e^2|x| + 1)."""
        w = self.w
        s = w.binary("Mul", x, x)
        p = self._polynomial(s, (-5.897966679e-3, 2.0798625424e-2, -5.3784716874e-2,
                                 0.133319362998, -0.333332985639))  # fmt: skip
        small = w.binary("Add", w.binary("Mul", w.binary("Mul", s, x), p), x)
        a = w.unary("Abs", x)
        e = w.unary("Exp", w.scalar("Muls", a, 2.0))
        q = w.binary("Div", w.constant(-2.0, "float", x.lanes), w.scalar("Adds", e, 1.0))
        large = self._signed(w.scalar("Adds", q, 1.0), x)
        return w.select(w.compare("GE", a, 0.6), large, small)

    def _erf(self, x: Value) -> Value:
        """x·P(x²) below 1, else 1 - e^-q with q = -log(erfc(|x|)) = a + a·Q(a)."""
        w = self.w
        s = w.binary("Mul", x, x)
        small = w.binary("Mul", x, self._polynomial(s, ERF_SMALL))
        a = w.scalar("Mins", w.unary("Abs", x), 3.95)
        q = self._polynomial(a, (-9.389085789734963e-06, 0.00011886882566614076,
                                 -0.000637382036074996, 0.0016756975091993809,
                                 -0.00016951498400885612, -0.01914782077074051,
                                 0.10277630388736725, 0.6366195678710938,
                                 0.12837916612625122))  # fmt: skip
        e = w.unary("Exp", w.scalar("Muls", w.binary("Add", w.binary("Mul", q, a), a), -1.0))
        large = self._signed(w.scalar("Adds", w.scalar("Muls", e, -1.0), 1.0), x)
        return w.select(w.compare("GE", w.unary("Abs", x), 1.0), large, small)

    def _turned(self, x: Value, turn: float) -> Value:
        """sin(x + turn quarter turns): reduction by pi/2 in three parts (Cody and Waite)."""
        w = self.w
        k = w.cast(w.scalar("Muls", x, 0.6366197723675814), "float", "RINT")
        r = x
        for part in (1.5703125, 4.837512969970703e-4, 7.549789948768648e-8):
            r = w.binary("Add", r, w.scalar("Muls", k, -part))
        s = w.binary("Mul", r, r)
        sine = self._polynomial(s, (2.8327249e-06, -0.00019853073, 0.0083333794, -0.16666667))
        sine = w.binary("Add", w.binary("Mul", w.binary("Mul", s, r), sine), r)
        cosine = self._polynomial(s, (-2.8879847e-07, 2.4822015e-05, -0.0013888980, 0.041666668,
                                      -0.5, 1.0))  # fmt: skip
        q = w.scalar("Adds", k, turn)
        down = w.cast(w.scalar("Muls", q, 0.25), "float", "FLOOR")
        q = w.binary("Add", q, w.scalar("Muls", down, -4.0))
        odd = w.compare("EQ", w.unary("Abs", w.scalar("Adds", q, -2.0)), 1.0)
        made = w.select(odd, cosine, sine)
        return w.select(w.compare("GE", q, 2.0), w.scalar("Muls", made, -1.0), made)

    def _sin(self, x: Value) -> Value:
        return self._turned(x, 0.0)

    def _cos(self, x: Value) -> Value:
        return self._turned(x, 1.0)

    def _tan(self, x: Value) -> Value:
        return self.w.binary("Div", self._sin(x), self._cos(x))

    def _sinh(self, x: Value) -> Value:
        """(e + e / (e + 1)) / 2 for e = e^x - 1."""
        w = self.w
        e = self._expm1(w.unary("Abs", x))
        both = w.binary("Add", e, w.binary("Div", e, w.scalar("Adds", e, 1.0)))
        infinite = w.compare("EQ", e, float("inf"))
        size = w.select(infinite, e, w.scalar("Muls", both, 0.5))
        return self._signed(size, x)

    def _cosh(self, x: Value) -> Value:
        w = self.w
        e = w.unary("Exp", w.unary("Abs", x))
        return w.scalar("Muls", w.binary("Add", e, self._reciprocal(e)), 0.5)

    # ---- integers ------------------------------------------------------------------------------

    def _integer(self, op: str, args: list[Operand]) -> Value:
        w = self.w
        if len(args) == 1:
            a = args[0]
            assert isinstance(a, Value)
            return self._integer_unary(op, a)
        a, b = args
        if op in ("shift_left", "shift_right"):
            assert isinstance(a, Value)
            assert isinstance(b, Const)
            return self._shift(op, a, int(b.value))
        lanes = next(x.lanes for x in args if isinstance(x, Value))
        if isinstance(b, Const) and isinstance(a, Value) and op in ("add", "sub", "mul"):
            c = int(b.value)
            return w.scalar("Muls" if op == "mul" else "Adds", a, -c if op == "sub" else c)
        a, b = (w.constant(x.value, "int32_t", lanes) if isinstance(x, Const) else x for x in args)
        if op.startswith("bitwise"):
            return self._bitwise(op, a, b)
        name = {"add": "Add", "sub": "Sub", "mul": "Mul", "maximum": "Max", "minimum": "Min"}[op]
        return w.binary(name, a, b)

    def _integer_unary(self, op: str, a: Value) -> Value:
        w = self.w
        match op:
            case "neg":
                return w.scalar("Muls", a, -1)
            case "abs":
                return w.binary("Max", a, w.scalar("Muls", a, -1))
            case "relu":
                return w.scalar("Maxs", a, 0)
            case "sign":
                return w.scalar("Maxs", w.scalar("Mins", a, 1), -1)
            case "floor" | "ceil" | "round" | "trunc":
                return a
            case "bitwise_not":
                return w.scalar("Adds", w.scalar("Muls", a, -1), -1)
        raise InternalError(f"no instruction for {op} on integers")

    def _shift(self, op: str, a: Value, by: int) -> Value:
        w, n = self.w, self.w.count(a.lanes)
        if not 0 <= by < 32:
            by = 31 if op == "shift_right" else 32
        if by == 32:
            return w.constant(0, "int32_t", a.lanes)
        name = "ShiftLeft" if op == "shift_left" else "ShiftRight"
        text = f"{name}({{d}}, {a.token}, static_cast<int32_t>({by}), {n});"
        return w.lanewise(text, "int32_t", a.lanes, a)

    def _bitwise(self, op: str, a: Value, b: Value) -> Value:
        """On halves of words: the instructions know 16 bits only. a ^ b = (a | b) - (a & b)."""
        w = self.w
        lanes = w.join(a.lanes, b.lanes)
        a, b = w.spread(a, lanes), w.spread(b, lanes)

        def call(name: str) -> Value:
            h = ".ReinterpretCast<uint16_t>()"
            text = f"{name}({{d}}{h}, {a.token}{h}, {b.token}{h}, 2 * {w.count(lanes)});"
            return w.lanewise(text, "int32_t", lanes, a, b)

        if op == "bitwise_xor":
            return w.binary("Sub", call("Or"), call("And"))
        return call("And" if op == "bitwise_and" else "Or")

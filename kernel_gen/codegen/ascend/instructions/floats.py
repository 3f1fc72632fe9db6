"""Ops on fp32 values as vector instructions.

Accuracy of composed functions: tanh, log1p, expm1 4 ulp; erf 6 ulp; sigmoid 3 ulp; exp2 and pow
relative 2^-17 near the ends of the range; sin and cos 2^-22 absolute for |x| <= 10^4.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kernel_gen.codegen.ascend.instructions.number_operands import polynomials, with_number
from kernel_gen.codegen.ascend.instructions.steps import Value
from kernel_gen.codegen.ascend.instructions.writer import Const, Operand, Writer

_DIRECT = {"exp": "Exp", "sqrt": "Sqrt", "abs": "Abs", "log": "Ln"}
_ROUND = {"floor": "FLOOR", "ceil": "CEIL", "round": "RINT", "trunc": "TRUNC"}
_ERF_END = 3.85  # erf is 1 in fp32 from there on, but for an ulp
_ERF_ABOVE = (
    1.0, -95.39381559, 6633.058298, 166880.4577, 2399683.091, 9345445.241, 54389365.98
)  # fmt: skip
_ERF_BELOW = (43520.06878, 667634.9111, 5423296.94, 24349226.9, 48201323.18)  # fmt: skip
"""erf(x) / x as a ratio of polynomials in x², fitted by weighted least squares on the relative
error (Lawson's iteration) up to `_ERF_END`: 4.2e-8; the highest power has no factor."""


class Floats:
    """Computes statements on floats with a writer."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer

    def compute(self, op: str, args: list[Operand]) -> Value:
        """`op` on one value or two, or on a value and a constant."""
        if len(args) == 2:
            return self._binary(op, args[0], args[1])
        a = args[0]
        assert isinstance(a, Value)
        if op in _DIRECT:
            return self.w.unary(_DIRECT[op], a)
        if op in _ROUND:
            return self.w.cast(a, "float", _ROUND[op])
        made: Callable[[Value], Value] = getattr(self, f"_{op}")
        return made(a)

    def _binary(self, op: str, a: Operand, b: Operand) -> Value:
        w = self.w
        if isinstance(b, Const):
            assert isinstance(a, Value)
            return self._with_constant(op, a, float(b.value))
        if isinstance(a, Const):
            if op in ("add", "mul", "maximum", "minimum"):
                return self._with_constant(op, b, float(a.value))
            if op == "sub":
                return w.scalar("Adds", w.scalar("Muls", b, -1.0), float(a.value))
            if op == "div":
                return with_number(w, "Div", b, float(a.value), first=True)
            a = w.constant(float(a.value), "float", b.lanes)
        if op in ("maximum", "minimum"):
            return self._extreme(op, a, b)
        if op == "copysign":
            return self._copysign(a, b)
        if op == "pow":
            return self._raised(a, b)
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
            case "div":
                return with_number(w, "Div", a, c)
            case "maximum" | "minimum":
                if np.isnan(c):
                    return w.constant(c, "float", a.lanes)
                beyond = w.flipped(w.compare("LE" if op == "maximum" else "GE", a, c))
                return w.select(beyond, a, c)  # NaN is beyond
            case "pow":
                return self._power(a, c)
        return self._binary(op, a, w.constant(c, "float", a.lanes))

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

    def _raised(self, a: Value, b: Value) -> Value:
        """|a|^b as an exponential, with a's sign for odd b; NaN for finite a < 0 and b between
        integers; 1 for b = 0 and a = 1, whatever the other one is."""
        w = self.w
        lanes = w.join(a.lanes, b.lanes)
        a, b = w.spread(a, lanes), w.spread(b, lanes)
        size = w.unary("Abs", a)
        one = w.constant(1.0, "float", lanes)
        power = w.unary("Exp", w.binary("Mul", w.unary("Ln", size), b))
        power = w.select(w.compare("EQ", size, 1.0), one, power)
        half = w.scalar("Muls", b, 0.5)
        even = w.compare("EQ", half, w.cast(half, "float", "TRUNC"))
        whole = w.compare("EQ", b, w.cast(b, "float", "TRUNC"))
        odd = w.select(even, power, w.select(whole, self._copysign(power, a), power))
        real = w.select(whole, odd, float("nan"))
        made = w.select(w.compare("LT", a, 0.0), real, odd)
        made = w.select(w.compare("EQ", size, float("inf")), odd, made)
        made = w.select(w.compare("EQ", b, 0.0), one, made)
        return w.select(w.compare("EQ", a, 1.0), one, made)

    def _neg(self, a: Value) -> Value:
        return self.w.scalar("Muls", a, -1.0)

    def _relu(self, a: Value) -> Value:
        return self._with_constant("maximum", a, 0.0)

    def _reciprocal(self, a: Value) -> Value:
        return with_number(self.w, "Div", a, 1.0, first=True)

    def _rsqrt(self, a: Value) -> Value:
        return self._reciprocal(self.w.unary("Sqrt", a))

    def _sign(self, a: Value) -> Value:
        w = self.w
        one = w.constant(1.0, "float", a.lanes)
        above = w.select(w.compare("GT", a, 0.0), one, 0.0)
        return w.binary("Sub", above, w.select(w.compare("LT", a, 0.0), one, 0.0))

    def _isnan(self, a: Value) -> Value:
        return self.w.negated(self.w.compare("EQ", a, a))

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
        small = w.fused(p, w.binary("Mul", a, a), a)
        large = w.scalar("Adds", w.unary("Exp", a), -1.0)
        return w.select(w.compare("GE", w.unary("Abs", a), 0.34), large, small)

    def _polynomial(self, x: Value, coefficients: tuple[float, ...]) -> Value:
        return polynomials(self.w, x, coefficients)[0]

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
        small = w.fused(p, w.binary("Mul", s, x), x)
        a = w.unary("Abs", x)
        e = w.unary("Exp", w.scalar("Muls", a, 2.0))
        q = with_number(w, "Div", w.scalar("Adds", e, 1.0), -2.0, first=True)
        large = self._signed(w.scalar("Adds", q, 1.0), x)
        return w.select(w.compare("GE", a, 0.6), large, small)

    def _erf(self, x: Value) -> Value:
        """x·P(x²) / Q(x²) within the limits beyond which it is ±1; what `Mins` makes of a NaN is
        not relied on."""
        w = self.w
        near = w.scalar("Maxs", w.scalar("Mins", x, _ERF_END), -_ERF_END)
        above, below = polynomials(w, w.binary("Mul", near, near), _ERF_ABOVE, _ERF_BELOW)
        made = w.binary("Div", w.binary("Mul", near, above), below)
        return w.select(w.compare("EQ", x, x), made, x)

    def _turned(self, x: Value, turn: float) -> Value:
        """sin(x + turn quarter turns): reduction by pi/2 in three parts (Cody and Waite)."""
        w = self.w
        k = w.cast(w.scalar("Muls", x, 0.6366197723675814), "float", "RINT")
        r = x
        for part in (1.5703125, 4.837512969970703e-4, 7.549789948768648e-8):
            r = w.binary("Add", r, w.scalar("Muls", k, -part))
        s = w.binary("Mul", r, r)
        sine = self._polynomial(s, (2.8327249e-06, -0.00019853073, 0.0083333794, -0.16666667))
        sine = w.fused(sine, w.binary("Mul", s, r), r)
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

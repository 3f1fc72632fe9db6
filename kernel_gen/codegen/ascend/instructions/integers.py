"""Ops on integers as vector instructions.

int32 and int16 are held in 32 bits, bytes in 16; results wrap as the type in which they are held
does. Those of bytes are within 16 bits.
"""

from __future__ import annotations

from kernel_gen.codegen.ascend.instructions.steps import SIZES, Value
from kernel_gen.codegen.ascend.instructions.writer import Const, Operand, Writer, wrapped_number
from kernel_gen.errors import InternalError
from kernel_gen.ir.dtype import DType

DIVISIONS = ("floor_div", "remainder", "fmod")


def shifted_left(w: Writer, v: Value, by: int) -> Value:
    """An integer times 2^by, as its bits wrap: `ShiftLeft` keeps the sign of signed words
    (its documentation: "the second most significant bit is discarded"), so as unsigned ones."""
    u = f".ReinterpretCast<u{v.ctype}>()"
    text = f"ShiftLeft({{d}}{u}, {v.token}{u}, static_cast<u{v.ctype}>({by}), {w.count(v.lanes)});"
    return w.lanewise(text, v.ctype, v.lanes, v)


def shortened(w: Writer, v: Value, bits: int, *, signed: bool) -> Value:
    """The lowest `bits` of an integer."""
    by = 8 * SIZES[v.ctype] - bits
    kind = v.ctype if signed else f"u{v.ctype}"
    at = "" if signed else f".ReinterpretCast<{kind}>()"
    left, n = shifted_left(w, v, by), w.count(v.lanes)
    text = f"ShiftRight({{d}}{at}, {left.token}{at}, static_cast<{kind}>({by}), {n});"
    return w.lanewise(text, v.ctype, v.lanes, left)


class Integers:
    """Computes statements on integers with a writer."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer

    def compute(self, op: str, args: list[Operand], *, narrow: bool) -> Value:
        """`op` on one value or two, or with a constant; `narrow`: of 16 bits at most."""
        w = self.w
        if len(args) == 1:
            a = args[0]
            assert isinstance(a, Value)
            return self._unary(op, a)
        a, b = args
        if op in ("shift_left", "shift_right"):
            assert isinstance(a, Value)
            assert isinstance(b, Const)
            return self._shift(op, a, int(b.value))
        first = next(x for x in args if isinstance(x, Value))
        if isinstance(b, Const) and isinstance(a, Value) and op in ("add", "sub", "mul"):
            c = int(b.value)
            if op == "mul" and a.ctype == "int16_t":
                c = wrapped_number(c, DType.I8)
            return w.scalar("Muls" if op == "mul" else "Adds", a, -c if op == "sub" else c)
        a, b = (
            w.constant(x.value, first.ctype, first.lanes) if isinstance(x, Const) else x
            for x in args
        )
        if op == "mul" and a.ctype == "int16_t":  # -128 … 127 times 0 … 255 is within 16 bits
            a = shortened(w, a, 8, signed=True)
        if op in DIVISIONS:
            return self._divided(op, a, b, narrow=narrow)
        if op.startswith("bitwise"):
            return self._bitwise(op, a, b)
        name = {"add": "Add", "sub": "Sub", "mul": "Mul", "maximum": "Max", "minimum": "Min"}[op]
        return w.binary(name, a, b)

    def _unary(self, op: str, a: Value) -> Value:
        w = self.w
        match op:
            case "neg":
                return w.scalar("Muls", a, -1)
            case "abs":
                return w.binary("Max", a, w.scalar("Muls", a, -1))
            case "relu":
                return w.scalar("Maxs", a, 0)
            case "sign":
                return self._sign(a)
            case "floor" | "ceil" | "round" | "trunc":
                return a
            case "bitwise_not":
                return w.scalar("Adds", w.scalar("Muls", a, -1), -1)
        raise InternalError(f"no instruction for {op} on integers")

    def _shift(self, op: str, a: Value, by: int) -> Value:
        w, n = self.w, self.w.count(a.lanes)
        bits = 8 * SIZES[a.ctype]
        if not 0 <= by < bits:
            by = bits - 1 if op == "shift_right" else bits
        if by == bits:
            return w.constant(0, a.ctype, a.lanes)
        if op == "shift_left":
            return shifted_left(w, a, by)
        text = f"ShiftRight({{d}}, {a.token}, static_cast<{a.ctype}>({by}), {n});"
        return w.lanewise(text, a.ctype, a.lanes, a)

    def _bitwise(self, op: str, a: Value, b: Value) -> Value:
        """On halves of words: the instructions know 16 bits only. a ^ b = (a | b) - (a & b)."""
        w = self.w
        lanes = w.join(a.lanes, b.lanes)
        a, b = w.spread(a, lanes), w.spread(b, lanes)

        def call(name: str) -> Value:
            h = ".ReinterpretCast<uint16_t>()"
            count = w.count(lanes) if a.ctype == "int16_t" else f"2 * {w.count(lanes)}"
            text = f"{name}({{d}}{h}, {a.token}{h}, {b.token}{h}, {count});"
            return w.lanewise(text, a.ctype, lanes, a, b)

        if op == "bitwise_xor":
            return w.binary("Sub", call("Or"), call("And"))
        return call("And" if op == "bitwise_and" else "Or")

    # ---- division ------------------------------------------------------------------------------

    def _divided(self, op: str, a: Value, b: Value, *, narrow: bool) -> Value:
        """Quotient or remainder. The chip divides floats only: quotients of 16-bit numbers, which
        differ from the next integer by 2^-16 of their size at least, are right at once; others are
        put right by the remainder, which integers give exactly."""
        w = self.w
        q, r = self._floored(a, b) if narrow else self._corrected(a, b)
        if op == "floor_div":
            return q
        if op == "remainder":
            return r
        opposite = w.scalar("Mins", w.binary("Mul", self._sign(a), self._sign(r)), 0)
        return w.binary("Add", r, w.binary("Mul", opposite, b))

    def _floored(self, a: Value, b: Value) -> tuple[Value, Value]:
        w = self.w
        ratio = w.binary("Div", w.cast(a, "float", "NONE"), w.cast(b, "float", "NONE"))
        q = w.cast(ratio, a.ctype, "FLOOR")
        return q, w.binary("Sub", a, w.binary("Mul", q, b))

    def _corrected(self, a: Value, b: Value) -> tuple[Value, Value]:
        """A first quotient is off by 2^-22 of itself, so that its remainder is at most 2^9 times
        the divisor; a second one, of that, leaves less than two divisors, on either side of 0."""
        w = self.w
        divisor = w.cast(b, "float", "NONE")
        q, r = None, a
        for _ in range(2):
            ratio = w.binary("Div", w.cast(r, "float", "NONE"), divisor)
            step = w.cast(ratio, "int32_t", "TRUNC")
            r = w.binary("Sub", r, w.binary("Mul", step, b))
            q = step if q is None else w.binary("Add", q, step)
        assert q is not None
        side = self._sign(b)
        for _ in range(2):  # on the other side of 0 than the divisor: one divisor too far
            below = w.scalar("Mins", w.binary("Mul", self._sign(r), side), 0)
            q, r = w.binary("Add", q, below), w.binary("Sub", r, w.binary("Mul", below, b))
        beyond = w.binary("Mul", self._sign(w.binary("Sub", r, b)), side)
        more = w.scalar("Mins", w.scalar("Adds", beyond, 1), 1)
        more = w.binary("Mul", more, w.binary("Mul", self._sign(r), side))  # 0 - b may overflow
        return w.binary("Add", q, more), w.binary("Sub", r, w.binary("Mul", more, b))

    def _sign(self, a: Value) -> Value:
        return self.w.scalar("Maxs", self.w.scalar("Mins", a, 1), -1)

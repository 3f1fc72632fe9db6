"""64-bit integers, of which the vector unit converts and copies whole ones only: compared and
narrowed by their words of 32 bits.

    v = high · 2³² + low, low unsigned
    a == b      high and low are both the same
    a <= b      the high words are less, or the same and the low ones are at most, unsigned

Values of 64 bits that are held in 32 (positions, what is converted from narrower types) are as they
are; a conversion to 32 bits saturates, and so keeps the order to a number within these bits.
"""

from __future__ import annotations

from kernel_gen.codegen.ascend.instructions.steps import Lanes, Value
from kernel_gen.codegen.ascend.instructions.writer import Const, Operand, Writer

_LEAST, _MOST = -(2**31), 2**31 - 1


def is_narrow(value: float | int | bool) -> bool:
    """Whether 32 bits hold an integer."""
    return _LEAST <= int(value) <= _MOST


class Words:
    """Compares and narrows with a writer."""

    def __init__(self, writer: Writer) -> None:
        self.w = writer

    def low(self, v: Value) -> Value:
        """The low words: the value as it wraps to 32 bits."""
        return self._gathered(v, 0) if v.ctype == "int64_t" else v

    def saturated(self, v: Operand, other: Operand) -> Operand | None:
        """`v` in 32 bits, if it compares with `other` as its 64 bits do."""
        if isinstance(v, Const):
            return v if is_narrow(v.value) else None
        if v.ctype != "int64_t":
            return v
        if isinstance(other, Const) and _LEAST < other.value < _MOST:
            return self.w.cast(v, "int32_t", "NONE")
        return None

    def equal(self, a: Operand, b: Operand) -> Value:
        """Whether two values, one of 64 bits, are the same."""
        (high_a, low_a), (high_b, low_b) = self._both(a, b)
        return self._and(self.w.compare("EQ", high_a, high_b), self.w.compare("EQ", low_a, low_b))

    def at_most(self, a: Operand, b: Operand) -> Value:
        """Whether a <= b."""
        w = self.w
        (high_a, low_a), (high_b, low_b) = self._both(a, b)
        same = w.compare("EQ", high_a, high_b)
        less = w.negated(self._ordered(high_b, high_a))
        # Signed as unsigned, half a range further on.
        below = self._ordered(*(w.scalar("Adds", low, _LEAST) for low in (low_a, low_b)))
        return w.binary("Max", w.as_half(less), self._and(same, below))

    def _ordered(self, a: Value, b: Value) -> Value:
        """a <= b of words: max(a, b) is b."""
        return self.w.compare("EQ", self.w.binary("Max", a, b), b)

    def _and(self, a: Value, b: Value) -> Value:
        return self.w.binary("Min", self.w.as_half(a), self.w.as_half(b))

    def _both(self, a: Operand, b: Operand) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
        lanes = next(x.lanes for x in (a, b) if isinstance(x, Value))
        return self._parts(a, lanes), self._parts(b, lanes)

    def _parts(self, v: Operand, lanes: Lanes) -> tuple[Value, Value]:
        """High and low words of a value, or of a constant on `lanes`."""
        w = self.w
        if isinstance(v, Const):
            number = int(v.value)
            return (
                w.constant(number >> 32, "int32_t", lanes),
                w.constant(number, "int32_t", lanes),
            )
        if v.ctype == "int64_t":
            return self._gathered(v, 4), self._gathered(v, 0)
        sign = w.scalar("Maxs", w.scalar("Mins", v, 0), -1)
        return sign, v

    def _gathered(self, v: Value, at: int) -> Value:
        """Every other word of a tile, the first one `at` bytes from its start."""
        w = self.w
        offsets = w.table("SpacedOffsets<int32_t>({d}, 2, tileLanes);", Lanes.FULL)
        text = (
            f"Gather({{d}}, {v.token}.ReinterpretCast<int32_t>(), "
            f"{offsets.token}.ReinterpretCast<uint32_t>(), static_cast<uint32_t>({at}), "
            f"static_cast<uint32_t>({w.count(v.lanes)}));"
        )
        return w.emit(text, "int32_t", v.lanes, v, offsets)

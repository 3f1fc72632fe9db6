"""Emits instructions on UB values: one method per shape of call, with broadcasts between lanes."""

from __future__ import annotations

import math
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kernel_gen.codegen.ascend.instructions.steps import (
    SIZES,
    Body,
    Lanes,
    Loop,
    Step,
    Value,
    lanes_of,
)
from kernel_gen.errors import InternalError, Refusal
from kernel_gen.ir.dtype import DType

if TYPE_CHECKING:
    from collections.abc import Iterator

HELD = {
    DType.F32: "float", DType.F16: "float", DType.BF16: "float", DType.I32: "int32_t",
    DType.I16: "int32_t", DType.I8: "int16_t", DType.U8: "int16_t", DType.BOOL: "half",
    DType.I64: "int32_t",
}  # fmt: skip
"""Type in which a value of a dtype is held in UB. Narrow floats are computed in fp32, narrow
integers in twice their bits (and wrapped), bools are 0 or 1 in half, i64 in 32 bits where it is a
position."""
_SELECTED_AS = {"int32_t": "float", "int16_t": "half"}
"""Types that `Select` does not know, and those of the same size that it takes instead."""

_COUNTS = {Lanes.FULL: "n", Lanes.ROW: "rn", Lanes.COL: "cn"}


class UnfitError(Exception):
    """A schedule whose choices do not go together; becomes a Refusal at the template's door."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.sentence)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class Const:
    """A scalar known when the kernel is generated."""

    value: float | int | bool
    dtype: DType


Operand = Value | Const


def wrapped_number(value: float | int | bool, dtype: DType) -> int:
    """An integer as it wraps to the bits of an integer type."""
    count = 1 << 8 * dtype.bytes
    low = 0 if dtype is DType.U8 else -count // 2
    return (int(value) - low) % count + low


def literal(value: float | int | bool, ctype: str) -> str:
    """C++ text of a scalar of a held type."""
    if ctype == "int32_t":
        return f"static_cast<int32_t>({wrapped_number(value, DType.I32)}LL)"
    if ctype == "int16_t":
        return f"static_cast<int16_t>({wrapped_number(value, DType.I16)})"
    if ctype == "half":
        return f"static_cast<half>({float(value)}f)"
    rounded = np.float32(value)
    if not math.isfinite(rounded):
        return f"FromBits(0x{rounded.view(np.uint32):08x}u)"
    return f"{float(rounded)!r}f"


class Writer:
    """Instructions of one phase, appended to the innermost open body."""

    def __init__(self, unit_lanes: int) -> None:
        self.unit_lanes = unit_lanes  # every count is a multiple of it
        self.body: Body = []
        self._head: Body = self.body
        self._count = 0
        self._blocks: dict[int, Value] = {}
        self._spreads: dict[tuple[int, Lanes], Value] = {}
        self._tables: dict[str, Value] = {}

    # ---- primitives ----------------------------------------------------------------------------

    def new(self, ctype: str, lanes: Lanes, home: str = "calc", queue: int = -1) -> Value:
        self._count += 1
        return Value(self._count, ctype, lanes, home, queue)

    def step(
        self,
        text: str,
        reads: tuple[Value, ...] = (),
        writes: tuple[Value, ...] = (),
        *,
        vector: bool = True,
        in_place: bool = False,
    ) -> None:
        self.body.append(Step(text, reads, writes, vector, in_place))

    @contextmanager
    def loop(self, head: str) -> Iterator[None]:
        """Steps made within lie in a loop; what is cached there is forgotten at its end."""
        outer, blocks, spreads = self.body, dict(self._blocks), dict(self._spreads)
        inner = Loop(head)
        outer.append(inner)
        self.body = inner.body
        yield
        self.body, self._blocks, self._spreads = outer, blocks, spreads

    @contextmanager
    def head(self) -> Iterator[None]:
        """Steps made within come before the tasks, with what the phase knows from the start."""
        outer, loops = self.body, [item for item in self._head if isinstance(item, Loop)]
        first = self._head.index(loops[0]) if loops else len(self._head)
        self.body = []
        yield
        self._head[first:first] = self.body
        self.body = outer

    @contextmanager
    def noted(self, note: str) -> Iterator[None]:
        """Steps made within have a comment before them."""
        body, start = self.body, len(self.body)
        yield
        first = body[start] if start < len(body) else None
        if isinstance(first, Step) and not first.note:
            first.note = note

    def table(self, text: str, lanes: Lanes, ctype: str = "int32_t") -> Value:
        """Numbers that are the same for all tiles, made once before the tasks."""
        if text not in self._tables:
            with self.head():
                self._tables[text] = self.emit(text, ctype, lanes)
        return self._tables[text]

    def count(self, lanes: Lanes) -> str:
        return _COUNTS.get(lanes, str(self.unit_lanes))

    def emit(self, text: str, ctype: str, lanes: Lanes, *reads: Value) -> Value:
        """A step whose text names its result `{d}`."""
        made = self.new(ctype, lanes)
        self.step(text.replace("{d}", made.token), reads, (made,))
        return made

    def lanewise(self, text: str, ctype: str, lanes: Lanes, *reads: Value) -> Value:
        """The same for an instruction that may overwrite an operand."""
        made = self.new(ctype, lanes)
        self.step(text.replace("{d}", made.token), reads, (made,), in_place=True)
        return made

    # ---- instructions --------------------------------------------------------------------------

    def unary(self, name: str, a: Value) -> Value:
        return self.lanewise(
            f"{name}({{d}}, {a.token}, {self.count(a.lanes)});", a.ctype, a.lanes, a
        )

    def scalar(self, name: str, a: Value, value: float | int | bool) -> Value:
        """Adds, Muls, Maxs, Mins and their kin."""
        text = f"{name}({{d}}, {a.token}, {literal(value, a.ctype)}, {self.count(a.lanes)});"
        return self.lanewise(text, a.ctype, a.lanes, a)

    def cast(self, a: Value, ctype: str, mode: str) -> Value:
        text = f"Cast({{d}}, {a.token}, RoundMode::CAST_{mode}, {self.count(a.lanes)});"
        return self.lanewise(text, ctype, a.lanes, a)

    def constant(self, value: float | int | bool, ctype: str, lanes: Lanes) -> Value:
        return self.emit(
            f"Duplicate({{d}}, {literal(value, ctype)}, {self.count(lanes)});", ctype, lanes
        )

    def binary(self, name: str, a: Value, b: Value) -> Value:
        """`name` on two tensors; the one with fewer lanes is read with stride 0 where it can be."""
        lanes = self.join(a.lanes, b.lanes)
        if a.lanes is b.lanes:
            text = f"{name}({{d}}, {a.token}, {b.token}, {self.count(lanes)});"
            return self.lanewise(text, a.ctype, lanes, a, b)
        if lanes not in (a.lanes, b.lanes):
            a = self.spread(a, lanes)
        swapped = a.lanes is not lanes
        wide, narrow = (b, a) if swapped else (a, b)
        kind = f"<{name}Op, {'true' if swapped else 'false'}>"
        if narrow.lanes is Lanes.ONE:
            one = self.blocks(narrow)
            text = f"OneWise{kind}({{d}}, {wide.token}, {one.token}, {self.count(lanes)});"
            return self.lanewise(text, a.ctype, lanes, wide, one)
        if narrow.lanes is Lanes.COL:
            text = f"ColWise{kind}({{d}}, {wide.token}, {narrow.token}, rows, pitch, n);"
            return self.lanewise(text, a.ctype, lanes, wide, narrow)
        blocks = self.blocks(narrow)
        text = f"RowWise{kind}({{d}}, {wide.token}, {blocks.token}, rows, pitch, n);"
        return self.lanewise(text, a.ctype, lanes, wide, blocks)

    def copied(self, v: Value) -> Value:
        """The same elements in a buffer of their own."""
        blocks = f"rows * {32 // SIZES[v.ctype]}"
        count = blocks if v.lanes is Lanes.BLOCKS else self.count(v.lanes)
        return self.emit(f"DataCopy({{d}}, {v.token}, {count});", v.ctype, v.lanes, v)

    def fused(self, a: Value, b: Value, c: Value) -> Value:
        """a · b + c, rounded once, in the buffer of `a`, which nothing else reads. The others have
        the lanes of `a`, or those of a column where it is a tile."""
        text = f"FusedMulAdd({{d}}, {b.token}, {c.token}, {self.count(a.lanes)});"
        if not a.lanes is b.lanes is c.lanes:
            full = ", ".join("true" if v.lanes is a.lanes else "false" for v in (b, c))
            text = f"FusedColWise<{full}>({{d}}, {b.token}, {c.token}, rows, pitch, n);"
        made = self.new(a.ctype, a.lanes)
        self.body.append(Step(text.replace("{d}", made.token), (a, b, c), (made,), onto=a))
        return made

    def flipped(self, bits: Value) -> Value:
        """Bits the other way round."""
        words = ".ReinterpretCast<uint16_t>()"
        count = f"{self.count(bits.lanes)} / 16"
        text = f"Not({{d}}{words}, {bits.token}{words}, {count});"
        return self.emit(text, "bits", bits.lanes, bits)

    def join(self, a: Lanes, b: Lanes) -> Lanes:
        return lanes_of(a.axes[0] or b.axes[0], a.axes[1] or b.axes[1])

    def blocks(self, v: Value) -> Value:
        """A block of 32 B per element of a row vector (or the single element)."""
        if v.number not in self._blocks:
            lanes = Lanes.BLOCKS if v.lanes is Lanes.ROW else Lanes.BLOCK
            rows = "rows" if v.lanes is Lanes.ROW else "1"
            self._blocks[v.number] = self.emit(
                f"RowBlocks({{d}}, {v.token}, {rows});", v.ctype, lanes, v
            )
        return self._blocks[v.number]

    def spread(self, v: Value, lanes: Lanes) -> Value:
        """The value with an element for each lane of `lanes`."""
        if v.lanes is lanes:
            return v
        if v.ctype == "int64_t":
            raise UnfitError(
                Refusal("op-not-on-device", "the vector unit spreads no 64-bit integers")
            )
        key = (v.number, lanes)
        if key in self._spreads:
            return self._spreads[key]
        if v.lanes is Lanes.ONE:
            zero = self.constant(1, v.ctype, lanes)
            made = self.binary("Mul", zero, v)
        elif v.lanes is Lanes.COL:
            made = self.emit(
                f"SpreadCol({{d}}, {v.token}, rows, pitch, n);", v.ctype, Lanes.FULL, v
            )
        elif v.lanes is Lanes.ROW:
            one = self.blocks(v)
            made = self.emit(
                f"SpreadRow({{d}}, {one.token}, rows, pitch, n);", v.ctype, Lanes.FULL, one
            )
        else:
            raise InternalError(f"{v.lanes} does not spread to {lanes}")
        self._spreads[key] = made
        return made

    # ---- comparison and selection ----------------------------------------------------------------

    def compare(self, mode: str, a: Value, b: Value | float | int) -> Value:
        """Bits of `a mode b` per lane."""
        if not isinstance(b, Value):
            text = (
                f"CompareScalar({{d}}, {a.token}, {literal(b, a.ctype)}, CMPMODE::{mode}, "
                f"{self.count(a.lanes)});"
            )
            return self.emit(text, "bits", a.lanes, a)
        lanes = self.join(a.lanes, b.lanes)
        a, b = self.spread(a, lanes), self.spread(b, lanes)
        text = f"Compare({{d}}, {a.token}, {b.token}, CMPMODE::{mode}, {self.count(lanes)});"
        return self.emit(text, "bits", lanes, a, b)

    def select(self, bits: Value, a: Value, b: Value | float | int) -> Value:
        """`a` where the bit is set, else `b`; all of the same lanes."""
        known = _SELECTED_AS.get(a.ctype)
        at = f".ReinterpretCast<{known}>()" if known else ""
        mode = "TENSOR" if isinstance(b, Value) else "SCALAR"
        other = f"{b.token}{at}" if isinstance(b, Value) else literal(b, a.ctype)
        if at and not isinstance(b, Value):
            b = self.constant(b, a.ctype, a.lanes)
            mode, other = "TENSOR", f"{b.token}{at}"
        text = (
            f"Select({{d}}{at}, {bits.token}, {a.token}{at}, {other}, "
            f"SELMODE::VSEL_TENSOR_{mode}_MODE, {self.count(a.lanes)});"
        )
        reads = (bits, a, b) if isinstance(b, Value) else (bits, a)
        return self.lanewise(text, a.ctype, a.lanes, *reads)

    def negated(self, v: Value) -> Value:
        """The opposite of a bool."""
        if v.ctype == "bits":
            return self.flipped(v)
        return self.scalar("Adds", self.scalar("Muls", self.as_half(v), -1.0), 1.0)

    def as_half(self, v: Value) -> Value:
        """A bool as 0 or 1."""
        if v.ctype != "bits":
            return v
        return self.select(v, self.constant(1, "half", v.lanes), 0)

    def as_bits(self, v: Value) -> Value:
        """A bool as bits."""
        return v if v.ctype == "bits" else self.compare("NE", v, 0)

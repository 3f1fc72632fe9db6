"""What a kernel does inside the unified buffer (UB): values, instructions and loops, before layout.

A `Value` is one tensor in UB, written once (accumulators: updated in place). A `Step` is a few
lines of Ascend C in which `@7@` stands for value 7. `layout` beside it gives values
buffers by lifetime and puts barriers between dependent vector instructions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum


class Lanes(StrEnum):
    """Which part of a tile a value has elements for: `rows` x `pitch`, one row, one column …"""

    FULL = "full"
    ROW = "row"  # one element per row
    COL = "col"  # one element per column
    ONE = "one"
    WIDE = "wide"  # 64 elements per row: partial sums
    HALF = "half"  # half a tile: scratch of a fold, which may lie on the folded tile itself
    BLOCKS = "blocks"  # one block of 32 B per row, all lanes equal
    BLOCK = "block"  # 8 blocks of 32 B, all lanes equal
    CROSS = "cross"  # a transposed tile: `pitch` rows of `tileHeight` lanes, rounded up to 16
    SPACED2 = "spaced2"  # a tile with 2, 3, 4 lanes for each of its own: what lies between too
    SPACED3 = "spaced3"
    SPACED4 = "spaced4"

    @property
    def axes(self) -> tuple[bool, bool]:
        """Whether the value lives on the row axis and on the column axis."""
        return self in (Lanes.FULL, Lanes.ROW), self in (Lanes.FULL, Lanes.COL)


SPACED = {2: Lanes.SPACED2, 3: Lanes.SPACED3, 4: Lanes.SPACED4}
"""Tiles as they lie in memory where neighbouring lanes are some elements apart."""


def lanes_of(row: bool, col: bool) -> Lanes:
    """The lanes of a value that lives on the row axis, the column axis, both or none."""
    if row:
        return Lanes.FULL if col else Lanes.ROW
    return Lanes.COL if col else Lanes.ONE


SIZES = {
    "float": 4, "half": 2, "bfloat16_t": 2, "int32_t": 4, "uint32_t": 4, "int64_t": 8,
    "int16_t": 2, "int8_t": 1, "uint8_t": 1, "bits": 0,
}  # fmt: skip
"""Bytes per lane of the types in which a value is held; `bits` is one bit per lane."""


@dataclass(slots=True, eq=False)
class Value:
    """A tensor in UB. `home` is "calc" (a buffer of its own), "in" or "out" (a queue's tensor), or
    "scalar": copied for the scalar unit alone."""

    number: int
    ctype: str
    lanes: Lanes
    home: str = "calc"
    queue: int = -1
    pinned: bool = False  # an accumulator: may not become the tensor of a queue
    once: bool = False  # read once for all tasks: its queue needs one buffer only

    @property
    def token(self) -> str:
        return f"@{self.number}@"


@dataclass(slots=True, eq=False)
class Step:
    """Lines of text, the values they read and write, and whether the vector unit runs them.
    `in_place`: lane by lane, so that the result may overwrite an operand of its own shape; `onto`:
    the operand that it must overwrite, which nothing reads afterwards; `note`: a comment, on the
    first of the steps that make up an op."""

    text: str
    reads: tuple[Value, ...] = ()
    writes: tuple[Value, ...] = ()
    vector: bool = True
    in_place: bool = False
    onto: Value | None = None
    note: str = ""


@dataclass(slots=True, eq=False)
class Loop:
    """A `for` loop around steps."""

    head: str
    body: list[Step | Loop] = field(default_factory=list)


Body = list[Step | Loop]


def steps_of(body: Body) -> Iterator[Step]:
    """All steps, loops entered once."""
    for item in body:
        if isinstance(item, Loop):
            yield from steps_of(item.body)
        else:
            yield item

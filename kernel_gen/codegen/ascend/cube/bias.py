"""A bias's way to the cube unit's bias table, as text.

    GM -> L1, a tile's columns, for all tiles that share them -> the table, a strip's, as floats

A strip's first product starts from the table instead of zero. The row in L1 lies at A1: fills and
copies of rows with tails are documented for that position, and the way to the table for all of L1.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.ascend.moves.addresses import Place

ROOM_BYTES = 512 * 4 + 32
"""What the columns of the widest tile take of L1, with a block of zeros behind them."""


@dataclass(frozen=True, slots=True)
class BiasRow:
    """One number per column of the result. `offset` is C++ text of the first one's place for the
    batch axes; `size` bytes each."""

    place: Place
    offset: str
    size: int


def declared(b: BiasRow) -> list[str]:
    return [
        "TQue<TPosition::A1, 1> biasQueue;  // a tile's columns of the bias",
        "TQue<TPosition::C2, 1> tableQueue;  // a strip's",
        f"pipe.InitBuffer(biasQueue, 1, static_cast<uint32_t>(tileN * {b.size} + 32));",
        "pipe.InitBuffer(tableQueue, 1, static_cast<uint32_t>(UpTo(strip, 32) * 4));",
        f"LocalTensor<{b.place.ctype}> bias;",
    ]


def fetched(b: BiasRow) -> list[str]:
    """At the first of some tiles that share their columns."""
    kind = b.place.ctype
    return [
        "if (keptPanel != task / tilesM) {",
        "    if (keptPanel >= 0) {",
        "        biasQueue.FreeTensor(bias);",
        "    }",
        f"    bias = biasQueue.AllocTensor<{kind}>();",
        f"    CopyRow(bias, {b.place.name}[{b.offset} + n0], n);",
        "    biasQueue.EnQue(bias);",
        f"    bias = biasQueue.DeQue<{kind}>();",
        "}",
    ]


def tabled(b: BiasRow) -> list[str]:
    """Where a strip begins; the table is filled in units of 64 B of L1."""
    return [
        "LocalTensor<float> table = tableQueue.AllocTensor<float>();",
        f"const int32_t units = UpTo(width * {b.size}, 64) / 64;",
        "DataCopy(table, bias[n1], DataCopyParams(1, static_cast<uint16_t>(units), 0, 0));",
        "tableQueue.EnQue(table);",
    ]


def multiplied(product: list[str]) -> list[str]:
    """The strip's first product from the table, the others as `product` has it."""
    return [
        "if (chunk == 0 && k0 == 0) {",
        "    LocalTensor<float> table = tableQueue.DeQue<float>();",
        "    Mmad(c[at], a2, b2, table,",
        "         MmadParams(static_cast<uint16_t>(rows), static_cast<uint16_t>(width),",
        "                    static_cast<uint16_t>(k), 0, true, false));",
        "    tableQueue.FreeTensor(table);",
        "} else {",
        *("    " + line for line in product),
        "}",
    ]

"""Guarded loads as clipped copies: the part of a tile that the guards let through is copied, the
rest holds the fill.

    where guards on the tile's axes leave rows [2, 5) and columns [0, 7):

    fill fill fill …
    fill fill fill …
    x    x    x    …        one DataCopyPad of 3 rows x 7 columns, padded left and right to 32 B
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernel_gen.codegen.ascend.instructions.steps import Lanes
from kernel_gen.codegen.ascend.instructions.writer import literal
from kernel_gen.codegen.ascend.moves.addresses import Addresses, Place
from kernel_gen.codegen.flat.linear import FlatLoad, dim_text
from kernel_gen.ir.index import AxisTerm, Index
from kernel_gen.ir.loopnest import Guard


@dataclass(frozen=True, slots=True)
class Clip:
    """The rectangle that the guards of a load cut out of a tile with these axes; neighbouring
    columns lie `spacing` elements apart in memory."""

    load: FlatLoad
    place: Place
    lanes: Lanes
    row: str
    col: str
    spacing: int = 1

    def is_possible(self) -> bool:
        """Whether the guards cut a rectangle, which lies in memory as a tile does."""
        at, row, col = self.load.at, self.row, self.col
        if not self.load.guards or self.place.ctype == "int64_t" or at.statements():
            return False
        if self.place.ctype == "bfloat16_t" and self.load.fill:
            return False  # no public way to write such a constant
        if not (at.is_affine_in(row) and at.is_affine_in(col)):
            return False
        if self.lanes.axes[1]:
            along = at.coeff(col).const == self.spacing
        else:
            along = self.lanes is Lanes.ROW and at.coeff(row).const == 1
        return along and all(self._is_cut(guard.index) for guard in self.load.guards)

    def _is_cut(self, index: Index) -> bool:
        """Whether a guard's index runs with one axis of the tile at most: with the copied columns
        step by step, with rows upwards."""
        inside = [axis for axis in (self.row, self.col) if axis and index.coeff(axis)]
        plain = all(isinstance(term, AxisTerm) for term, _ in index.terms)
        if not plain or len(inside) > 1:
            return False
        if self.col in inside:
            return index.coeff(self.col) == self.spacing
        step = index.coeff(self.row)
        return all(step == 1 if self.lanes is Lanes.ROW else step > 0 for _ in inside)

    def copy(self, addresses: Addresses, bound: Mapping[str, str], n: str) -> str:
        """The copy into `{d}` of `n` elements; axes are bound to where the tile starts. Columns
        that are apart come with all that lies between them."""
        load, shape = self.load, tile_shape(self.lanes, self.spacing)
        n = n if self.spacing == 1 else f"{self.spacing} * {n}"
        strided = self.lanes is Lanes.FULL and self.row
        stride = load.at.coeff(self.row).text() if strided else "0"
        at = addresses.offset(load.at, bound)
        lines = [
            f"int32_t rowLow = 0, rowHigh = {shape[0]}, colLow = 0, colHigh = {shape[1]};",
            *(self._narrowed(guard, addresses, bound) for guard in load.guards),
            f"CopyInPart({{d}}, {self.place.name}, static_cast<int64_t>({at}), {', '.join(shape)},",
            f"           {stride}, {n}, {_fill(load, self.place)}, "
            "rowLow, rowHigh, colLow, colHigh);",
        ]
        return "\n".join(["{", *("    " + line for line in lines), "}"])

    def _narrowed(self, guard: Guard, addresses: Addresses, bound: Mapping[str, str]) -> str:
        base = addresses.index(guard.index, bound) or "0"
        ends = [f"{guard.low} - ({base})", f"{dim_text(guard.high)} - ({base})"]
        step = guard.index.coeff(self.row) if self.lanes.axes[0] and self.row else 0
        along_col = self.lanes.axes[1] and guard.index.coeff(self.col)
        if along_col or (step and self.lanes is Lanes.ROW):
            return f"Narrow(colLow, colHigh, {', '.join(ends)});"
        if not step:
            return f"rowHigh = {addresses.guarded([guard], bound)} ? rowHigh : rowLow;"
        if step > 1:  # rounded up: the first row at or beyond each limit
            ends = [f"-FloorDivide(-({end}), {step})" for end in ends]
        return f"Narrow(rowLow, rowHigh, {', '.join(ends)});"


def tile_shape(lanes: Lanes, spacing: int = 1) -> tuple[str, str, str]:
    """Rows, columns and pitch of a copy of a tile, as text; with all that lies between columns."""
    if lanes is Lanes.ROW:
        return "1", "rows", "rows"
    rows = {Lanes.FULL: "rows", Lanes.COL: "1"}[lanes]
    if spacing == 1:
        return rows, "cols", "pitch"
    return rows, f"(cols - 1) * {spacing} + 1", f"{spacing} * pitch"


def _fill(load: FlatLoad, place: Place) -> str:
    """The fill as a value of the storage type."""
    if place.ctype == "bfloat16_t":
        return "bfloat16_t{}"
    if place.ctype in ("int8_t", "uint8_t", "int16_t"):
        return f"static_cast<{place.ctype}>({int(load.fill)})"
    if place.ctype == "half":
        return f"static_cast<half>({literal(load.fill, 'float')})"
    return literal(load.fill, place.ctype)

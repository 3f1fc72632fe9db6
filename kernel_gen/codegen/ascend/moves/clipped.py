"""Guarded loads as clipped copies: the part of a tile that the guards let through is copied, the
rest holds the fill.

    where guards on the tile's axes leave rows [2, 5) and columns [0, 7):

    fill fill fill …
    fill fill fill …
    x    x    x    …        one DataCopyPad of 3 rows x 7 columns, padded left and right to 32 B
"""

from __future__ import annotations

from collections.abc import Mapping

from kernel_gen.codegen.ascend.instructions.steps import Lanes
from kernel_gen.codegen.ascend.instructions.writer import literal
from kernel_gen.codegen.ascend.moves.addresses import Addresses, Place
from kernel_gen.codegen.flat.linear import FlatLoad, dim_text
from kernel_gen.ir.index import AxisTerm, Index
from kernel_gen.ir.loopnest import Guard


def clips(load: FlatLoad, place: Place, lanes: Lanes, row: str, col: str, spacing: int = 1) -> bool:
    """Whether the guards of a load cut a rectangle out of its tile that lies in memory as a tile
    does, neighbouring columns `spacing` elements apart."""
    at = load.at
    if not load.guards or place.ctype == "int64_t" or at.statements():
        return False
    if place.ctype == "bfloat16_t" and load.fill:
        return False  # no public way to write such a constant
    if not (at.is_affine_in(row) and at.is_affine_in(col)):
        return False
    if lanes.axes[1]:
        along = at.coeff(col).const == spacing
    else:
        along = lanes is Lanes.ROW and at.coeff(row).const == 1
    return along and all(_is_cut(guard.index, lanes, row, col, spacing) for guard in load.guards)


def clipped_copy(
    load: FlatLoad,
    place: Place,
    lanes: Lanes,
    addresses: Addresses,
    bound: Mapping[str, str],
    row: str,
    col: str,
    n: str,
    spacing: int = 1,
) -> str:
    """The copy into `{d}`; axes are bound to where the tile starts. Columns that are `spacing`
    apart come with all that lies between them."""
    shape = tile_shape(lanes, spacing)
    n = n if spacing == 1 else f"{spacing} * {n}"
    stride = load.at.coeff(row).text() if lanes is Lanes.FULL and row else "0"
    at = addresses.offset(load.at, bound)
    lines = [
        f"int32_t rowLow = 0, rowHigh = {shape[0]}, colLow = 0, colHigh = {shape[1]};",
        *(_narrowed(guard, lanes, addresses, bound, row, col) for guard in load.guards),
        f"CopyInPart({{d}}, {place.name}, static_cast<int64_t>({at}), {', '.join(shape)},",
        f"           {stride}, {n}, {_fill(load, place)}, rowLow, rowHigh, colLow, colHigh);",
    ]
    return "\n".join(["{", *("    " + line for line in lines), "}"])


def tile_shape(lanes: Lanes, spacing: int = 1) -> tuple[str, str, str]:
    """Rows, columns and pitch of a copy of a tile, as text; with all that lies between columns."""
    if lanes is Lanes.ROW:
        return "1", "rows", "rows"
    rows = {Lanes.FULL: "rows", Lanes.COL: "1"}[lanes]
    if spacing == 1:
        return rows, "cols", "pitch"
    return rows, f"(cols - 1) * {spacing} + 1", f"{spacing} * pitch"


def _is_cut(index: Index, lanes: Lanes, row: str, col: str, spacing: int) -> bool:
    """Whether a guard's index runs with one axis of the tile at most: with the copied columns step
    by step, with rows upwards."""
    inside = [axis for axis in (row, col) if axis and index.coeff(axis)]
    plain = all(isinstance(term, AxisTerm) for term, _ in index.terms)
    if not plain or len(inside) > 1:
        return False
    if col in inside:
        return index.coeff(col) == spacing
    is_step = lanes is Lanes.ROW
    return all(index.coeff(row) == 1 if is_step else index.coeff(row) > 0 for _ in inside)


def _narrowed(
    guard: Guard, lanes: Lanes, addresses: Addresses, bound: Mapping[str, str], row: str, col: str
) -> str:
    base = addresses.index(guard.index, bound) or "0"
    limits = f"{guard.low} - ({base}), {dim_text(guard.high)} - ({base})"
    along_row = lanes.axes[0] and row and guard.index.coeff(row)
    along_col = lanes.axes[1] and guard.index.coeff(col)
    if along_col or (along_row and lanes is Lanes.ROW):
        return f"Narrow(colLow, colHigh, {limits});"
    if along_row:
        step = guard.index.coeff(row)
        if step > 1:  # rounded up: the first row at or beyond each limit
            ends = (f"{guard.low} - ({base})", f"{dim_text(guard.high)} - ({base})")
            limits = ", ".join(f"-FloorDivide(-({end}), {step})" for end in ends)
        return f"Narrow(rowLow, rowHigh, {limits});"
    return f"rowHigh = {addresses.guarded([guard], bound)} ? rowHigh : rowLow;"


def _fill(load: FlatLoad, place: Place) -> str:
    """The fill as a value of the storage type."""
    if place.ctype == "bfloat16_t":
        return "bfloat16_t{}"
    if place.ctype in ("int8_t", "uint8_t", "int16_t"):
        return f"static_cast<{place.ctype}>({int(load.fill)})"
    if place.ctype == "half":
        return f"static_cast<half>({literal(load.fill, 'float')})"
    return literal(load.fill, place.ctype)

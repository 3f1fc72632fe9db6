"""Guarded loads as clipped copies: the part of a tile that the guards let through is copied, the
rest holds the fill.

    where guards on the tile's axes leave rows [2, 5) and columns [0, 7):

    fill fill fill …
    fill fill fill …
    x    x    x    …        one DataCopyPad of 3 rows x 7 columns, padded left and right to 32 B
"""

from __future__ import annotations

from collections.abc import Mapping

from kernel_gen.codegen.ascend.addresses import Addresses, Place
from kernel_gen.codegen.ascend.steps import Lanes
from kernel_gen.codegen.ascend.writer import literal
from kernel_gen.codegen.cpu.linear import FlatLoad, dim_text
from kernel_gen.ir.index import AxisTerm, Index
from kernel_gen.ir.loopnest import Guard

CLIPPED_COPIES = {
    "Narrow": """\
// Shrinks [low, high) to what lies in [from, to).
__aicore__ inline void Narrow(int32_t &low, int32_t &high, int64_t from, int64_t to)
{
    low = from > low ? AtMost(from, high) : low;
    high = to < high ? static_cast<int32_t>(to < low ? low : to) : high;
}""",
    "FillLanes": """\
// `n` lanes of any type but 8-byte ones, all of them `fill`.
template <typename T>
__aicore__ inline void FillLanes(const LocalTensor<T> &d, T fill, int32_t n)
{
    if constexpr (sizeof(T) == 1) {
        const int16_t twice = static_cast<int16_t>(static_cast<uint8_t>(fill) * 0x0101);
        Duplicate(d.template ReinterpretCast<int16_t>(), twice, n / 2);
    } else {
        Duplicate(d, fill, n);
    }
}""",
    "CopyInPart": """\
// As CopyIn, of the rows and columns within the bounds; the other lanes are `fill`. `at` is where
// the tile's first element would lie.
template <typename T>
__aicore__ inline void CopyInPart(const LocalTensor<T> &d, const GlobalTensor<T> &x, int64_t at,
                                  int32_t rows, int32_t cols, int32_t pitch, int64_t stride,
                                  int32_t n, T fill, int32_t rowLow, int32_t rowHigh,
                                  int32_t colLow, int32_t colHigh)
{
    if (rowLow == 0 && colLow == 0 && rowHigh == rows && colHigh == cols) {
        CopyIn(d, x[at], rows, cols, pitch, stride, n);
        return;
    }
    PipeBarrier<PIPE_V>();  // the buffer may have been read as another tensor
    FillLanes(d, fill, n);
    WaitFor<HardEvent::V_MTE2>();
    if (rowLow >= rowHigh || colLow >= colHigh) {
        return;
    }
    constexpr int32_t size = static_cast<int32_t>(sizeof(T));
    const int32_t start = colLow / kBlock<T> * kBlock<T>;
    const int32_t left = colLow - start;
    const int32_t width = UpTo(colHigh - start, kBlock<T>);
    const DataCopyPadExtParams<T> pad(true, static_cast<uint8_t>(left),
                                      static_cast<uint8_t>(start + width - colHigh), fill);
    const uint32_t bytes = static_cast<uint32_t>((colHigh - colLow) * size);
    const int32_t inside = rowHigh - rowLow;
    const int64_t gap = stride * size - bytes;
    const int64_t from = at + rowLow * stride + colLow;
    if (inside == 1 || (gap >= 0 && gap < 0x7fffffff)) {
        const uint32_t apart = inside == 1 ? 0 : static_cast<uint32_t>(gap);
        const uint32_t skip = inside == 1 ? 0 : static_cast<uint32_t>((pitch - width) / kBlock<T>);
        DataCopyPad(d[rowLow * pitch + start], x[from],
                    DataCopyExtParams(static_cast<uint16_t>(inside), bytes, apart, skip, 0), pad);
        return;
    }
    for (int32_t r = 0; r < inside; r++) {
        DataCopyPad(d[(rowLow + r) * pitch + start], x[from + r * stride],
                    DataCopyExtParams(1, bytes, 0, 0, 0), pad);
    }
}""",
}
"""Device functions, as in `device.FUNCTIONS`."""


def clips(load: FlatLoad, place: Place, lanes: Lanes, row: str, col: str) -> bool:
    """Whether the guards of a load cut a rectangle out of its tile that lies in memory as a tile
    does."""
    at = load.at
    if not load.guards or place.ctype == "int64_t" or at.statements():
        return False
    if place.ctype == "bfloat16_t" and load.fill:
        return False  # no public way to write such a constant
    if not (at.is_affine_in(row) and at.is_affine_in(col)):
        return False
    if lanes.axes[1]:
        along = at.coeff(col).const == 1
    else:
        along = lanes is Lanes.ROW and at.coeff(row).const == 1
    return along and all(_is_cut(guard.index, row, col) for guard in load.guards)


def clipped_copy(
    load: FlatLoad,
    place: Place,
    lanes: Lanes,
    addresses: Addresses,
    bound: Mapping[str, str],
    row: str,
    col: str,
    n: str,
) -> str:
    """The copy into `{d}`; axes are bound to where the tile starts."""
    shape = {
        Lanes.FULL: ("rows", "cols", "pitch"),
        Lanes.COL: ("1", "cols", "pitch"),
        Lanes.ROW: ("1", "rows", "rows"),
    }[lanes]
    stride = load.at.coeff(row).text() if lanes is Lanes.FULL and row else "0"
    at = addresses.offset(load.at, bound)
    lines = [
        f"int32_t rowLow = 0, rowHigh = {shape[0]}, colLow = 0, colHigh = {shape[1]};",
        *(_narrowed(guard, lanes, addresses, bound, row, col) for guard in load.guards),
        f"CopyInPart({{d}}, {place.name}, static_cast<int64_t>({at}), {', '.join(shape)},",
        f"           {stride}, {n}, {_fill(load, place)}, rowLow, rowHigh, colLow, colHigh);",
    ]
    return "\n".join(["{", *("    " + line for line in lines), "}"])


def _is_cut(index: Index, row: str, col: str) -> bool:
    """Whether a guard's index runs with one axis of the tile at most, step by step."""
    inside = [axis for axis in (row, col) if axis and index.coeff(axis)]
    plain = all(isinstance(term, AxisTerm) for term, _ in index.terms)
    return plain and len(inside) <= 1 and all(index.coeff(axis) == 1 for axis in inside)


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

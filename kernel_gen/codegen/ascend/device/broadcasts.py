"""Instructions on a tile and on a row, a column or an element that is read with stride 0."""

from __future__ import annotations

BROADCASTS: dict[str, str] = {
    "ColWise": """\
// d[r][c] = a[r][c] op v[c], or v[c] op a[r][c].
template <typename Op, bool swapped, typename T>
__aicore__ inline void ColWise(const LocalTensor<T> &d, const LocalTensor<T> &a,
                               const LocalTensor<T> &v, int32_t rows, int32_t pitch, int32_t n)
{
    if (rows == 1) {
        Op::Run(d, swapped ? v : a, swapped ? a : v, n);
        return;
    }
    const int32_t blocks = pitch / kBlock<T>;
    if (blocks > 255 || rows * kLanes<T> < pitch) {
        for (int32_t r = 0; r < rows; r++) {
            const auto line = a[r * pitch];
            Op::Run(d[r * pitch], swapped ? v : line, swapped ? line : v, pitch);
        }
    } else {
        const uint8_t step = static_cast<uint8_t>(blocks);
        const BinaryRepeatParams strides(1, 1, 1, step, swapped ? 0 : step, swapped ? step : 0);
        for (int32_t c = 0; c < pitch; c += kLanes<T>) {
            const int32_t mask = AtMost(kLanes<T>, pitch - c);
            for (int32_t r = 0; r < rows; r += kRepeats) {
                const auto part = a[r * pitch + c];
                Op::Run(d[r * pitch + c], swapped ? v[c] : part, swapped ? part : v[c], mask,
                        AtMost(kRepeats, rows - r), strides);
            }
        }
    }
    PadLanes(d, rows * pitch, n);
}""",
    "FusedColWise": """\
// d = d * b + c; b and c are tiles, or column vectors for all rows.
template <bool fullB, bool fullC, typename T>
__aicore__ inline void FusedColWise(const LocalTensor<T> &d, const LocalTensor<T> &b,
                                    const LocalTensor<T> &c, int32_t rows, int32_t pitch, int32_t n)
{
    if (rows == 1) {
        FusedMulAdd(d, b, c, n);
        return;
    }
    const int32_t blocks = pitch / kBlock<T>;
    if (blocks > 255 || rows * kLanes<T> < pitch) {
        for (int32_t r = 0; r < rows; r++) {
            const int32_t at = r * pitch;
            FusedMulAdd(d[at], b[fullB ? at : 0], c[fullC ? at : 0], pitch);
        }
        return;
    }
    const uint8_t step = static_cast<uint8_t>(blocks);
    const BinaryRepeatParams strides(1, 1, 1, step, fullB ? step : 0, fullC ? step : 0);
    for (int32_t i = 0; i < pitch; i += kLanes<T>) {
        const uint64_t mask = static_cast<uint64_t>(AtMost(kLanes<T>, pitch - i));
        for (int32_t r = 0; r < rows; r += kRepeats) {
            const int32_t at = r * pitch + i;
            FusedMulAdd(d[at], b[fullB ? at : i], c[fullC ? at : i], mask,
                        static_cast<uint8_t>(AtMost(kRepeats, rows - r)), strides);
        }
    }
}""",
    "RowWise": """\
// d[r][c] = a[r][c] op v[r], or v[r] op a[r][c]; v as one block per row.
template <typename Op, bool swapped, typename T>
__aicore__ inline void RowWise(const LocalTensor<T> &d, const LocalTensor<T> &a,
                               const LocalTensor<T> &v, int32_t rows, int32_t pitch, int32_t n)
{
    const int32_t blocks = pitch / kBlock<T>;
    if (blocks > 255 || rows * kLanes<T> < pitch) {
        const int32_t width = rows == 1 ? n : pitch;
        const BinaryRepeatParams strides(1, swapped ? 0 : 1, swapped ? 1 : 0, 8, swapped ? 0 : 8,
                                         swapped ? 8 : 0);
        for (int32_t r = 0; r < rows; r++) {
            const auto one = v[r * kBlock<T>];
            for (int32_t c = 0; c < width;) {
                const int32_t left = width - c;
                const int32_t mask = AtMost(kLanes<T>, left);
                const int32_t repeats = left < kLanes<T> ? 1 : AtMost(kRepeats, left / kLanes<T>);
                const auto part = a[r * pitch + c];
                Op::Run(d[r * pitch + c], swapped ? one : part, swapped ? part : one, mask,
                        repeats, strides);
                c += mask * repeats;
            }
        }
        PadLanes(d, rows == 1 ? n : rows * pitch, n);
    } else {
        const uint8_t step = static_cast<uint8_t>(blocks);
        const BinaryRepeatParams strides(1, swapped ? 0 : 1, swapped ? 1 : 0, step,
                                         swapped ? 1 : step, swapped ? step : 1);
        for (int32_t c = 0; c < pitch; c += kLanes<T>) {
            const int32_t mask = AtMost(kLanes<T>, pitch - c);
            for (int32_t r = 0; r < rows; r += kRepeats) {
                const auto part = a[r * pitch + c];
                const auto one = v[r * kBlock<T>];
                Op::Run(d[r * pitch + c], swapped ? one : part, swapped ? part : one, mask,
                        AtMost(kRepeats, rows - r), strides);
            }
        }
        PadLanes(d, rows * pitch, n);
    }
}""",
    "OneWise": """\
// d[i] = a[i] op v, or v op a[i]; v as a block.
template <typename Op, bool swapped, typename T>
__aicore__ inline void OneWise(const LocalTensor<T> &d, const LocalTensor<T> &a,
                               const LocalTensor<T> &v, int32_t n)
{
    const BinaryRepeatParams strides(1, swapped ? 0 : 1, swapped ? 1 : 0, 8, swapped ? 0 : 8,
                                     swapped ? 8 : 0);
    for (int32_t c = 0; c < n;) {
        const int32_t mask = AtMost(kLanes<T>, n - c);
        const int32_t repeats = mask < kLanes<T> ? 1 : AtMost(kRepeats, (n - c) / kLanes<T>);
        const auto part = a[c];
        Op::Run(d[c], swapped ? v : part, swapped ? part : v, mask, repeats, strides);
        c += mask * repeats;
    }
}""",
    "FusedOneWise": """\
// d = d * a + v; v is a block.
template <typename T>
__aicore__ inline void FusedOneWise(const LocalTensor<T> &d, const LocalTensor<T> &a,
                                    const LocalTensor<T> &v, int32_t n)
{
    const BinaryRepeatParams strides(1, 1, 0, 8, 8, 0);
    for (int32_t c = 0; c < n;) {
        const int32_t mask = AtMost(kLanes<T>, n - c);
        const int32_t repeats = mask < kLanes<T> ? 1 : AtMost(kRepeats, (n - c) / kLanes<T>);
        FusedMulAdd(d[c], a[c], v, static_cast<uint64_t>(mask), static_cast<uint8_t>(repeats),
                    strides);
        c += mask * repeats;
    }
}""",
    "RowBlocks": """\
// One block of equal lanes per element of a row vector.
template <typename T>
__aicore__ inline void RowBlocks(const LocalTensor<T> &d, const LocalTensor<T> &v, int32_t rows)
{
    Brcb(d, v, static_cast<uint8_t>((rows + 7) / 8), BrcbRepeatParams(1, 8));
}""",
    "SpreadCol": """\
// Every row of the tile becomes v.
template <typename T>
__aicore__ inline void SpreadCol(const LocalTensor<T> &d, const LocalTensor<T> &v, int32_t rows,
                                 int32_t pitch, int32_t n)
{
    if (rows == 1) {
        Muls(d, v, static_cast<T>(1), n);
        return;
    }
    for (int32_t r = 0; r < rows; r++) {
        Muls(d[r * pitch], v, static_cast<T>(1), pitch);
    }
    PadLanes(d, rows * pitch, n);
}""",
    "SpreadRow": """\
// Row r of the tile becomes v[r]; v as one block per row.
template <typename T>
__aicore__ inline void SpreadRow(const LocalTensor<T> &d, const LocalTensor<T> &v, int32_t rows,
                                 int32_t pitch, int32_t n)
{
    const int32_t width = rows == 1 ? n : pitch;
    for (int32_t r = 0; r < rows; r++) {
        for (int32_t c = 0; c < width;) {
            const int32_t mask = AtMost(kLanes<T>, width - c);
            const int32_t repeats =
                mask < kLanes<T> ? 1 : AtMost(kRepeats, (width - c) / kLanes<T>);
            Muls(d[r * pitch + c], v[r * kBlock<T>], static_cast<T>(1),
                 static_cast<uint64_t>(mask), static_cast<uint8_t>(repeats),
                 UnaryRepeatParams(1, 0, 8, 0));
            c += mask * repeats;
        }
    }
    PadLanes(d, rows == 1 ? n : rows * pitch, n);
}""",
}

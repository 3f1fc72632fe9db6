"""Copies between global memory and tiles, whole or clipped, and offsets for gathering them."""

from __future__ import annotations

COPIES: dict[str, str] = {
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
    "FillBeyond": """\
// Lanes from `first` (a multiple of a block) to `last`, next to a copy: nothing waits for them but
// later vector instructions.
template <typename T>
__aicore__ inline void FillBeyond(const LocalTensor<T> &d, T fill, int32_t first, int32_t last)
{
    if (first < last) {
        PipeBarrier<PIPE_V>();  // the buffer may have been read as another tensor
        FillLanes(d[first], fill, last - first);
        PipeBarrier<PIPE_V>();
    }
}""",
    "CopyIn": """\
// Rows of `cols` elements, `stride` apart in memory, to rows of `pitch` lanes. All `n` lanes get a
// value: what the copy does not reach is zero.
template <typename T>
__aicore__ inline void CopyIn(const LocalTensor<T> &d, const GlobalTensor<T> &x, int32_t rows,
                              int32_t cols, int32_t pitch, int64_t stride, int32_t n)
{
    constexpr int32_t size = static_cast<int32_t>(sizeof(T));
    constexpr bool canPad = size < 8;
    const int32_t right = canPad && rows > 1 ? AtMost(pitch - cols, kBlock<T>) : 0;
    const int32_t width = UpTo(cols + right, kBlock<T>);
    if (rows > 1 && width < pitch) {
        PipeBarrier<PIPE_V>();  // the buffer may have been read as another tensor
        Duplicate(d.template ReinterpretCast<int16_t>(), static_cast<int16_t>(0), n * size / 2);
        WaitFor<HardEvent::V_MTE2>();
    } else {
        const int32_t first = rows == 1 ? width : rows * pitch;
        FillBeyond(d.template ReinterpretCast<int16_t>(), static_cast<int16_t>(0),
                   first * size / 2, n * size / 2);
    }
    const DataCopyPadExtParams<T> pad(right > 0, 0, static_cast<uint8_t>(right), T{});
    const int64_t gap = (stride - cols) * size;
    if (rows == 1 || (gap >= 0 && gap < 0x7fffffff)) {
        const uint32_t apart = rows == 1 ? 0 : static_cast<uint32_t>(gap);
        const uint32_t skip = rows == 1 ? 0 : static_cast<uint32_t>((pitch - width) / kBlock<T>);
        DataCopyPad(d, x,
                    DataCopyExtParams(static_cast<uint16_t>(rows),
                                      static_cast<uint32_t>(cols * size), apart, skip, 0),
                    pad);
        return;
    }
    for (int32_t r = 0; r < rows; r++) {
        DataCopyPad(d[r * pitch], x[r * stride],
                    DataCopyExtParams(1, static_cast<uint32_t>(cols * size), 0, 0, 0), pad);
    }
}""",
    "CopyIndices": """\
// Rows of `cols` elements, `stride` apart in memory, to rows of `pitch` lanes that the scalar unit
// reads: they wait until it has read those before, and it waits for them.
template <typename T>
__aicore__ inline void CopyIndices(const LocalTensor<T> &d, const GlobalTensor<T> &x, int32_t rows,
                                   int32_t cols, int32_t pitch, int64_t stride)
{
    const uint32_t bytes = static_cast<uint32_t>(cols) * static_cast<uint32_t>(sizeof(T));
    const int64_t gap = (stride - cols) * static_cast<int64_t>(sizeof(T));
    const DataCopyPadExtParams<T> pad(false, 0, 0, T{});
    WaitFor<HardEvent::S_MTE2>();
    if (rows == 1 || (gap >= 0 && gap < 0x7fffffff)) {
        const uint32_t apart = rows == 1 ? 0 : static_cast<uint32_t>(gap);
        const uint32_t skip =
            rows == 1 ? 0 : static_cast<uint32_t>((pitch - UpTo(cols, kBlock<T>)) / kBlock<T>);
        DataCopyPad(d, x, DataCopyExtParams(static_cast<uint16_t>(rows), bytes, apart, skip, 0),
                    pad);
    } else {
        for (int32_t r = 0; r < rows; r++) {
            DataCopyPad(d[r * pitch], x[r * stride], DataCopyExtParams(1, bytes, 0, 0, 0), pad);
        }
    }
    WaitFor<HardEvent::MTE2_S>();
}""",
    "CopyOut": """\
// Rows of `cols` elements, `pitch` lanes apart, to rows `stride` apart in memory.
template <typename T>
__aicore__ inline void CopyOut(const GlobalTensor<T> &y, const LocalTensor<T> &d, int32_t rows,
                               int32_t cols, int32_t pitch, int64_t stride)
{
    constexpr int32_t size = static_cast<int32_t>(sizeof(T));
    const uint32_t bytes = static_cast<uint32_t>(cols * size);
    const int64_t gap = (stride - cols) * size;
    if (rows == 1 || (gap >= 0 && gap < 0x7fffffff)) {
        const uint32_t apart = rows == 1 ? 0 : static_cast<uint32_t>(gap);
        const uint32_t skip =
            rows == 1 ? 0 : static_cast<uint32_t>((pitch - UpTo(cols, kBlock<T>)) / kBlock<T>);
        DataCopyPad(y, d, DataCopyExtParams(static_cast<uint16_t>(rows), bytes, skip, apart, 0));
        return;
    }
    for (int32_t r = 0; r < rows; r++) {
        DataCopyPad(y[r * stride], d[r * pitch], DataCopyExtParams(1, bytes, 0, 0, 0));
    }
}""",
    "CopyBlocks": """\
// The first lane of each block to elements `stride` apart in memory.
template <typename T>
__aicore__ inline void CopyBlocks(const GlobalTensor<T> &y, const LocalTensor<T> &d, int32_t rows,
                                  int64_t stride)
{
    constexpr uint32_t size = static_cast<uint32_t>(sizeof(T));
    const uint32_t apart = static_cast<uint32_t>((stride - 1) * static_cast<int64_t>(size));
    DataCopyPad(y, d, DataCopyExtParams(static_cast<uint16_t>(rows), size, 0, apart, 0));
}""",
    "CrossOffsets": """\
// Byte offsets that turn a tile of `pitch` rows, `across` lanes apart, into its transpose.
template <typename T>
__aicore__ inline void CrossOffsets(const LocalTensor<int32_t> &d, int32_t height, int32_t pitch,
                                    int32_t across, int32_t n)
{
    constexpr int32_t size = static_cast<int32_t>(sizeof(T));
    CreateVecIndex(d, static_cast<int32_t>(0), static_cast<uint32_t>(pitch));
    PipeBarrier<PIPE_V>();
    Muls(d, d, across * size, pitch);
    PipeBarrier<PIPE_V>();
    for (int32_t r = 1; r < height; r++) {
        Adds(d[r * pitch], d, r * size, pitch);
    }
    PadLanes(d, height * pitch, n);
}""",
    "SpacedOffsets": """\
// Byte offsets of lanes that are `apart` elements apart.
template <typename T>
__aicore__ inline void SpacedOffsets(const LocalTensor<int32_t> &d, int32_t apart, int32_t n)
{
    CreateVecIndex(d, static_cast<int32_t>(0), static_cast<uint32_t>(n));
    PipeBarrier<PIPE_V>();
    Muls(d, d, apart * static_cast<int32_t>(sizeof(T)), n);
}""",
    "BlockOffsets": """\
// Byte offsets of the first lane of each block.
__aicore__ inline void BlockOffsets(const LocalTensor<int32_t> &d, int32_t n)
{
    CreateVecIndex(d, static_cast<int32_t>(0), static_cast<uint32_t>(n));
    PipeBarrier<PIPE_V>();
    Muls(d, d, static_cast<int32_t>(32), n);
}""",
    "CopyInBlocks": """\
// Elements `stride` apart in memory, each to the start of a block.
template <typename T>
__aicore__ inline void CopyInBlocks(const LocalTensor<T> &d, const GlobalTensor<T> &x, int32_t rows,
                                    int64_t stride)
{
    constexpr int64_t size = static_cast<int64_t>(sizeof(T));
    DataCopyPad(d, x,
                DataCopyExtParams(static_cast<uint16_t>(rows), static_cast<uint32_t>(size),
                                  static_cast<uint32_t>((stride - 1) * size), 0, 0),
                DataCopyPadExtParams<T>(false, 0, 0, T{}));
}""",
    "Narrow": """\
// Shrinks [low, high) to what lies in [from, to).
__aicore__ inline void Narrow(int32_t &low, int32_t &high, int64_t from, int64_t to)
{
    low = from > low ? AtMost(from, high) : low;
    high = to < high ? static_cast<int32_t>(to < low ? low : to) : high;
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
    constexpr int32_t size = static_cast<int32_t>(sizeof(T));
    const int32_t start = colLow / kBlock<T> * kBlock<T>;
    const int32_t left = colLow - start;
    const int32_t width = UpTo(colHigh - start, kBlock<T>);
    const bool some = rowLow < rowHigh && colLow < colHigh;
    if (some && width == (rows == 1 ? UpTo(cols, kBlock<T>) : pitch)) {
        FillBeyond(d, fill, 0, rowLow * pitch);
        FillBeyond(d, fill, rows == 1 ? width : rowHigh * pitch, n);
    } else {
        PipeBarrier<PIPE_V>();  // the buffer may have been read as another tensor
        FillLanes(d, fill, n);
        WaitFor<HardEvent::V_MTE2>();
    }
    if (!some) {
        return;
    }
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

"""Copies of matrices to fractals in L1."""

from __future__ import annotations

FRACTALS: dict[str, str] = {
    "CopyRow": """\
// One row of `cols` elements to L1 as it lies, with zeros up to a block beyond the last one.
template <typename T>
__aicore__ inline void CopyRow(const LocalTensor<T> &d, const GlobalTensor<T> &x, int32_t cols)
{
    InitConstValue(d[UpTo(cols, kBlock<T>)], InitConstValueParams<T>(1, 1, 0, T{}));
    const uint16_t all = static_cast<uint16_t>(cols);
    DataCopy(d, x, Nd2NzParams(1, 1, all, 0, all, 1, 1, 0));
}""",
    "CopyFractals": """\
// `rows` rows of `cols` elements to columns of fractals in L1, with rows rounded up to 16: those
// beyond are zero.
template <typename T>
__aicore__ inline void CopyFractals(const LocalTensor<T> &d, const GlobalTensor<T> &x, int32_t rows,
                                    int32_t cols, int64_t stride)
{
    const int32_t padded = UpTo(rows, 16);
    if (padded != rows) {
        const int32_t columns = UpTo(cols, kBlock<T>) / kBlock<T>;
        InitConstValue(d[rows * kBlock<T>],
                       InitConstValueParams<T>(static_cast<uint16_t>(columns),
                                               static_cast<uint16_t>(padded - rows),
                                               static_cast<uint16_t>(rows), T{}));
    }
    DataCopy(d, x,
             Nd2NzParams(1, static_cast<uint16_t>(rows), static_cast<uint16_t>(cols), 0,
                         static_cast<uint16_t>(stride), static_cast<uint16_t>(padded), 1, 0));
}""",
    "CopySlabs": """\
// The same in slabs of 16 rows, each with its fractals side by side.
template <typename T>
__aicore__ inline void CopySlabs(const LocalTensor<T> &d, const GlobalTensor<T> &x, int32_t rows,
                                 int32_t cols, int64_t stride)
{
    const int32_t slab = 16 * UpTo(cols, 16);
    if (rows % 16 != 0 || cols % 16 != 0) {
        const int32_t blocks = UpTo(rows, 16) / 16 * slab / kBlock<T>;
        InitConstValue(d, InitConstValueParams<T>(1, static_cast<uint16_t>(blocks), 0, T{}));
        PipeBarrier<PIPE_MTE2>();
    }
    for (int32_t r = 0; r < rows; r += 16) {
        DataCopy(d[r / 16 * slab], x[r * stride],
                 Nd2NzParams(1, static_cast<uint16_t>(AtMost(16, rows - r)),
                             static_cast<uint16_t>(cols), 0, static_cast<uint16_t>(stride), 16,
                             1, 0));
    }
}""",
}

// softmax fuses: amax, sub, exp, sum, div.
// Template reduce; axes: i0 < s0, i1 < s1.
//   x0: operand, f32 (s0, s1)
//   y0: result, f32 (s0, s1)
#include "kernel_operator.h"
#include "softmax_tiling.h"

namespace softmax_detail {
using namespace AscendC;

template <typename T>
constexpr int32_t kLanes = 256 / static_cast<int32_t>(sizeof(T));  // lanes of one repeat
template <typename T>
constexpr int32_t kBlock = 32 / static_cast<int32_t>(sizeof(T));  // lanes of one block
constexpr int32_t kRepeats = 248;  // repeats of one instruction: at most 255, a multiple of 8

__aicore__ inline int32_t UpTo(int64_t value, int32_t step)
{
    return static_cast<int32_t>((value + step - 1) / step * step);
}

__aicore__ inline int32_t AtMost(int64_t a, int64_t b)
{
    return static_cast<int32_t>(a < b ? a : b);
}

// The second pipe of `event` goes on when the first one has done what it was told so far.
template <HardEvent event>
__aicore__ inline void WaitFor()
{
    const event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(event));
    SetFlag<event>(id);
    WaitFlag<event>(id);
}

__aicore__ inline float FromBits(uint32_t word)
{
    union {
        uint32_t word;
        float value;
    } both;
    both.word = word;
    return both.value;
}

struct AddOp {
    template <typename T>
    __aicore__ static inline void Run(const LocalTensor<T> &d, const LocalTensor<T> &a,
                                      const LocalTensor<T> &b, int32_t count)
    {
        Add(d, a, b, count);
    }
    template <typename T>
    __aicore__ static inline void Run(const LocalTensor<T> &d, const LocalTensor<T> &a,
                                      const LocalTensor<T> &b, int32_t mask, int32_t repeats,
                                      const BinaryRepeatParams &strides)
    {
        Add(d, a, b, static_cast<uint64_t>(mask), static_cast<uint8_t>(repeats), strides);
    }
    template <typename T>
    __aicore__ static inline T Scalar(T a, T b)
    {
        return a + b;
    }
};

struct SubOp {
    template <typename T>
    __aicore__ static inline void Run(const LocalTensor<T> &d, const LocalTensor<T> &a,
                                      const LocalTensor<T> &b, int32_t count)
    {
        Sub(d, a, b, count);
    }
    template <typename T>
    __aicore__ static inline void Run(const LocalTensor<T> &d, const LocalTensor<T> &a,
                                      const LocalTensor<T> &b, int32_t mask, int32_t repeats,
                                      const BinaryRepeatParams &strides)
    {
        Sub(d, a, b, static_cast<uint64_t>(mask), static_cast<uint8_t>(repeats), strides);
    }
    template <typename T>
    __aicore__ static inline T Scalar(T a, T b)
    {
        return a - b;
    }
};

struct DivOp {
    template <typename T>
    __aicore__ static inline void Run(const LocalTensor<T> &d, const LocalTensor<T> &a,
                                      const LocalTensor<T> &b, int32_t count)
    {
        Div(d, a, b, count);
    }
    template <typename T>
    __aicore__ static inline void Run(const LocalTensor<T> &d, const LocalTensor<T> &a,
                                      const LocalTensor<T> &b, int32_t mask, int32_t repeats,
                                      const BinaryRepeatParams &strides)
    {
        Div(d, a, b, static_cast<uint64_t>(mask), static_cast<uint8_t>(repeats), strides);
    }
    template <typename T>
    __aicore__ static inline T Scalar(T a, T b)
    {
        return a / b;
    }
};

struct MaxOp {
    template <typename T>
    __aicore__ static inline void Run(const LocalTensor<T> &d, const LocalTensor<T> &a,
                                      const LocalTensor<T> &b, int32_t count)
    {
        Max(d, a, b, count);
    }
    template <typename T>
    __aicore__ static inline void Run(const LocalTensor<T> &d, const LocalTensor<T> &a,
                                      const LocalTensor<T> &b, int32_t mask, int32_t repeats,
                                      const BinaryRepeatParams &strides)
    {
        Max(d, a, b, static_cast<uint64_t>(mask), static_cast<uint8_t>(repeats), strides);
    }
    template <typename T>
    __aicore__ static inline T Scalar(T a, T b)
    {
        return a > b ? a : b;
    }
};

// Lanes from `first` on (a multiple of a block) get a value: comparisons read whole repeats.
template <typename T>
__aicore__ inline void PadLanes(const LocalTensor<T> &d, int32_t first, int32_t n)
{
    if (first < n) {
        Duplicate(d[first], static_cast<T>(0), n - first);
    }
}

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
}

// One block of equal lanes per element of a row vector.
template <typename T>
__aicore__ inline void RowBlocks(const LocalTensor<T> &d, const LocalTensor<T> &v, int32_t rows)
{
    Brcb(d, v, static_cast<uint8_t>((rows + 7) / 8), BrcbRepeatParams(1, 8));
}

// a[r][c] = a[r][c] op v[r][c] where the tile has elements; other lanes of a stay neutral.
template <typename Op, typename T>
__aicore__ inline void AccumulateTile(const LocalTensor<T> &a, const LocalTensor<T> &v,
                                      int32_t rows, int32_t cols, int32_t pitch)
{
    if (rows == 1 || cols == pitch) {
        Op::Run(a, a, v, rows == 1 ? cols : rows * pitch);
        return;
    }
    for (int32_t r = 0; r < rows; r++) {
        Op::Run(a[r * pitch], a[r * pitch], v[r * pitch], cols);
    }
}

// As FoldCols, rows of whole repeats: neighbouring ones two by two, of all rows at once, while
// their number is even; what is left one after another. `s` has half of what `a` has, or is `a`.
template <typename Op, typename T>
__aicore__ inline void FoldPairs(const LocalTensor<T> &w, const LocalTensor<T> &a,
                                 const LocalTensor<T> &s, int32_t rows, int32_t cols)
{
    constexpr int32_t lanes = kLanes<T>;
    int32_t left = cols / lanes;
    LocalTensor<T> from = a;
    while (left % 2 == 0) {
        left /= 2;
        const LocalTensor<T> to = left == 1 ? w : s;
        for (int32_t r = 0; r < rows * left; r += kRepeats) {
            if (r > 0) {
                PipeBarrier<PIPE_V>();
            }
            Op::Run(to[r * lanes], from[2 * r * lanes], from[(2 * r + 1) * lanes], lanes,
                    AtMost(kRepeats, rows * left - r), BinaryRepeatParams(1, 1, 1, 8, 16, 16));
        }
        PipeBarrier<PIPE_V>();
        from = s;
    }
    const uint8_t step = static_cast<uint8_t>(left * 8);
    for (int32_t r = 0; left > 1 && r < rows; r += kRepeats) {
        const int32_t many = AtMost(kRepeats, rows - r);
        const auto part = from[r * left * lanes];
        Op::Run(w[r * lanes], part, part[lanes], lanes, many,
                BinaryRepeatParams(1, 1, 1, 8, step, step));
        for (int32_t c = 2; c < left; c++) {
            PipeBarrier<PIPE_V>();
            Op::Run(w[r * lanes], w[r * lanes], part[c * lanes], lanes, many,
                    BinaryRepeatParams(1, 1, 1, 8, 8, step));
        }
    }
}

// As FoldCols, rows of less than two repeats.
template <typename Op, typename T>
__aicore__ inline void FoldBeyond(const LocalTensor<T> &w, const LocalTensor<T> &a, int32_t rows,
                                  int32_t cols, uint8_t blocks)
{
    constexpr int32_t lanes = kLanes<T>;
    for (int32_t r = 0; r < rows; r += kRepeats) {
        const int32_t repeats = AtMost(kRepeats, rows - r);
        const auto part = a[r * blocks * kBlock<T>];
        Muls(w[r * lanes], part, static_cast<T>(1), static_cast<uint64_t>(AtMost(lanes, cols)),
             static_cast<uint8_t>(repeats), UnaryRepeatParams(1, 1, 8, blocks));
        if (cols > lanes) {
            PipeBarrier<PIPE_V>();
            Op::Run(w[r * lanes], w[r * lanes], part[lanes], cols - lanes, repeats,
                    BinaryRepeatParams(1, 1, 1, 8, 8, blocks));
        }
    }
}

// As FoldCols, rows `blocks` apart: neighbouring repeats of all rows two by two, then what that
// leaves, pair after pair, in halves.
template <typename Op, typename T>
__aicore__ inline void FoldGroups(const LocalTensor<T> &w, const LocalTensor<T> &a,
                                  const LocalTensor<T> &s, int32_t rows, int32_t cols,
                                  uint8_t blocks)
{
    constexpr int32_t lanes = kLanes<T>;
    const int32_t all = rows * lanes, pitch = blocks * kBlock<T>;
    int32_t left = cols / lanes / 2;
    const auto to = left == 1 ? w : s;
    for (int32_t r = 0; r < rows; r += kRepeats) {
        const int32_t repeats = AtMost(kRepeats, rows - r);
        const auto part = a[r * pitch];
        for (int32_t c = 0; c < left; c++) {
            Op::Run(to[c * all + r * lanes], part[2 * c * lanes], part[(2 * c + 1) * lanes], lanes,
                    repeats, BinaryRepeatParams(1, 1, 1, 8, blocks, blocks));
        }
        for (int32_t c = 2 * left * lanes; c < cols; c += lanes) {
            PipeBarrier<PIPE_V>();
            Op::Run(to[r * lanes], to[r * lanes], part[c], AtMost(lanes, cols - c), repeats,
                    BinaryRepeatParams(1, 1, 1, 8, 8, blocks));
        }
    }
    while (left > 1) {
        PipeBarrier<PIPE_V>();
        if (left % 2 != 0) {
            Op::Run(s, s, s[(left - 1) * all], all);
            PipeBarrier<PIPE_V>();
        }
        left /= 2;
        Op::Run(left == 1 ? w : s, s, s[left * all], left * all);
    }
}

// As FoldGroups, in the folded tile itself: what is beyond whole repeats of a row onto its first
// one, then the row's repeats in halves.
template <typename Op, typename T>
__aicore__ inline void FoldInPlace(const LocalTensor<T> &w, const LocalTensor<T> &a, int32_t rows,
                                   int32_t cols, uint8_t blocks)
{
    constexpr int32_t lanes = kLanes<T>;
    const BinaryRepeatParams strides(1, 1, 1, blocks, blocks, blocks);
    for (int32_t r = 0; r < rows; r += kRepeats) {
        const int32_t repeats = AtMost(kRepeats, rows - r);
        const auto part = a[r * blocks * kBlock<T>];
        int32_t left = cols / lanes;
        if (cols % lanes != 0) {
            Op::Run(part, part, part[left * lanes], cols % lanes, repeats, strides);
            PipeBarrier<PIPE_V>();
        }
        while (left > 1) {
            const int32_t half = (left + 1) / 2;
            for (int32_t c = 0; c < left - half; c++) {
                Op::Run(part[c * lanes], part[c * lanes], part[(c + half) * lanes], lanes, repeats,
                        strides);
            }
            PipeBarrier<PIPE_V>();
            left = half;
        }
        Muls(w[r * lanes], part, static_cast<T>(1), static_cast<uint64_t>(lanes),
             static_cast<uint8_t>(repeats), UnaryRepeatParams(1, 1, 8, blocks));
    }
}

// Folds each row to at most 64 lanes: w[r][0..63]. `s` has half of what `a` has, or is `a`, which
// nothing reads afterwards.
template <typename Op, typename T>
__aicore__ inline void FoldCols(const LocalTensor<T> &w, const LocalTensor<T> &a,
                                const LocalTensor<T> &s, int32_t rows, int32_t cols, int32_t pitch)
{
    constexpr int32_t lanes = kLanes<T>;
    int32_t odd = cols / lanes;  // repeats of a row, then the factor of it that is odd
    while (odd > 0 && odd % 2 == 0) {
        odd /= 2;
    }
    if (cols == pitch && cols % lanes == 0 && cols > lanes && odd < 32) {
        FoldPairs<Op>(w, a, s, rows, cols);
        return;
    }
    const int32_t blocks = pitch / kBlock<T>;
    if (blocks <= 255 && cols < 2 * lanes) {
        FoldBeyond<Op>(w, a, rows, cols, static_cast<uint8_t>(blocks));
        return;
    }
    if (blocks <= 255 && (cols <= 4 * lanes || cols / lanes < 6 * rows)) {
        if (s.GetPhyAddr() == a.GetPhyAddr()) {
            FoldInPlace<Op>(w, a, rows, cols, static_cast<uint8_t>(blocks));
        } else {
            FoldGroups<Op>(w, a, s, rows, cols, static_cast<uint8_t>(blocks));
        }
        return;
    }
    int32_t main = lanes;
    while (main * 2 <= cols) {
        main *= 2;
    }
    for (int32_t r = 0; r < rows; r++) {
        const auto line = a[r * pitch];
        int32_t half = main / 2;
        Op::Run(s, line, line[half], half);
        const int32_t rest = cols - main;
        if (rest > 0) {
            PipeBarrier<PIPE_V>();
            Op::Run(s, s, line[main], AtMost(rest, half));
        }
        if (rest > half) {
            PipeBarrier<PIPE_V>();
            Op::Run(s, s, line[main + half], rest - half);
        }
        for (half /= 2; half > lanes; half /= 2) {
            PipeBarrier<PIPE_V>();
            Op::Run(s, s, s[half], half);
        }
        PipeBarrier<PIPE_V>();
        Op::Run(w[r * lanes], s, s[lanes], lanes);
        PipeBarrier<PIPE_V>();
    }
}

// d[r] = sum of the first `lanes` of w[r].
__aicore__ inline void SumLanes(const LocalTensor<float> &d, const LocalTensor<float> &w,
                                int32_t rows, int32_t lanes)
{
    for (int32_t r = 0; r < rows; r += kRepeats) {
        WholeReduceSum(d[r], w[r * 64], lanes, AtMost(kRepeats, rows - r), 1, 1, 8);
    }
}

// d[r] = largest of the first `lanes` of w[r].
__aicore__ inline void MaxLanes(const LocalTensor<float> &d, const LocalTensor<float> &w,
                                int32_t rows, int32_t lanes)
{
    for (int32_t r = 0; r < rows; r += kRepeats) {
        WholeReduceMax(d[r], w[r * 64], lanes, AtMost(kRepeats, rows - r), 1, 1, 8,
                       ReduceOrder::ORDER_ONLY_VALUE);
    }
}

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
}

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
}

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
}

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
}

class Kernel {
public:
    __aicore__ inline void Init(GM_ADDR x0At, GM_ADDR y0At, [[maybe_unused]] GM_ADDR workspace, GM_ADDR tilingAt)
    {
        tiling = reinterpret_cast<const __gm__ softmax_Tiling *>(tilingAt);
        s0 = tiling->s0;
        s1 = tiling->s1;
        x0.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(x0At));
        y0.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(y0At));
    }

    // Tiles of i0 x i1, whole rows; each core takes a share of the tasks.
    __aicore__ inline void Phase0Way0()
    {
        const int32_t tileHeight = static_cast<int32_t>(tiling->height0);
        const int32_t tileWidth = static_cast<int32_t>(tiling->width0);
        const int32_t pitch = UpTo(tileWidth, 8);
        const int32_t tileLanes = UpTo(tileHeight * pitch, 64);
        const int32_t tileRows = UpTo(tileHeight, 64);
        const int64_t rowTiles = (s0 + tileHeight - 1) / tileHeight;
        const int64_t tasks = rowTiles;
        const int64_t first = tasks * GetBlockIdx() / (GetBlockNum());
        const int64_t last = tasks * (GetBlockIdx() + 1) / (GetBlockNum());
        TBuf<TPosition::VECCALC> buffer0;
        pipe.InitBuffer(buffer0, static_cast<uint32_t>(UpTo(tileHeight * 64 * 4, 512)));
        TBuf<TPosition::VECCALC> buffer3;
        pipe.InitBuffer(buffer3, static_cast<uint32_t>(UpTo(tileLanes * 4, 512)));
        TQue<TPosition::VECOUT, 2> outQueue0;
        pipe.InitBuffer(outQueue0, 2, static_cast<uint32_t>(UpTo(tileLanes * 4, 512)));
        TBuf<TPosition::VECCALC> bufferGap;
        pipe.InitBuffer(bufferGap, static_cast<uint32_t>(256));
        TBuf<TPosition::VECCALC> buffer1;
        pipe.InitBuffer(buffer1, static_cast<uint32_t>(UpTo(tileRows * 4, 512)));
        TBuf<TPosition::VECCALC> buffer2;
        pipe.InitBuffer(buffer2, static_cast<uint32_t>(UpTo(UpTo(tileHeight, 8) * 32, 512)));
        TBuf<TPosition::VECCALC> buffer4;
        pipe.InitBuffer(buffer4, static_cast<uint32_t>(UpTo(UpTo(tileLanes / 2, 64) * 4, 512)));
        TQue<TPosition::VECIN, 2> inQueue0;
        pipe.InitBuffer(inQueue0, 2, static_cast<uint32_t>(UpTo(tileLanes * 4, 512)));
        for (int64_t task = first; task < last; task++) {
            int64_t left = task;
            const int64_t row0 = left % rowTiles * tileHeight;
            left /= rowTiles;
            const int32_t rows = AtMost(tileHeight, s0 - row0);
            const int32_t cols = static_cast<int32_t>(s1);
            const int32_t rn = UpTo(rows, 64);
            const int32_t n = rows > 1 ? UpTo(rows * pitch, 64) : UpTo(cols, 64);
            LocalTensor<float> v1 = inQueue0.AllocTensor<float>();
            CopyIn(v1, x0[s1 * row0], rows, cols, pitch, s1, n);
            inQueue0.EnQue(v1);
            v1 = inQueue0.DeQue<float>();
            // amax over i1
            LocalTensor<float> v2 = buffer0.Get<float>();
            LocalTensor<float> v3 = buffer3.Get<float>();
            FoldCols<MaxOp>(v2, v1, v3, rows, cols, pitch);
            LocalTensor<float> v4 = buffer1.Get<float>();
            Duplicate(v4, static_cast<float>(0), rn);
            PipeBarrier<PIPE_V>();
            MaxLanes(v4, v2, rows, AtMost(64, cols));
            // sub
            PipeBarrier<PIPE_V>();
            LocalTensor<float> v5 = buffer2.Get<float>();
            RowBlocks(v5, v4, rows);
            PipeBarrier<PIPE_V>();
            LocalTensor<float> v6 = buffer3.Get<float>();
            RowWise<SubOp, false>(v6, v1, v5, rows, pitch, n);
            inQueue0.FreeTensor(v1);
            // exp
            PipeBarrier<PIPE_V>();
            LocalTensor<float> v7 = buffer3.Get<float>();
            Exp(v7, v6, n);
            // sum over i1
            PipeBarrier<PIPE_V>();
            LocalTensor<float> v8 = buffer0.Get<float>();
            LocalTensor<float> v9 = buffer4.Get<float>();
            FoldCols<AddOp>(v8, v7, v9, rows, cols, pitch);
            LocalTensor<float> v10 = buffer1.Get<float>();
            Duplicate(v10, static_cast<float>(0), rn);
            PipeBarrier<PIPE_V>();
            SumLanes(v10, v8, rows, AtMost(64, cols));
            // div
            PipeBarrier<PIPE_V>();
            LocalTensor<float> v11 = buffer2.Get<float>();
            RowBlocks(v11, v10, rows);
            PipeBarrier<PIPE_V>();
            LocalTensor<float> v12 = outQueue0.AllocTensor<float>();
            RowWise<DivOp, false>(v12, v7, v11, rows, pitch, n);
            outQueue0.EnQue(v12);
            v12 = outQueue0.DeQue<float>();
            CopyOut(y0[s1 * row0], v12, rows, cols, pitch, s1);
            outQueue0.FreeTensor(v12);
            PipeBarrier<PIPE_V>();
        }
    }

    // Tiles of i0 x i1, walked in steps; each core takes a share of the tasks.
    __aicore__ inline void Phase0Way1()
    {
        const int32_t tileHeight = static_cast<int32_t>(tiling->height0);
        const int32_t tileWidth = static_cast<int32_t>(tiling->width0);
        const int32_t pitch = UpTo(tileWidth, 8);
        const int32_t tileLanes = UpTo(tileHeight * pitch, 64);
        const int32_t tileRows = UpTo(tileHeight, 64);
        const int64_t rowTiles = (s0 + tileHeight - 1) / tileHeight;
        const int64_t tasks = rowTiles;
        const int64_t first = tasks * GetBlockIdx() / (GetBlockNum());
        const int64_t last = tasks * (GetBlockIdx() + 1) / (GetBlockNum());
        TBuf<TPosition::VECCALC> buffer0;
        pipe.InitBuffer(buffer0, static_cast<uint32_t>(UpTo(tileLanes * 4, 512)));
        TBuf<TPosition::VECCALC> buffer2;
        pipe.InitBuffer(buffer2, static_cast<uint32_t>(UpTo(tileRows * 4, 512)));
        TBuf<TPosition::VECCALC> buffer5;
        pipe.InitBuffer(buffer5, static_cast<uint32_t>(UpTo(tileRows * 4, 512)));
        TQue<TPosition::VECIN, 2> inQueue1;
        pipe.InitBuffer(inQueue1, 2, static_cast<uint32_t>(UpTo(tileLanes * 4, 512)));
        TQue<TPosition::VECIN, 2> inQueue2;
        pipe.InitBuffer(inQueue2, 2, static_cast<uint32_t>(UpTo(tileLanes * 4, 512)));
        TQue<TPosition::VECOUT, 2> outQueue0;
        pipe.InitBuffer(outQueue0, 2, static_cast<uint32_t>(UpTo(tileLanes * 4, 512)));
        TBuf<TPosition::VECCALC> bufferGap;
        pipe.InitBuffer(bufferGap, static_cast<uint32_t>(256));
        TBuf<TPosition::VECCALC> buffer1;
        pipe.InitBuffer(buffer1, static_cast<uint32_t>(UpTo(tileHeight * 64 * 4, 512)));
        TBuf<TPosition::VECCALC> buffer3;
        pipe.InitBuffer(buffer3, static_cast<uint32_t>(UpTo(UpTo(tileHeight, 8) * 32, 512)));
        TBuf<TPosition::VECCALC> buffer4;
        pipe.InitBuffer(buffer4, static_cast<uint32_t>(UpTo(tileLanes * 4, 512)));
        TQue<TPosition::VECIN, 2> inQueue0;
        pipe.InitBuffer(inQueue0, 2, static_cast<uint32_t>(UpTo(tileLanes * 4, 512)));
        for (int64_t task = first; task < last; task++) {
            int64_t left = task;
            const int64_t row0 = left % rowTiles * tileHeight;
            left /= rowTiles;
            const int32_t rows = AtMost(tileHeight, s0 - row0);
            const int32_t rn = UpTo(rows, 64);
            LocalTensor<float> v1 = buffer0.Get<float>();
            Duplicate(v1, FromBits(0xff800000u), tileLanes);
            for (int64_t col0 = 0; col0 < s1; col0 += tileWidth) {
                const int32_t cols = AtMost(tileWidth, s1 - col0);
                const int32_t n = rows > 1 ? UpTo(rows * pitch, 64) : UpTo(cols, 64);
                LocalTensor<float> v2 = inQueue0.AllocTensor<float>();
                CopyIn(v2, x0[s1 * row0 + col0], rows, cols, pitch, s1, n);
                inQueue0.EnQue(v2);
                v2 = inQueue0.DeQue<float>();
                // amax over i1
                PipeBarrier<PIPE_V>();
                AccumulateTile<MaxOp>(v1, v2, rows, cols, pitch);
                inQueue0.FreeTensor(v2);
                PipeBarrier<PIPE_V>();
            }
            PipeBarrier<PIPE_V>();
            LocalTensor<float> v3 = buffer1.Get<float>();
            LocalTensor<float> v4 = buffer0.Get<float>();
            FoldCols<MaxOp>(v3, v1, v4, rows, tileWidth, pitch);
            LocalTensor<float> v5 = buffer2.Get<float>();
            Duplicate(v5, static_cast<float>(0), rn);
            PipeBarrier<PIPE_V>();
            MaxLanes(v5, v3, rows, AtMost(64, tileWidth));
            LocalTensor<float> v6 = buffer0.Get<float>();
            Duplicate(v6, 0.0f, tileLanes);
            for (int64_t col0 = 0; col0 < s1; col0 += tileWidth) {
                const int32_t cols = AtMost(tileWidth, s1 - col0);
                const int32_t n = rows > 1 ? UpTo(rows * pitch, 64) : UpTo(cols, 64);
                LocalTensor<float> v7 = inQueue1.AllocTensor<float>();
                CopyIn(v7, x0[s1 * row0 + col0], rows, cols, pitch, s1, n);
                inQueue1.EnQue(v7);
                v7 = inQueue1.DeQue<float>();
                // sub
                PipeBarrier<PIPE_V>();
                LocalTensor<float> v8 = buffer3.Get<float>();
                RowBlocks(v8, v5, rows);
                PipeBarrier<PIPE_V>();
                LocalTensor<float> v9 = buffer4.Get<float>();
                RowWise<SubOp, false>(v9, v7, v8, rows, pitch, n);
                inQueue1.FreeTensor(v7);
                // exp
                PipeBarrier<PIPE_V>();
                LocalTensor<float> v10 = buffer4.Get<float>();
                Exp(v10, v9, n);
                // sum over i1
                PipeBarrier<PIPE_V>();
                AccumulateTile<AddOp>(v6, v10, rows, cols, pitch);
                PipeBarrier<PIPE_V>();
            }
            PipeBarrier<PIPE_V>();
            LocalTensor<float> v11 = buffer1.Get<float>();
            LocalTensor<float> v12 = buffer0.Get<float>();
            FoldCols<AddOp>(v11, v6, v12, rows, tileWidth, pitch);
            LocalTensor<float> v13 = buffer5.Get<float>();
            Duplicate(v13, static_cast<float>(0), rn);
            PipeBarrier<PIPE_V>();
            SumLanes(v13, v11, rows, AtMost(64, tileWidth));
            for (int64_t col0 = 0; col0 < s1; col0 += tileWidth) {
                const int32_t cols = AtMost(tileWidth, s1 - col0);
                const int32_t n = rows > 1 ? UpTo(rows * pitch, 64) : UpTo(cols, 64);
                LocalTensor<float> v14 = inQueue2.AllocTensor<float>();
                CopyIn(v14, x0[s1 * row0 + col0], rows, cols, pitch, s1, n);
                inQueue2.EnQue(v14);
                v14 = inQueue2.DeQue<float>();
                // sub
                LocalTensor<float> v15 = buffer3.Get<float>();
                RowBlocks(v15, v5, rows);
                PipeBarrier<PIPE_V>();
                LocalTensor<float> v16 = buffer0.Get<float>();
                RowWise<SubOp, false>(v16, v14, v15, rows, pitch, n);
                inQueue2.FreeTensor(v14);
                // exp
                PipeBarrier<PIPE_V>();
                LocalTensor<float> v17 = buffer0.Get<float>();
                Exp(v17, v16, n);
                // div
                LocalTensor<float> v18 = buffer3.Get<float>();
                RowBlocks(v18, v13, rows);
                PipeBarrier<PIPE_V>();
                LocalTensor<float> v19 = outQueue0.AllocTensor<float>();
                RowWise<DivOp, false>(v19, v17, v18, rows, pitch, n);
                outQueue0.EnQue(v19);
                v19 = outQueue0.DeQue<float>();
                CopyOut(y0[s1 * row0 + col0], v19, rows, cols, pitch, s1);
                outQueue0.FreeTensor(v19);
                PipeBarrier<PIPE_V>();
            }
            PipeBarrier<PIPE_V>();
        }
    }

    TPipe pipe;
    int64_t s0;
    int64_t s1;

private:
    const __gm__ softmax_Tiling *tiling;
    GlobalTensor<float> x0;
    GlobalTensor<float> y0;
};
}  // namespace softmax_detail

extern "C" __global__ __aicore__ void softmax(GM_ADDR x0, GM_ADDR y0, GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    softmax_detail::Kernel kernel;
    kernel.Init(x0, y0, workspace, tiling);
    switch (reinterpret_cast<const __gm__ softmax_Tiling *>(tiling)->key0) {
        case 0: kernel.Phase0Way0(); break;
        case 1: kernel.Phase0Way1(); break;
        default: break;
    }
}

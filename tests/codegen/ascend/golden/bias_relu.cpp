// bias_relu fuses: add, relu.
// Template elementwise; axes: i0 < s0, i1 < s1.
//   x0: operand, f16 (s0, s1)
//   x1: operand, f16 (s1)
//   y0: result, f16 (s0, s1)
#include "kernel_operator.h"
#include "bias_relu_tiling.h"

namespace bias_relu_detail {
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

// Lanes from `first` on (a multiple of a block) get a value: comparisons read whole repeats.
template <typename T>
__aicore__ inline void PadLanes(const LocalTensor<T> &d, int32_t first, int32_t n)
{
    if (first < n) {
        Duplicate(d[first], static_cast<T>(0), n - first);
    }
}

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
    __aicore__ inline void Init(GM_ADDR x0At, GM_ADDR x1At, GM_ADDR y0At, [[maybe_unused]] GM_ADDR workspace, GM_ADDR tilingAt)
    {
        tiling = reinterpret_cast<const __gm__ bias_relu_Tiling *>(tilingAt);
        s0 = tiling->s0;
        s1 = tiling->s1;
        x0.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(x0At));
        x1.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(x1At));
        y0.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(y0At));
    }

    // Tiles of i0 x i1; each core takes a share of the tasks.
    __aicore__ inline void Phase0Way0()
    {
        const int32_t tileHeight = static_cast<int32_t>(tiling->height0);
        const int32_t tileWidth = static_cast<int32_t>(tiling->width0);
        const int32_t pitch = UpTo(tileWidth, 16);
        const int32_t tileLanes = UpTo(tileHeight * pitch, 64);
        const int32_t tileCols = UpTo(pitch, 64);
        const int64_t rowTiles = (s0 + tileHeight - 1) / tileHeight;
        const int64_t colTiles = (s1 + tileWidth - 1) / tileWidth;
        const int64_t tasks = rowTiles * colTiles;
        const int64_t first = tasks * GetBlockIdx() / (GetBlockNum());
        const int64_t last = tasks * (GetBlockIdx() + 1) / (GetBlockNum());
        TBuf<TPosition::VECCALC> buffer0;
        pipe.InitBuffer(buffer0, static_cast<uint32_t>(UpTo(tileLanes * 4, 512)));
        TBuf<TPosition::VECCALC> buffer2;
        pipe.InitBuffer(buffer2, static_cast<uint32_t>(UpTo(tileLanes / 8, 512)));
        TBuf<TPosition::VECCALC> buffer3;
        pipe.InitBuffer(buffer3, static_cast<uint32_t>(UpTo(tileLanes / 8, 512)));
        TQue<TPosition::VECIN, 2> inQueue1;
        pipe.InitBuffer(inQueue1, 2, static_cast<uint32_t>(UpTo(tileCols * 2, 512)));
        TBuf<TPosition::VECCALC> bufferGap;
        pipe.InitBuffer(bufferGap, static_cast<uint32_t>(256));
        TBuf<TPosition::VECCALC> buffer1;
        pipe.InitBuffer(buffer1, static_cast<uint32_t>(UpTo(tileCols * 4, 512)));
        TQue<TPosition::VECIN, 2> inQueue0;
        pipe.InitBuffer(inQueue0, 2, static_cast<uint32_t>(UpTo(tileLanes * 2, 512)));
        TQue<TPosition::VECOUT, 2> outQueue0;
        pipe.InitBuffer(outQueue0, 2, static_cast<uint32_t>(UpTo(tileLanes * 2, 512)));
        for (int64_t task = first; task < last; task++) {
            int64_t left = task;
            const int64_t col0 = left % colTiles * tileWidth;
            left /= colTiles;
            const int64_t row0 = left % rowTiles * tileHeight;
            left /= rowTiles;
            const int32_t rows = AtMost(tileHeight, s0 - row0);
            const int32_t cols = AtMost(tileWidth, s1 - col0);
            const int32_t n = rows > 1 ? UpTo(rows * pitch, 64) : UpTo(cols, 64);
            const int32_t cn = rows > 1 ? UpTo(pitch, 64) : UpTo(cols, 64);
            LocalTensor<half> v1 = inQueue0.AllocTensor<half>();
            CopyIn(v1, x0[s1 * row0 + col0], rows, cols, pitch, s1, n);
            inQueue0.EnQue(v1);
            v1 = inQueue0.DeQue<half>();
            LocalTensor<float> v2 = buffer0.Get<float>();
            Cast(v2, v1, RoundMode::CAST_NONE, n);
            inQueue0.FreeTensor(v1);
            LocalTensor<half> v3 = inQueue1.AllocTensor<half>();
            CopyIn(v3, x1[col0], 1, cols, pitch, 0, cn);
            inQueue1.EnQue(v3);
            v3 = inQueue1.DeQue<half>();
            LocalTensor<float> v4 = buffer1.Get<float>();
            Cast(v4, v3, RoundMode::CAST_NONE, cn);
            inQueue1.FreeTensor(v3);
            // add
            PipeBarrier<PIPE_V>();
            LocalTensor<float> v5 = buffer0.Get<float>();
            ColWise<AddOp, false>(v5, v2, v4, rows, pitch, n);
            // relu
            PipeBarrier<PIPE_V>();
            LocalTensor<uint8_t> v6 = buffer2.Get<uint8_t>();
            CompareScalar(v6, v5, 0.0f, CMPMODE::LE, n);
            PipeBarrier<PIPE_V>();
            LocalTensor<uint8_t> v7 = buffer3.Get<uint8_t>();
            Not(v7.ReinterpretCast<uint16_t>(), v6.ReinterpretCast<uint16_t>(), n / 16);
            PipeBarrier<PIPE_V>();
            LocalTensor<float> v8 = buffer0.Get<float>();
            Select(v8, v7, v5, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
            PipeBarrier<PIPE_V>();
            LocalTensor<half> v9 = outQueue0.AllocTensor<half>();
            Cast(v9, v8, RoundMode::CAST_RINT, n);
            outQueue0.EnQue(v9);
            v9 = outQueue0.DeQue<half>();
            CopyOut(y0[s1 * row0 + col0], v9, rows, cols, pitch, s1);
            outQueue0.FreeTensor(v9);
            PipeBarrier<PIPE_V>();
        }
    }

    TPipe pipe;
    int64_t s0;
    int64_t s1;

private:
    const __gm__ bias_relu_Tiling *tiling;
    GlobalTensor<half> x0;
    GlobalTensor<half> x1;
    GlobalTensor<half> y0;
};
}  // namespace bias_relu_detail

extern "C" __global__ __aicore__ void bias_relu(GM_ADDR x0, GM_ADDR x1, GM_ADDR y0, GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    bias_relu_detail::Kernel kernel;
    kernel.Init(x0, x1, y0, workspace, tiling);
    kernel.Phase0Way0();
}

// Layer normalisation over rows of half, in float inside, with weight and bias of half.
#include "kernel_operator.h"

using namespace AscendC;

struct Tiling {
    uint32_t rows;
    uint32_t columns;  // a multiple of 16
    float epsilon;
};

extern "C" __global__ __aicore__ void layernorm(GM_ADDR x, GM_ADDR weight, GM_ADDR bias, GM_ADDR y,
                                                GM_ADDR workspace, GM_ADDR tiling)
{
    (void)workspace;
    const Tiling t = *reinterpret_cast<const __gm__ Tiling *>(tiling);
    const uint32_t n = t.columns;
    const uint32_t bytes = n * sizeof(half);
    GlobalTensor<half> xGm, wGm, bGm, yGm;
    xGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(x));
    wGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(weight));
    bGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(bias));
    yGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(y));
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> xQue;
    TQue<QuePosition::VECOUT, 1> yQue;
    TBuf<QuePosition::VECCALC> rawBuf, wBuf, bBuf, fBuf, squareBuf, workBuf, scalarBuf;
    pipe.InitBuffer(xQue, 2, bytes);
    pipe.InitBuffer(yQue, 2, bytes);
    pipe.InitBuffer(rawBuf, 2 * bytes);
    pipe.InitBuffer(wBuf, 2 * bytes);
    pipe.InitBuffer(bBuf, 2 * bytes);
    pipe.InitBuffer(fBuf, 2 * bytes);
    pipe.InitBuffer(squareBuf, 2 * bytes);
    pipe.InitBuffer(workBuf, 2 * bytes);
    pipe.InitBuffer(scalarBuf, 64);
    LocalTensor<half> raw = rawBuf.Get<half>();
    LocalTensor<float> w = wBuf.Get<float>();
    LocalTensor<float> b = bBuf.Get<float>();
    LocalTensor<float> f = fBuf.Get<float>();
    LocalTensor<float> square = squareBuf.Get<float>();
    LocalTensor<float> work = workBuf.Get<float>();
    LocalTensor<float> sum = scalarBuf.Get<float>();
    LocalTensor<float> squares = scalarBuf.GetWithOffset<float>(8, 32);

    DataCopy(raw, wGm, n);
    DataCopy(raw[n], bGm, n);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    Cast(w, raw, RoundMode::CAST_NONE, n);
    Cast(b, raw[n], RoundMode::CAST_NONE, n);
    for (uint32_t row = GetBlockIdx(); row < t.rows; row += GetBlockNum()) {
        const uint64_t at = static_cast<uint64_t>(row) * n;
        LocalTensor<half> in = xQue.AllocTensor<half>();
        DataCopy(in, xGm[at], n);
        xQue.EnQue(in);
        xQue.DeQue<half>();
        PipeBarrier<PIPE_V>();  // f, square, sum of the row before; w and b before the first
        Cast(f, in, RoundMode::CAST_NONE, n);
        xQue.FreeTensor(in);
        PipeBarrier<PIPE_V>();  // f
        ReduceSum(sum, f, work, n);
        SetFlag<HardEvent::V_S>(EVENT_ID0);
        WaitFlag<HardEvent::V_S>(EVENT_ID0);
        const float mean = sum.GetValue(0) / n;
        Adds(f, f, -mean, n);
        PipeBarrier<PIPE_V>();  // f, work
        Mul(square, f, f, n);
        PipeBarrier<PIPE_V>();  // square
        ReduceSum(squares, square, work, n);
        SetFlag<HardEvent::V_S>(EVENT_ID1);
        WaitFlag<HardEvent::V_S>(EVENT_ID1);
        const float variance = squares.GetValue(0) / n;
        SetFlag<HardEvent::S_V>(EVENT_ID0);  // the next row writes sum and squares
        WaitFlag<HardEvent::S_V>(EVENT_ID0);
        Muls(f, f, 1.0f / __builtin_sqrtf(variance + t.epsilon), n);
        PipeBarrier<PIPE_V>();  // f
        Mul(f, f, w, n);
        PipeBarrier<PIPE_V>();  // f
        Add(f, f, b, n);
        LocalTensor<half> out = yQue.AllocTensor<half>();
        PipeBarrier<PIPE_V>();  // f
        Cast(out, f, RoundMode::CAST_RINT, n);
        yQue.EnQue(out);
        yQue.DeQue<half>();
        DataCopy(yGm[at], out, n);
        yQue.FreeTensor(out);
    }
}

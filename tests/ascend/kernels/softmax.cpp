// Softmax over rows of floats. One row at a time; the row's maximum and sum stay scalars.
#include "kernel_operator.h"

using namespace AscendC;

struct Tiling {
    uint32_t rows;
    uint32_t columns;  // a row and three copies fit into UB
};

extern "C" __global__ __aicore__ void softmax(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    (void)workspace;
    const Tiling t = *reinterpret_cast<const __gm__ Tiling *>(tiling);
    GlobalTensor<float> xGm, yGm;
    xGm.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(x));
    yGm.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(y));
    const uint32_t bytes = t.columns * sizeof(float);
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> xQue;
    TQue<QuePosition::VECOUT, 1> yQue;
    TBuf<QuePosition::VECCALC> workBuf, scalarBuf;
    pipe.InitBuffer(xQue, 2, bytes);
    pipe.InitBuffer(yQue, 2, bytes);
    pipe.InitBuffer(workBuf, bytes);
    pipe.InitBuffer(scalarBuf, 64);
    LocalTensor<float> work = workBuf.Get<float>();
    LocalTensor<float> most = scalarBuf.Get<float>();
    LocalTensor<float> sum = scalarBuf.GetWithOffset<float>(8, 32);
    for (uint32_t row = GetBlockIdx(); row < t.rows; row += GetBlockNum()) {
        const uint64_t at = static_cast<uint64_t>(row) * t.columns;
        LocalTensor<float> a = xQue.AllocTensor<float>();
        DataCopyPad(a, xGm[at], {1, bytes, 0, 0, 0}, {false, 0, 0, 0.0f});
        xQue.EnQue(a);
        xQue.DeQue<float>();
        LocalTensor<float> b = yQue.AllocTensor<float>();
        ReduceMax(most, a, work, t.columns);
        SetFlag<HardEvent::V_S>(EVENT_ID0);
        WaitFlag<HardEvent::V_S>(EVENT_ID0);
        Adds(b, a, -most.GetValue(0), t.columns);
        xQue.FreeTensor(a);
        PipeBarrier<PIPE_V>();  // b
        Exp(b, b, t.columns);
        PipeBarrier<PIPE_V>();  // b
        ReduceSum(sum, b, work, t.columns);
        SetFlag<HardEvent::V_S>(EVENT_ID1);
        WaitFlag<HardEvent::V_S>(EVENT_ID1);
        Muls(b, b, 1.0f / sum.GetValue(0), t.columns);
        SetFlag<HardEvent::S_V>(EVENT_ID0);  // the next row writes where this one was read
        WaitFlag<HardEvent::S_V>(EVENT_ID0);
        yQue.EnQue(b);
        yQue.DeQue<float>();
        DataCopyPad(yGm[at], b, {1, bytes, 0, 0, 0});
        yQue.FreeTensor(b);
    }
}

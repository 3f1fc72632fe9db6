// C = relu(A B + bias), half in and out, A of m x k and B of k x n row-major; n and k multiples of
// 32. One block; `asked` rows are multiplied of a fractal's 16.
#include "kernel_operator.h"

using namespace AscendC;

struct Tiling {
    uint32_t m, n, k, asked;
};

extern "C" __global__ __aicore__ void bias(GM_ADDR a, GM_ADDR b, GM_ADDR row, GM_ADDR c,
                                           GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    (void)workspace;
    const Tiling t = *reinterpret_cast<const __gm__ Tiling *>(tiling);
    const uint16_t m = static_cast<uint16_t>(t.m), n = static_cast<uint16_t>(t.n);
    const uint16_t k = static_cast<uint16_t>(t.k), k1 = k / 16, n1 = n / 16;
    GlobalTensor<half> aGm, bGm, rowGm, cGm;
    aGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(a));
    bGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(b));
    rowGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(row));
    cGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(c));
    TPipe pipe;
    TQue<QuePosition::A1, 1> a1Que;
    TQue<QuePosition::B1, 1> b1Que;
    TQue<QuePosition::C1, 1> c1Que;
    TQue<QuePosition::A2, 1> a2Que;
    TQue<QuePosition::B2, 1> b2Que;
    TQue<QuePosition::C2, 1> c2Que;
    TQue<QuePosition::CO1, 1> cQue;
    pipe.InitBuffer(a1Que, 1, 16 * k * sizeof(half));
    pipe.InitBuffer(b1Que, 1, n * k * sizeof(half));
    pipe.InitBuffer(c1Que, 1, n * sizeof(half));
    pipe.InitBuffer(a2Que, 1, 16 * k * sizeof(half));
    pipe.InitBuffer(b2Que, 1, n * k * sizeof(half));
    pipe.InitBuffer(c2Que, 1, n * sizeof(float));
    pipe.InitBuffer(cQue, 1, 16 * n * sizeof(float));
    LocalTensor<half> a1 = a1Que.AllocTensor<half>();
    LocalTensor<half> b1 = b1Que.AllocTensor<half>();
    LocalTensor<half> c1 = c1Que.AllocTensor<half>();
    Fill(a1, InitConstValueParams<half>(1, k, 0, half(0)));
    PipeBarrier<PIPE_MTE2>();
    DataCopy(a1, aGm, Nd2NzParams(1, m, k, 0, k, 16, 1, 0));
    DataCopy(b1, bGm, Nd2NzParams(1, k, n, 0, n, k, 1, 0));
    DataCopy(c1, rowGm, n);
    a1Que.EnQue(a1);
    b1Que.EnQue(b1);
    c1Que.EnQue(c1);
    a1Que.DeQue<half>();
    b1Que.DeQue<half>();
    c1Que.DeQue<half>();
    LocalTensor<half> a2 = a2Que.AllocTensor<half>();
    LocalTensor<half> b2 = b2Que.AllocTensor<half>();
    LocalTensor<float> c2 = c2Que.AllocTensor<float>();
    LoadData(a2, a1, LoadData2DParams(0, static_cast<uint8_t>(k1), 1, 0, 0, false, 0));
    for (uint16_t i = 0; i < k1; ++i) {
        LoadData(b2[i * n1 * 256], b1[i * 256],
                 LoadData2DParams(0, static_cast<uint8_t>(n1), k1, 0, 0, true, 0));
    }
    DataCopy(c2, c1, DataCopyParams(1, static_cast<uint16_t>(n * sizeof(half) / 64), 0, 0));
    a2Que.EnQue(a2);
    b2Que.EnQue(b2);
    c2Que.EnQue(c2);
    a2Que.DeQue<half>();
    b2Que.DeQue<half>();
    c2Que.DeQue<float>();
    LocalTensor<float> acc = cQue.AllocTensor<float>();
    Mmad(acc, a2, b2, c2, MmadParams(static_cast<uint16_t>(t.asked), n, k, 0, true, false));
    cQue.EnQue(acc);
    cQue.DeQue<float>();
    FixpipeParamsV220 out(n, m, 16, n, true);
    out.quantPre = QuantMode_t::F322F16;
    Fixpipe(cGm, acc, out);
}

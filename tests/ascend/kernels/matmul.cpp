// C = relu(A B), half in and out, A of m x k and B of k x n row-major; all extents multiples of 16.
// Tiles of C are dealt out to the cube cores; k runs in steps with both operands double-buffered.
#include "kernel_operator.h"

using namespace AscendC;

struct Tiling {
    uint32_t m, n, k;
    uint32_t tileM, tileN, tileK;
};

extern "C" __global__ __aicore__ void matmul(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR workspace,
                                             GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    (void)workspace;
    const Tiling t = *reinterpret_cast<const __gm__ Tiling *>(tiling);
    GlobalTensor<half> aGm, bGm, cGm;
    aGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(a));
    bGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(b));
    cGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(c));
    TPipe pipe;
    TQue<QuePosition::A1, 1> a1Que;
    TQue<QuePosition::B1, 1> b1Que;
    TQue<QuePosition::A2, 1> a2Que;
    TQue<QuePosition::B2, 1> b2Que;
    TQue<QuePosition::CO1, 1> cQue;
    pipe.InitBuffer(a1Que, 2, t.tileM * t.tileK * sizeof(half));
    pipe.InitBuffer(b1Que, 2, t.tileK * t.tileN * sizeof(half));
    pipe.InitBuffer(a2Que, 2, t.tileM * t.tileK * sizeof(half));
    pipe.InitBuffer(b2Que, 2, t.tileK * t.tileN * sizeof(half));
    pipe.InitBuffer(cQue, 1, t.tileM * t.tileN * sizeof(float));
    const uint32_t tilesN = (t.n + t.tileN - 1) / t.tileN;
    const uint32_t tilesM = (t.m + t.tileM - 1) / t.tileM;
    for (uint32_t tile = GetBlockIdx(); tile < tilesM * tilesN; tile += GetBlockNum()) {
        const uint32_t row = tile / tilesN * t.tileM, column = tile % tilesN * t.tileN;
        const uint16_t m = static_cast<uint16_t>(t.m - row < t.tileM ? t.m - row : t.tileM);
        const uint16_t n = static_cast<uint16_t>(t.n - column < t.tileN ? t.n - column : t.tileN);
        const uint16_t m1 = m / 16, n1 = n / 16;
        LocalTensor<float> acc = cQue.AllocTensor<float>();
        for (uint32_t start = 0; start < t.k; start += t.tileK) {
            const uint16_t k = static_cast<uint16_t>(t.k - start < t.tileK ? t.k - start : t.tileK);
            const uint16_t k1 = k / 16;
            LocalTensor<half> a1 = a1Que.AllocTensor<half>();
            LocalTensor<half> b1 = b1Que.AllocTensor<half>();
            DataCopy(a1, aGm[static_cast<uint64_t>(row) * t.k + start], Nd2NzParams(1, m, k, 0, t.k, m, 1, 0));
            DataCopy(b1, bGm[static_cast<uint64_t>(start) * t.n + column], Nd2NzParams(1, k, n, 0, t.n, k, 1, 0));
            a1Que.EnQue(a1);
            b1Que.EnQue(b1);
            a1Que.DeQue<half>();
            b1Que.DeQue<half>();
            LocalTensor<half> a2 = a2Que.AllocTensor<half>();
            LocalTensor<half> b2 = b2Que.AllocTensor<half>();
            for (uint16_t i = 0; i < m1; ++i) {
                LoadData(a2[i * k1 * 256], a1[i * 256],
                         LoadData2DParams(0, static_cast<uint8_t>(k1), m1, 0, 0, false, 0));
            }
            for (uint16_t i = 0; i < k1; ++i) {
                LoadData(b2[i * n1 * 256], b1[i * 256],
                         LoadData2DParams(0, static_cast<uint8_t>(n1), k1, 0, 0, true, 0));
            }
            a2Que.EnQue(a2);
            b2Que.EnQue(b2);
            a1Que.FreeTensor(a1);
            b1Que.FreeTensor(b1);
            a2Que.DeQue<half>();
            b2Que.DeQue<half>();
            if (m1 * n1 < 10) {
                PipeBarrier<PIPE_M>();
            }
            Mmad(acc, a2, b2, MmadParams(m, n, k, 0, false, start == 0));
            a2Que.FreeTensor(a2);
            b2Que.FreeTensor(b2);
        }
        cQue.EnQue(acc);
        cQue.DeQue<float>();
        FixpipeParamsV220 out(n, m, m, t.n, true);
        out.quantPre = QuantMode_t::F322F16;
        Fixpipe(cGm[static_cast<uint64_t>(row) * t.n + column], acc, out);
        cQue.FreeTensor(acc);
    }
}

// out = relu(A B) + R: the cube core hands tiles through a workspace to its two vector cores, two
// slots per group in turn. Each block takes rows of tiles; extents are multiples of the tile.
#include "kernel_operator.h"

using namespace AscendC;

struct Tiling {
    uint32_t m, n, k;  // one tile: 32 x n, all of k
};

constexpr uint32_t kRows = 32;

extern "C" __global__ __aicore__ void epilogue(GM_ADDR a, GM_ADDR b, GM_ADDR r, GM_ADDR out,
                                               GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    const Tiling t = *reinterpret_cast<const __gm__ Tiling *>(tiling);
    const uint16_t n = static_cast<uint16_t>(t.n), k = static_cast<uint16_t>(t.k);
    const uint32_t slot = kRows * t.n;
    GlobalTensor<float> slots;
    TPipe pipe;
    if (ASCEND_IS_AIC) {
        slots.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(workspace) + GetBlockIdx() * 2 * slot);
        GlobalTensor<half> aGm, bGm;
        aGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(a));
        bGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(b));
        TQue<QuePosition::A1, 1> a1Que;
        TQue<QuePosition::A2, 1> a2Que;
        TQue<QuePosition::CO1, 1> cQue;
        TBuf<QuePosition::B1> b1Buf;
        TBuf<QuePosition::B2> b2Buf;
        pipe.InitBuffer(a1Que, 2, kRows * t.k * sizeof(half));
        pipe.InitBuffer(a2Que, 2, kRows * t.k * sizeof(half));
        pipe.InitBuffer(cQue, 2, slot * sizeof(float));
        pipe.InitBuffer(b1Buf, t.k * t.n * sizeof(half));
        pipe.InitBuffer(b2Buf, t.k * t.n * sizeof(half));
        LocalTensor<half> b1 = b1Buf.Get<half>(), b2 = b2Buf.Get<half>();
        DataCopy(b1, bGm, Nd2NzParams(1, k, n, 0, t.n, k, 1, 0));
        SetFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
        WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
        for (uint16_t i = 0; i < k / 16; ++i) {
            LoadData(b2[i * n * 16], b1[i * 256],
                     LoadData2DParams(0, static_cast<uint8_t>(n / 16), k / 16, 0, 0, true, 0));
        }
        uint32_t round = 0;
        for (uint32_t row = GetBlockIdx() * kRows; row < t.m; row += GetBlockNum() * kRows, ++round) {
            LocalTensor<half> a1 = a1Que.AllocTensor<half>();
            DataCopy(a1, aGm[row * t.k], Nd2NzParams(1, kRows, k, 0, t.k, kRows, 1, 0));
            a1Que.EnQue(a1);
            a1Que.DeQue<half>();
            LocalTensor<half> a2 = a2Que.AllocTensor<half>();
            for (uint16_t i = 0; i < kRows / 16; ++i) {
                LoadData(a2[i * k * 16], a1[i * 256],
                         LoadData2DParams(0, static_cast<uint8_t>(k / 16), kRows / 16, 0, 0, false, 0));
            }
            a2Que.EnQue(a2);
            a1Que.FreeTensor(a1);
            a2Que.DeQue<half>();
            LocalTensor<float> acc = cQue.AllocTensor<float>();
            Mmad(acc, a2, b2, MmadParams(kRows, n, k, 0, false, true));
            a2Que.FreeTensor(a2);
            cQue.EnQue(acc);
            cQue.DeQue<float>();
            if (round >= 2) {
                CrossCoreWaitFlag(1);  // the slot has been read
            }
            Fixpipe(slots[round % 2 * slot], acc, FixpipeParamsV220(n, kRows, kRows, t.n, true));
            cQue.FreeTensor(acc);
            CrossCoreSetFlag<2, PIPE_FIX>(0);
        }
        for (uint32_t i = 0; i < (round < 2 ? round : 2); ++i) {
            CrossCoreWaitFlag(1);  // leave no flag behind
        }
    }
    if (ASCEND_IS_AIV) {
        const uint32_t block = GetBlockIdx() / 2, part = kRows / 2 * t.n;
        slots.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(workspace) + block * 2 * slot);
        GlobalTensor<float> rGm, outGm;
        rGm.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(r));
        outGm.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(out));
        TQue<QuePosition::VECIN, 1> cQue, rQue;
        TQue<QuePosition::VECOUT, 1> outQue;
        pipe.InitBuffer(cQue, 2, part * sizeof(float));
        pipe.InitBuffer(rQue, 2, part * sizeof(float));
        pipe.InitBuffer(outQue, 2, part * sizeof(float));
        uint32_t round = 0;
        for (uint32_t row = block * kRows; row < t.m; row += GetBlockNum() * kRows, ++round) {
            const uint32_t at = (row + GetSubBlockIdx() * (kRows / 2)) * t.n;
            LocalTensor<float> residual = rQue.AllocTensor<float>();
            DataCopy(residual, rGm[at], part);
            rQue.EnQue(residual);
            LocalTensor<float> product = cQue.AllocTensor<float>();
            CrossCoreWaitFlag(0);
            DataCopy(product, slots[round % 2 * slot + GetSubBlockIdx() * part], part);
            CrossCoreSetFlag<2, PIPE_MTE2>(1);
            cQue.EnQue(product);
            cQue.DeQue<float>();
            rQue.DeQue<float>();
            LocalTensor<float> sum = outQue.AllocTensor<float>();
            Add(sum, product, residual, part);
            outQue.EnQue(sum);
            cQue.FreeTensor(product);
            rQue.FreeTensor(residual);
            outQue.DeQue<float>();
            DataCopy(outGm[at], sum, part);
            outQue.FreeTensor(sum);
        }
    }
}

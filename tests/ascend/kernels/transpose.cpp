// y = x transposed, half, in tiles of 16 columns and 16 rows; both extents are multiples of 16.
#include "kernel_operator.h"

using namespace AscendC;

struct Tiling {
    uint32_t rows;
    uint32_t columns;
};

extern "C" __global__ __aicore__ void transpose(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR tiling)
{
    (void)workspace;
    const Tiling t = *reinterpret_cast<const __gm__ Tiling *>(tiling);
    GlobalTensor<half> xGm, yGm;
    xGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(x));
    yGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(y));
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> inQue;
    TQue<QuePosition::VECOUT, 1> outQue;
    const uint32_t bytes = t.rows * 16 * sizeof(half);
    pipe.InitBuffer(inQue, 2, bytes);
    pipe.InitBuffer(outQue, 2, bytes);
    const uint16_t rows = static_cast<uint16_t>(t.rows);
    for (uint32_t column = GetBlockIdx() * 16; column < t.columns; column += GetBlockNum() * 16) {
        LocalTensor<half> in = inQue.AllocTensor<half>();
        DataCopy(in, xGm[column], DataCopyParams(rows, 1, static_cast<uint16_t>(t.columns / 16 - 1), 0));
        inQue.EnQue(in);
        LocalTensor<half> out = outQue.AllocTensor<half>();
        inQue.DeQue<half>();
        uint64_t from[16], to[16];
        for (uint32_t i = 0; i < 16; ++i) {
            from[i] = in[i * 16].GetPhyAddr();
            to[i] = out[i * t.rows].GetPhyAddr();
        }
        TransDataTo5HDParams params(false, false, static_cast<uint8_t>(t.rows / 16), 1, 16);
        if (t.rows == 16) {
            params.dstRepStride = 0;
            params.srcRepStride = 0;
        }
        TransDataTo5HD<half>(to, from, params);
        outQue.EnQue(out);
        inQue.FreeTensor(in);
        outQue.DeQue<half>();
        DataCopy(yGm[static_cast<uint64_t>(column) * t.rows], out, t.rows * 16);
        outQue.FreeTensor(out);
    }
}

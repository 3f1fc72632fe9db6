// z = x + y, half, rows of `tile` elements dealt out to the blocks; the last tile may be short.
#include "kernel_operator.h"

using namespace AscendC;

struct Tiling {
    uint32_t count;  // elements
    uint32_t tile;   // elements, a multiple of 16
};

extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR workspace,
                                          GM_ADDR tiling)
{
    (void)workspace;
    const Tiling t = *reinterpret_cast<const __gm__ Tiling *>(tiling);
    GlobalTensor<half> xGm, yGm, zGm;
    xGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(x), t.count);
    yGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(y), t.count);
    zGm.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(z), t.count);
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> xQue, yQue;
    TQue<QuePosition::VECOUT, 1> zQue;
    pipe.InitBuffer(xQue, 2, t.tile * sizeof(half));
    pipe.InitBuffer(yQue, 2, t.tile * sizeof(half) + 256);  // sources in different bank groups
    pipe.InitBuffer(zQue, 2, t.tile * sizeof(half));
    for (uint32_t start = GetBlockIdx() * t.tile; start < t.count; start += GetBlockNum() * t.tile) {
        const uint32_t n = t.count - start < t.tile ? t.count - start : t.tile;
        const uint32_t bytes = n * sizeof(half);
        LocalTensor<half> a = xQue.AllocTensor<half>();
        LocalTensor<half> b = yQue.AllocTensor<half>();
        DataCopyPad(a, xGm[start], {1, bytes, 0, 0, 0}, {false, 0, 0, half(0)});
        DataCopyPad(b, yGm[start], {1, bytes, 0, 0, 0}, {false, 0, 0, half(0)});
        xQue.EnQue(a);
        yQue.EnQue(b);
        LocalTensor<half> c = zQue.AllocTensor<half>();
        xQue.DeQue<half>();
        yQue.DeQue<half>();
        Add(c, a, b, n);
        zQue.EnQue(c);
        xQue.FreeTensor(a);
        yQue.FreeTensor(b);
        zQue.DeQue<half>();
        DataCopyPad(zGm[start], c, {1, bytes, 0, 0, 0});
        zQue.FreeTensor(c);
    }
}

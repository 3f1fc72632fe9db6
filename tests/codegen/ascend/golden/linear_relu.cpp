// linear_relu fuses: matmul, relu.
// Template cube; axes: i0 < s0, i1 < 33, r0 < 40.
//   x0: operand, f16 (s0, 40)
//   x1: operand, f16 (33, 40)
//   y0: result, f16 (s0, 33)
#include "kernel_operator.h"
#include "linear_relu_tiling.h"

namespace linear_relu_detail {
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
}

class Kernel {
public:
    __aicore__ inline void Init(GM_ADDR x0At, GM_ADDR x1At, GM_ADDR y0At, [[maybe_unused]] GM_ADDR workspace, GM_ADDR tilingAt)
    {
        tiling = reinterpret_cast<const __gm__ linear_relu_Tiling *>(tilingAt);
        s0 = tiling->s0;
        x0.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(x0At));
        x1.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(x1At));
        y0.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(y0At));
    }

    // Product of x0 and x1; each cube core takes a share of the tiles.
    __aicore__ inline void Product0()
    {
        constexpr int32_t c0 = 16, fractal = 16 * c0;
        const int32_t tileM = static_cast<int32_t>(tiling->tileM0);
        const int32_t tileN = static_cast<int32_t>(tiling->tileN0);
        const int32_t strip = static_cast<int32_t>(tiling->strip0);
        const int32_t tileK = static_cast<int32_t>(tiling->tileK0);
        const int32_t chunkK = static_cast<int32_t>(tiling->chunkK0);
        const int32_t stages = static_cast<int32_t>(tiling->stages0);
        TQue<TPosition::A1, 1> l1Queue;  // a chunk of each operand
        const int32_t kept = static_cast<int32_t>(tiling->kept0);
        TQue<TPosition::B1, 1> keptQueue;  // chunks of the right one
        TBuf<TPosition::A2> a2Buffer;  // as many steps as b2Queue holds, in step with it
        TQue<TPosition::B2, 3> b2Queue;
        TQue<TPosition::CO1, 2> cQueue;
        pipe.InitBuffer(l1Queue, static_cast<uint8_t>(stages),
                        static_cast<uint32_t>((tileM + tileN) * chunkK * 2));
        pipe.InitBuffer(a2Buffer, static_cast<uint32_t>(3 * tileM * tileK * 2));
        pipe.InitBuffer(b2Queue, 3, static_cast<uint32_t>(strip * tileK * 2));
        pipe.InitBuffer(cQueue, 2, static_cast<uint32_t>(tileM * strip * 4));
        if (kept > 0) {
            pipe.InitBuffer(keptQueue, static_cast<uint8_t>(kept),
                            static_cast<uint32_t>(tileN * chunkK * 2));
        }
        int32_t step = 0;  // of k
        LocalTensor<half> keptB[8];
        int64_t keptPanel = -1;  // whose chunks these are
        const int64_t chunkM = tiling->chunkM0;
        const int64_t tilesN = (33 + tileN - 1) / tileN;
        for (int64_t low = 0; low < s0; low += chunkM) {
            const int64_t high = low + chunkM < s0 ? low + chunkM : s0;
            const int64_t tilesM = (high - low + tileM - 1) / tileM;
            const int64_t tasks = 1 * tilesM * tilesN;
            const int64_t first = tasks * GetBlockIdx() / GetBlockNum();
            const int64_t last = tasks * (GetBlockIdx() + 1) / GetBlockNum();
            for (int64_t task = first; task < last; task++) {
                int64_t left = task;
                const int64_t m0 = low + left % tilesM * tileM;
                left /= tilesM;
                const int64_t n0 = left % tilesN * tileN;
                const int32_t m = AtMost(tileM, high - m0);
                const int32_t n = AtMost(tileN, 33 - n0);
                const int32_t rows = m > 1 ? m : 2;  // one alone is read as a vector, not as fractals
                const int32_t chunks = static_cast<int32_t>((40 + chunkK - 1) / chunkK);
                LocalTensor<half> aChunks[2], bChunks[2];
                LocalTensor<float> c[2];
                for (int32_t i = 0; i <= chunks; i++) {
                    if (i < chunks) {
                        const int64_t k1 = static_cast<int64_t>(i) * chunkK;
                        const int32_t kLength = AtMost(chunkK, 40 - k1);
                        LocalTensor<half> a1 = l1Queue.AllocTensor<half>();
                        LocalTensor<half> b1 = a1[tileM * chunkK];
                        if (i >= kept) {
                            CopyFractals(b1, x1[0 + n0 * 40 + k1], n, kLength, 40);
                        } else {
                            if (keptPanel != task / tilesM) {
                                if (keptPanel >= 0) {
                                    keptQueue.FreeTensor(keptB[i]);
                                }
                                keptB[i] = keptQueue.AllocTensor<half>();
                                CopyFractals(keptB[i], x1[0 + n0 * 40 + k1], n, kLength, 40);
                                keptQueue.EnQue(keptB[i]);
                                keptB[i] = keptQueue.DeQue<half>();
                            }
                            b1 = keptB[i];
                        }
                        CopyFractals(a1, x0[0 + m0 * 40 + k1], m, kLength, 40);
                        l1Queue.EnQue(a1);
                        aChunks[i % 2] = l1Queue.DeQue<half>();
                        bChunks[i % 2] = b1;
                    }
                    for (int32_t at = 0; at < 2 && at * strip < n; at++) {
                        const int32_t chunk = i - at, n1 = at * strip;
                        if (chunk < 0 || chunk == chunks) {
                            continue;
                        }
                        const LocalTensor<half> a1 = aChunks[chunk % 2], b1 = bChunks[chunk % 2];
                        const int32_t kLength = AtMost(chunkK, 40 - static_cast<int64_t>(chunk) * chunkK);
                        const int32_t width = AtMost(strip, n - n1);
                        const int32_t nFractals = UpTo(width, 16) / 16;
                        if (chunk == 0) {
                            c[at] = cQueue.AllocTensor<float>();
                        }
                        for (int32_t k0 = 0; k0 < kLength; k0 += tileK) {
                            const int32_t k = AtMost(tileK, kLength - k0);
                            const int32_t kBlocks = UpTo(k, c0) / c0;
                            LocalTensor<half> b2 = b2Queue.AllocTensor<half>();
                            const LocalTensor<half> a2 = a2Buffer.Get<half>()[step % 3 * tileM * tileK];
                            step++;
                            for (int32_t i = 0; i < UpTo(m, 16) / 16; i++) {
                                LoadData(a2[i * kBlocks * fractal], a1[k0 * UpTo(m, 16) + i * fractal],
                                         LoadData2DParams(0, static_cast<uint8_t>(kBlocks),
                                                          static_cast<uint16_t>(UpTo(m, 16) / 16), 0, 0, false, 0));
                            }
                            for (int32_t i = 0; i < kBlocks; i++) {
                                LoadData(b2[i * nFractals * fractal], b1[k0 * UpTo(n, 16) + i * UpTo(n, 16) * c0 + n1 * c0],
                                         LoadData2DParams(0, static_cast<uint8_t>(nFractals), 1, 0, 0, false, 0));
                            }
                            b2Queue.EnQue(b2);
                            b2 = b2Queue.DeQue<half>();
                            Mmad(c[at], a2, b2,
                                 MmadParams(static_cast<uint16_t>(rows), static_cast<uint16_t>(width),
                                            static_cast<uint16_t>(k), 0, false, chunk == 0 && k0 == 0));
                            if (UpTo(m, 16) / 16 * nFractals < 10) {  // short products overtake each other
                                PipeBarrier<PIPE_M>();
                            }
                            b2Queue.FreeTensor(b2);
                        }
                        if (chunk == chunks - 1) {
                            cQueue.EnQue(c[at]);
                            c[at] = cQueue.DeQue<float>();
                            FixpipeParamsV220 shape;
                            shape.nSize = static_cast<uint16_t>(width);
                            shape.mSize = static_cast<uint16_t>(m);
                            shape.srcStride = static_cast<uint16_t>(UpTo(m, 16));
                            shape.dstStride = static_cast<uint32_t>((33));
                            shape.reluEn = true;
                            shape.quantPre = QuantMode_t::F322F16;
                            Fixpipe(y0[0 + m0 * 33 + n0 + n1], c[at], shape);
                            cQueue.FreeTensor(c[at]);
                        }
                    }
                    if (i > 0) {
                        l1Queue.FreeTensor(aChunks[(i - 1) % 2]);
                    }
                }
                keptPanel = task / tilesM;
            }
        }
    }

    TPipe pipe;
    int64_t s0;

private:
    const __gm__ linear_relu_Tiling *tiling;
    GlobalTensor<half> x0;
    GlobalTensor<half> x1;
    GlobalTensor<half> y0;
};
}  // namespace linear_relu_detail

extern "C" __global__ __aicore__ void linear_relu(GM_ADDR x0, GM_ADDR x1, GM_ADDR y0, GM_ADDR workspace, GM_ADDR tiling)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    linear_relu_detail::Kernel kernel;
    kernel.Init(x0, x1, y0, workspace, tiling);
    kernel.Product0();
}

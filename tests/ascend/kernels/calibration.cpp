// What the published measurements measured, as kernels: each repeats one thing `rounds` times.
#include "kernel_operator.h"

using namespace AscendC;

struct Tiling {
    uint32_t rounds;
    uint32_t size;    // what it means is the entry's business
    uint32_t offset;
    uint32_t m, n, k;
};

#define ENTRY(NAME) \
    extern "C" __global__ __aicore__ void NAME([[maybe_unused]] GM_ADDR x, [[maybe_unused]] GM_ADDR y, \
                                               [[maybe_unused]] GM_ADDR w, GM_ADDR tiling)
#define TILING const Tiling t = *reinterpret_cast<const __gm__ Tiling *>(tiling)

// Add of `size` repeats, half. Sources and result lie in banks of their own, except for `offset`: 1
// sources in one bank group, 2 a source and the result in one bank.
ENTRY(vector_add)
{
    TILING;
    TPipe pipe;
    TBuf<QuePosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 180 * 1024);
    LocalTensor<half> all = buffer.Get<half>();
    const uint32_t column = 32 * 1024;  // halves: addresses of one set of banks
    const uint32_t n = t.size * 128;
    const uint32_t second = t.offset == 1 ? column : column + 128;
    const uint32_t result = t.offset == 2 ? n : 2 * column;
    for (uint32_t i = 0; i < t.rounds; ++i) {
        Add(all[result], all, all[second], n);
        PipeBarrier<PIPE_V>();
    }
}

// Two reads and a write by the scalar unit.
ENTRY(scalar_loop)
{
    TILING;
    TPipe pipe;
    TBuf<QuePosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 4096);
    LocalTensor<float> all = buffer.Get<float>();
    for (uint32_t i = 0; i < t.rounds; ++i) {
        all.SetValue(i % 64, all.GetValue(64) + all.GetValue(65));
    }
}

// `size` bytes from GM to UB and from UB to GM, one after the other.
ENTRY(copy_in)
{
    TILING;
    TPipe pipe;
    TBuf<QuePosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, t.size);
    LocalTensor<half> local = buffer.Get<half>();
    GlobalTensor<half> global;
    global.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(x));
    for (uint32_t i = 0; i < t.rounds; ++i) {
        DataCopy(local, global[i * (t.size / 2)], t.size / 2);
        PipeBarrier<PIPE_MTE2>();
    }
}
ENTRY(copy_out)
{
    TILING;
    TPipe pipe;
    TBuf<QuePosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, t.size);
    LocalTensor<half> local = buffer.Get<half>();
    GlobalTensor<half> global;
    global.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(y));
    for (uint32_t i = 0; i < t.rounds; ++i) {
        DataCopy(global[i * (t.size / 2)], local, t.size / 2);
        PipeBarrier<PIPE_MTE3>();
    }
}

// All cores read all of x, in tiles of `size` bytes made of bursts of m bytes, from byte `offset`.
ENTRY(read_array)
{
    TILING;
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 2, t.size);
    GlobalTensor<half> global;
    global.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(x + t.offset));
    const uint16_t bursts = static_cast<uint16_t>(t.size / t.m);
    for (uint32_t i = GetBlockIdx(); i < t.rounds; i += GetBlockNum()) {
        LocalTensor<half> local = queue.AllocTensor<half>();
        // Bursts lie `n` bytes apart, as rows of a matrix do.
        DataCopyPad(local, global[static_cast<uint64_t>(i) * (t.size / 2)],
                    {bursts, t.m, t.n, 0, 0}, {false, 0, 0, half(0)});
        queue.EnQue(local);
        queue.DeQue<half>();
        queue.FreeTensor(local);
    }
}

// Every core reads the same `size` bytes over and over: they come out of L2.
ENTRY(read_again)
{
    TILING;
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 2, 32768);
    GlobalTensor<half> global;
    global.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(x));
    for (uint32_t round = 0; round < t.rounds; ++round) {
        for (uint32_t at = 0; at < t.size; at += 32768) {
            LocalTensor<half> local = queue.AllocTensor<half>();
            DataCopy(local, global[at / 2], 16384);
            queue.EnQue(local);
            queue.DeQue<half>();
            queue.FreeTensor(local);
        }
    }
}

// `size` bytes from L1 to L0A (offset 0) or L0B (offset 1).
ENTRY(load)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    TILING;
    TPipe pipe;
    TBuf<QuePosition::A1> l1;
    TBuf<QuePosition::A2> l0a;
    TBuf<QuePosition::B2> l0b;
    pipe.InitBuffer(l1, 65536);
    pipe.InitBuffer(l0a, 65536);
    pipe.InitBuffer(l0b, 65536);
    const LoadData2DParams params(0, static_cast<uint8_t>(t.size / 512), 1, 0, 0, false, 0);
    for (uint32_t i = 0; i < t.rounds; ++i) {
        LoadData(t.offset == 0 ? l0a.Get<half>() : l0b.Get<half>(), l1.Get<half>(), params);
        PipeBarrier<PIPE_MTE1>();
    }
}

// A product of m x n x k halves in L0.
ENTRY(product)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    TILING;
    TPipe pipe;
    TBuf<QuePosition::A2> l0a;
    TBuf<QuePosition::B2> l0b;
    TBuf<QuePosition::CO1> l0c;
    pipe.InitBuffer(l0a, 65536);
    pipe.InitBuffer(l0b, 65536);
    pipe.InitBuffer(l0c, 131072);
    const MmadParams params(static_cast<uint16_t>(t.m), static_cast<uint16_t>(t.n),
                            static_cast<uint16_t>(t.k), 0, false, true);
    for (uint32_t i = 0; i < t.rounds; ++i) {
        Mmad(l0c.Get<float>(), l0a.Get<half>(), l0b.Get<half>(), params);
        PipeBarrier<PIPE_M>();
    }
}

// m x n results from L0C to L1.
ENTRY(fix)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    TILING;
    TPipe pipe;
    TBuf<QuePosition::A1> l1;
    TBuf<QuePosition::CO1> l0c;
    pipe.InitBuffer(l1, 65536);
    pipe.InitBuffer(l0c, 131072);
    FixpipeParamsV220 params(static_cast<uint16_t>(t.n), static_cast<uint16_t>(t.m),
                             static_cast<uint16_t>(t.m), t.m, false);
    params.quantPre = QuantMode_t::F322F16;
    for (uint32_t i = 0; i < t.rounds; ++i) {
        Fixpipe(l1.Get<half>(), l0c.Get<float>(), params);
        PipeBarrier<PIPE_FIX>();
    }
}

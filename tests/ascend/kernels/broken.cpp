// Each entry breaks one rule of the chip; the test looks for the rule's code.
#include "kernel_operator.h"

using namespace AscendC;

#define ENTRY(NAME) \
    extern "C" __global__ __aicore__ void NAME([[maybe_unused]] GM_ADDR x, [[maybe_unused]] GM_ADDR y, \
                                               [[maybe_unused]] GM_ADDR w, [[maybe_unused]] GM_ADDR t)

using Vec = TBuf<QuePosition::VECCALC>;

static GlobalTensor<float> Global(GM_ADDR address)
{
    GlobalTensor<float> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(address));
    return tensor;
}

// 1024 floats of x in UB, ready for the vector pipe.
struct Loaded {
    TPipe pipe;
    Vec buffer;
    LocalTensor<float> tensor;
    explicit Loaded(GM_ADDR x, uint32_t floats = 1024)
    {
        pipe.InitBuffer(buffer, floats * 4);
        tensor = buffer.Get<float>();
        DataCopy(tensor, Global(x), floats > 1024 ? 1024 : floats);
        SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
        WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    }
};

ENTRY(capacity)
{
    TPipe pipe;
    Vec a, b;
    pipe.InitBuffer(a, 150 * 1024);
    pipe.InitBuffer(b, 40 * 1024);
}
ENTRY(capacity_l0c)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    TPipe pipe;
    TQue<QuePosition::CO1, 1> c;
    pipe.InitBuffer(c, 2, 65 * 1024);
}
ENTRY(alignment)
{
    Loaded in(x);
    Abs(in.tensor[512], in.tensor[3], 64);
}
ENTRY(gm_alignment)
{
    Loaded in(x);
    GlobalTensor<float> odd;
    odd.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(x + 2));
    DataCopyPad(in.tensor, odd, {1, 4, 0, 0, 0}, {false, 0, 0, 0.0f});
}
ENTRY(gm_out_of_bounds)
{
    Loaded in(x);
    DataCopy(in.tensor, Global(x)[1000], 64);
}
ENTRY(local_out_of_bounds)
{
    Loaded in(x);
    Abs(in.tensor, in.tensor, 1032);
}
ENTRY(copy_limit)
{
    Loaded in(x);
    DataCopyPad(Global(y), in.tensor, {4096, 4, 0, 0, 0});
}
ENTRY(copy_limit_padding)
{
    Loaded in(x);
    DataCopyPad(in.tensor, Global(x), {1, 4, 0, 0, 0}, {true, 9, 0, 0.0f});
}
ENTRY(copy_empty)
{
    Loaded in(x);
    DataCopy(Global(y), in.tensor, 7);
}
ENTRY(queue_exhausted)
{
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 1, 1024);
    LocalTensor<float> a = queue.AllocTensor<float>();
    LocalTensor<float> b = queue.AllocTensor<float>();
}
ENTRY(queue_empty)
{
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 1, 1024);
    queue.DeQue<float>();
}
ENTRY(queue_depth)
{
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 2, 1024);
    LocalTensor<float> a = queue.AllocTensor<float>();
    LocalTensor<float> b = queue.AllocTensor<float>();
    queue.EnQue(a);
    queue.EnQue(b);
    queue.DeQue<float>();
    queue.DeQue<float>();
}
ENTRY(queue_order)
{
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 1, 1024);
    LocalTensor<float> a = queue.AllocTensor<float>();
    queue.FreeTensor(a);
    queue.FreeTensor(a);
}
ENTRY(queue_unmatched)
{
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 1, 1024);
    LocalTensor<float> a = queue.AllocTensor<float>();
    queue.EnQue(a);
}
ENTRY(queue_buffers)
{
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> a, b, c;
    pipe.InitBuffer(a, 4, 1024);
    pipe.InitBuffer(b, 4, 1024);
    pipe.InitBuffer(c, 1, 1024);
}
ENTRY(buffers_in_all)
{
    TPipe pipe;
    Vec buffers[65];
    for (auto &buffer : buffers) {
        pipe.InitBuffer(buffer, 32);
    }
}
ENTRY(queue_uninitialised)
{
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> queue;
    queue.AllocTensor<float>();
}
ENTRY(event_unset) { WaitFlag<HardEvent::MTE2_V>(EVENT_ID0); }
ENTRY(event_repeated)
{
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
}
ENTRY(event_unmatched) { SetFlag<HardEvent::MTE2_V>(EVENT_ID0); }
ENTRY(event_id)
{
    SetFlag<HardEvent::MTE2_V>(EVENT_ID6);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID6);
}
ENTRY(event_exhausted)
{
    TPipe pipe;
    for (int i = 0; i < 7; ++i) {
        pipe.AllocEventID<HardEvent::V_S>();
    }
}
ENTRY(uninitialised)
{
    Loaded in(x, 2048);
    Abs(in.tensor, in.tensor, 1088);
}
ENTRY(race_vector)
{
    Loaded in(x);
    Abs(in.tensor, in.tensor, 1024);
    Exp(in.tensor, in.tensor, 1024);
}
ENTRY(race_in_place)
{
    // The second instruction reads what it writes, and is not the first to read it.
    Loaded in(x);
    Add(in.tensor[512], in.tensor, in.tensor[256], 64);
    Abs(in.tensor, in.tensor, 64);
}
// Byte offsets of 256 floats, every other one from number 2 * `first` on, in the last floats of `in`.
static LocalTensor<uint32_t> EveryOther(Loaded &in, int32_t first)
{
    LocalTensor<int32_t> places = in.tensor[768].ReinterpretCast<int32_t>();
    CreateVecIndex(places, first, 256u);
    PipeBarrier<PIPE_V>();
    Muls(places, places, 8, 256);
    PipeBarrier<PIPE_V>();
    return places.ReinterpretCast<uint32_t>();
}
ENTRY(race_gather)
{
    Loaded in(x);
    Gather(in.tensor[512], in.tensor, EveryOther(in, 0), 0, 256u);
    Abs(in.tensor, in.tensor, 64);
}
ENTRY(uninitialised_gather)
{
    Loaded in(x, 2048);
    Gather(in.tensor[512], in.tensor, EveryOther(in, 257), 0, 256u);
}
ENTRY(sound_gather)
{
    // What lies between the elements is not read: all but the first of each eight is poison.
    TPipe pipe;
    Vec buffer;
    pipe.InitBuffer(buffer, 4096);
    LocalTensor<float> some = buffer.Get<float>();
    LocalTensor<int32_t> places = some[512].ReinterpretCast<int32_t>();
    for (int i = 0; i < 64; ++i) {
        some.SetValue(i * 8, 1.0f);
    }
    CreateVecIndex(places, 0, 64u);
    PipeBarrier<PIPE_V>();
    Muls(places, places, 32, 64);
    SetFlag<HardEvent::S_V>(EVENT_ID0);
    WaitFlag<HardEvent::S_V>(EVENT_ID0);
    PipeBarrier<PIPE_V>();
    Gather(some[640], some, places.ReinterpretCast<uint32_t>(), 0, 64u);
}
ENTRY(race_copy)
{
    Loaded in(x);
    PipeBarrier<PIPE_MTE2>();
    DataCopy(in.tensor, Global(x), 1024);
    Abs(in.tensor, in.tensor, 1024);
}
ENTRY(race_scalar)
{
    Loaded in(x);
    Abs(in.tensor, in.tensor, 1024);
    in.tensor.GetValue(5);
}
ENTRY(race_store)
{
    Loaded in(x);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(Global(y), in.tensor, 64);
    DataCopy(Global(y)[32], in.tensor, 64);
}
ENTRY(race_free)
{
    Loaded in(x);
    Abs(in.tensor, in.tensor, 1024);
    DataCopy(in.tensor, Global(x), 1024);
}
ENTRY(race_cores)
{
    Loaded in(x);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(Global(y)[GetBlockIdx() * 32], in.tensor, 64);
}
ENTRY(gm_input_written)
{
    Loaded in(x);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(Global(x), in.tensor, 64);
}
ENTRY(gm_uninitialised)
{
    Loaded in(x);
    PipeBarrier<PIPE_ALL>();
    DataCopy(in.tensor, Global(w), 64);
}
ENTRY(operand_overlap)
{
    Loaded in(x);
    Abs(in.tensor[8], in.tensor, 512);
}
ENTRY(compare_count)
{
    Loaded in(x);
    Vec bits;
    in.pipe.InitBuffer(bits, 64);
    CompareScalar(bits.Get<uint8_t>(), in.tensor, 0.0f, CMPMODE::GT, 100);
}
ENTRY(unsupported_type)
{
    Loaded in(x);
    Vec bits;
    in.pipe.InitBuffer(bits, 64);
    CompareScalar(bits.Get<uint8_t>(), in.tensor.ReinterpretCast<int32_t>(), 0, CMPMODE::GT, 64);
}
ENTRY(round_mode)
{
    Loaded in(x);
    Vec whole;
    in.pipe.InitBuffer(whole, 256);
    Cast(whole.Get<int32_t>(), in.tensor, RoundMode::CAST_NONE, 64);
}
ENTRY(atomic_type)
{
    Loaded in(x);
    PipeBarrier<PIPE_ALL>();
    DataCopy(Global(y), in.tensor, 64);
    PipeBarrier<PIPE_ALL>();
    SetAtomicAdd<half>();
    DataCopy(Global(y), in.tensor, 64);
}
ENTRY(core_kind)
{
    TPipe pipe;
    TQue<QuePosition::A1, 1> queue;
    pipe.InitBuffer(queue, 1, 1024);
}
ENTRY(core_hang)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    if (ASCEND_IS_AIV) {
        CrossCoreWaitFlag(3);
    }
}
ENTRY(core_flag_unmatched)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
    if (ASCEND_IS_AIC) {
        CrossCoreSetFlag<2, PIPE_FIX>(3);
    }
}
ENTRY(core_flag)
{
    CrossCoreSetFlag<2, PIPE_MTE3>(3);
}
ENTRY(race_meeting)
{
    // Both blocks read what the other one has written, without meeting in between.
    Loaded in(x);
    PipeBarrier<PIPE_ALL>();
    DataCopy(Global(w)[GetBlockIdx() * 64], in.tensor, 64);
    PipeBarrier<PIPE_ALL>();
    if (GetBlockIdx() == 1) {
        DataCopy(in.tensor, Global(w), 64);
    }
}
ENTRY(sound_meeting)
{
    Loaded in(x);
    PipeBarrier<PIPE_ALL>();
    DataCopy(Global(w)[GetBlockIdx() * 64], in.tensor, 64);
    SyncAll();
    DataCopy(in.tensor, Global(w)[(1 - GetBlockIdx()) * 64], 64);
}
ENTRY(deq_scale)
{
    Loaded in(x);
    PipeBarrier<PIPE_V>();
    Cast(in.tensor[512].ReinterpretCast<half>(), in.tensor.ReinterpretCast<int32_t>(),
         RoundMode::CAST_NONE, 64);
}
ENTRY(sound_bound_queue)
{
    // One buffer serves as input and as output.
    TPipe pipe;
    TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> queue;
    pipe.InitBuffer(queue, 1, 4096);
    for (int i = 0; i < 2; ++i) {
        LocalTensor<float> a = queue.AllocTensor<float>();
        DataCopy(a, Global(x), 1024);
        queue.EnQue<TPosition::GM, TPosition::VECIN, float>(a);
        queue.DeQue<TPosition::GM, TPosition::VECIN, float>();
        Muls(a, a, 2.0f, 1024);
        queue.EnQue<TPosition::VECOUT, TPosition::GM, float>(a);
        queue.DeQue<TPosition::VECOUT, TPosition::GM, float>();
        PipeBarrier<PIPE_MTE3>();
        DataCopy(Global(y), a, 1024);
        queue.FreeTensor(a);
    }
}
ENTRY(sound_addresses)
{
    // Tensors at addresses of the kernel's own choice, and events by hand.
    LocalTensor<float> a(TPosition::VECCALC, 0, 1024), b(TPosition::VECCALC, 8192, 1024);
    DataCopy(a, Global(x), 1024);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    Adds(b, a, 1.0f, 1024);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(Global(y), b, 1024);
}
ENTRY(queue_foreign)
{
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> a, b;
    pipe.InitBuffer(a, 1, 1024);
    pipe.InitBuffer(b, 1, 1024);
    LocalTensor<float> tensor = a.AllocTensor<float>();
    b.EnQue(tensor);
}
ENTRY(event_unowned)
{
    TPipe pipe;
    pipe.ReleaseEventID<HardEvent::V_S>(0);
}
ENTRY(sync_kind)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    SyncAll<true>();
}
ENTRY(sync_alone)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    SyncAll();
}
ENTRY(core_flag_overflow)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1);
    if (ASCEND_IS_AIC) {
        for (int i = 0; i < 16; ++i) {
            CrossCoreSetFlag<2, PIPE_FIX>(3);
        }
    }
}
ENTRY(operand_memory)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    TPipe pipe;
    TBuf<QuePosition::A1> l1;
    TBuf<QuePosition::CO1> l0c;
    pipe.InitBuffer(l1, 1024);
    pipe.InitBuffer(l0c, 1024);
    LocalTensor<half> a = l1.Get<half>();
    Mmad(l0c.Get<float>(), a, a, MmadParams(16, 16, 16, 0, false, true));
}
// A product of one fractal each, with a bias of `type` that comes from L1 to `at` B of the table.
template <typename T>
struct Biased {
    Biased(uint32_t from, uint32_t to)
    {
        pipe.InitBuffer(l1, 1024);
        pipe.InitBuffer(table, 1024);
        pipe.InitBuffer(l0a, 512);
        pipe.InitBuffer(l0b, 512);
        pipe.InitBuffer(l0c, 1024);
        Fill(l1.Get<T>(), InitConstValueParams<T>(1, 32, 0, T{}));
        a = l0a.Get<half>();
        b = l0b.Get<half>();
        c = l0c.Get<float>();
        Fill(a, InitConstValueParams<half>(1, 1, 0, half(1)));
        Fill(b, InitConstValueParams<half>(1, 1, 0, half(1)));
        PipeBarrier<PIPE_ALL>();
        source = l1.Get<T>()[from];
        bias = table.Get<float>()[to];
    }
    TPipe pipe;
    TBuf<QuePosition::C1> l1;
    TBuf<QuePosition::C2> table;
    TBuf<QuePosition::A2> l0a;
    TBuf<QuePosition::B2> l0b;
    TBuf<QuePosition::CO1> l0c;
    LocalTensor<T> source;
    LocalTensor<float> bias, c;
    LocalTensor<half> a, b;
    const DataCopyParams once{1, 1, 0, 0};
    const MmadParams from{16, 16, 16, 0, true, false};
};
ENTRY(sound_bias)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Biased<half> product(16, 32);
    DataCopy(product.bias, product.source, product.once);
    PipeBarrier<PIPE_ALL>();
    Mmad(product.c, product.a, product.b, product.bias, product.from);
}
ENTRY(capacity_table)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    TPipe pipe;
    TBuf<QuePosition::C2> table;
    pipe.InitBuffer(table, 1088);
}
ENTRY(table_alignment)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Biased<float> product(0, 8);
    DataCopy(product.bias, product.source, product.once);
    PipeBarrier<PIPE_ALL>();
}
ENTRY(table_source_alignment)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Biased<half> product(8, 0);
    DataCopy(product.bias, product.source, product.once);
    PipeBarrier<PIPE_ALL>();
}
ENTRY(table_type)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Biased<bfloat16_t> product(0, 0);
    DataCopy(product.bias, product.source, product.once);
    PipeBarrier<PIPE_ALL>();
}
ENTRY(table_memory)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Biased<half> product(0, 0);
    DataCopy(product.l0c.Get<float>(), product.source, product.once);
}
ENTRY(table_uninitialised)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Biased<half> product(0, 0);
    Mmad(product.c, product.a, product.b, product.bias, product.from);
}
ENTRY(race_table)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Biased<half> product(0, 0);
    DataCopy(product.bias, product.source, product.once);
    Mmad(product.c, product.a, product.b, product.bias, product.from);
}
ENTRY(bias_alignment)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Biased<float> product(0, 16);
    DataCopy(product.bias, product.source, product.once);
    PipeBarrier<PIPE_ALL>();
    Mmad(product.c, product.a, product.b, product.bias, product.from);
}
ENTRY(bias_memory)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Biased<float> product(0, 0);
    Mmad(product.c, product.a, product.b, product.source, product.from);
}
ENTRY(bias_type)
{
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    Biased<int32_t> product(0, 0);
    DataCopy(product.table.Get<int32_t>(), product.source, product.once);
    PipeBarrier<PIPE_ALL>();
    Mmad(product.c, product.a, product.b, product.table.Get<int32_t>(), product.from);
}
ENTRY(repeat_limit)
{
    Loaded in(x);
    WholeReduceSum(in.tensor, in.tensor, 64, 256, 1, 1, 0);
}
ENTRY(mask_limit)
{
    Loaded in(x);
    Abs(in.tensor, in.tensor, 128, 1, UnaryRepeatParams(1, 1, 8, 8));
}
ENTRY(gm_other_argument)
{
    // Far enough beyond x to lie in y: still out of bounds of x.
    Loaded in(x);
    PipeBarrier<PIPE_ALL>();
    const int64_t apart = reinterpret_cast<__gm__ float *>(y) - reinterpret_cast<__gm__ float *>(x);
    DataCopy(in.tensor, Global(x)[static_cast<uint64_t>(apart)], 64);
}
ENTRY(event_conflict)
{
    // The queue has set the first event of the same pair, and waits for it later.
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 1, 4096);
    LocalTensor<float> a = queue.AllocTensor<float>();
    DataCopy(a, Global(x), 1024);
    queue.EnQue(a);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    queue.DeQue<float>();
}
ENTRY(sound_fetched_event)
{
    TPipe pipe;
    TQue<QuePosition::VECIN, 1> queue;
    pipe.InitBuffer(queue, 1, 4096);
    LocalTensor<float> a = queue.AllocTensor<float>();
    DataCopy(a, Global(x), 1024);
    queue.EnQue(a);
    const TEventID event = GetTPipePtr()->FetchEventID(HardEvent::MTE2_V);
    SetFlag<HardEvent::MTE2_V>(event);
    WaitFlag<HardEvent::MTE2_V>(event);
    queue.DeQue<float>();
}
ENTRY(sound_phases)
{
    // Each phase has a pipe of its own, with eight buffers whose events go with it.
    for (int phase = 0; phase < 3; ++phase) {
        PipeBarrier<PIPE_ALL>();
        TPipe pipe;
        TQue<QuePosition::VECIN, 1> queue;
        pipe.InitBuffer(queue, 8, 4096);
        for (int i = 0; i < 9; ++i) {
            LocalTensor<float> a = queue.AllocTensor<float>();
            DataCopy(a, Global(x), 1024);
            queue.EnQue(a);
            queue.DeQue<float>();
            queue.FreeTensor(a);
        }
    }
}

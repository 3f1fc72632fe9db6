// One instruction per entry: x (and y) in, result out. Sizes are fixed, see the test.
#include "kernel_operator.h"

using namespace AscendC;

#define ENTRY(NAME) \
    extern "C" __global__ __aicore__ void NAME(GM_ADDR x, GM_ADDR y, GM_ADDR z, \
                                               [[maybe_unused]] GM_ADDR w, [[maybe_unused]] GM_ADDR t)

// Loads `count` elements of x and y, zeroes the result, runs the body, stores `results` elements.
template <typename T, typename R, typename Body>
static void Around(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t count, uint32_t results, Body body)
{
    TPipe pipe;
    TBuf<QuePosition::VECCALC> xBuf, yBuf, zBuf, workBuf;
    pipe.InitBuffer(xBuf, count * sizeof(T));
    pipe.InitBuffer(yBuf, count * sizeof(T));
    pipe.InitBuffer(zBuf, results * sizeof(R));
    pipe.InitBuffer(workBuf, 16384);
    GlobalTensor<T> xGm, yGm;
    GlobalTensor<R> zGm;
    xGm.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(x));
    yGm.SetGlobalBuffer(reinterpret_cast<__gm__ T *>(y));
    zGm.SetGlobalBuffer(reinterpret_cast<__gm__ R *>(z));
    LocalTensor<T> a = xBuf.Get<T>(), b = yBuf.Get<T>();
    LocalTensor<R> c = zBuf.Get<R>();
    DataCopy(a, xGm, count);
    DataCopy(b, yGm, count);
    Duplicate(c.template ReinterpretCast<int16_t>(), static_cast<int16_t>(0),
              static_cast<int32_t>(results * sizeof(R) / 2));
    PipeBarrier<PIPE_ALL>();
    body(c, a, b, workBuf.Get<T>());
    PipeBarrier<PIPE_ALL>();
    DataCopy(zGm, c, results);
}

#define FLAT(NAME, T, R, COUNT, RESULTS, ...) \
    ENTRY(NAME) \
    { \
        Around<T, R>(x, y, z, COUNT, RESULTS, \
                     []([[maybe_unused]] LocalTensor<R> c, [[maybe_unused]] LocalTensor<T> a, \
                        [[maybe_unused]] LocalTensor<T> b, [[maybe_unused]] LocalTensor<T> work) { \
                         __VA_ARGS__; \
                     }); \
    }

#define BOTH(NAME, ...) \
    FLAT(NAME##_half, half, half, 512, 512, __VA_ARGS__) \
    FLAT(NAME##_float, float, float, 512, 512, __VA_ARGS__)

BOTH(add, Add(c, a, b, 500))
BOTH(sub, Sub(c, a, b, 512))
BOTH(mul, Mul(c, a, b, 512))
BOTH(div, Div(c, a, b, 512))
BOTH(max, Max(c, a, b, 512))
BOTH(min, Min(c, a, b, 512))
BOTH(adds, Adds(c, a, static_cast<decltype(a.GetValue(0))>(0.3f), 512))
BOTH(muls, Muls(c, a, static_cast<decltype(a.GetValue(0))>(0.3f), 512))
BOTH(leaky, LeakyRelu(c, a, static_cast<decltype(a.GetValue(0))>(0.1f), 512))
BOTH(relu, Relu(c, a, 512))
BOTH(abs, Abs(c, a, 512))
BOTH(exp, Exp(c, a, 512))
BOTH(tanh, Tanh(c, a, 512))
BOTH(sigmoid, Sigmoid(c, a, 512))
BOTH(erf, Erf(c, a, 512))
BOTH(floor, Floor(c, a, 512))
BOTH(power, Power(c, a, static_cast<decltype(a.GetValue(0))>(2.0f), 512))
FLAT(muladd, float, float, 512, 512, Adds(c, a, 1.0f, 512); PipeBarrier<PIPE_V>(); MulAddDst(c, a, b, 512))
FLAT(axpy, half, float, 512, 512, Axpy(c, a, half(0.5f), 512))
FLAT(shift, int32_t, int32_t, 512, 512, ShiftLeft(c, a, 3, 512))
FLAT(shift_word, uint32_t, uint32_t, 512, 512, ShiftLeft(c, a, 3u, 512))
FLAT(bits, int16_t, int16_t, 512, 512, Not(c, a, 256); Or(c[256], a[256], b[256], 256))

// The masks: contiguous, by bits, strided sources, a broadcast source, the counter.
FLAT(masked, float, float, 512, 512, Add(c, a, b, 40, 8, BinaryRepeatParams(1, 1, 1, 8, 8, 8)))
FLAT(bitmask, float, float, 512, 512, const uint64_t mask[2] = {0x5555555555555555u, 0};
     Add(c, a, b, mask, 8, BinaryRepeatParams(1, 1, 1, 8, 8, 8)))
FLAT(strided, float, float, 512, 256, Muls(c, a, 1.0f, 64, 4, UnaryRepeatParams(1, 2, 8, 16)))
FLAT(rows, float, float, 512, 512, Mul(c, a, b, 64, 8, BinaryRepeatParams(1, 1, 1, 8, 8, 0)))
FLAT(counter, float, float, 512, 512, SetMaskCount(); SetVectorMask<float, MaskMode::COUNTER>(0, 300);
     Add<float, false>(c, a, b, MASK_PLACEHOLDER, 1, BinaryRepeatParams(1, 1, 1, 8, 8, 8)); SetMaskNorm();
     ResetMask())

FLAT(cast_half, float, half, 512, 512, Cast(c, a, RoundMode::CAST_RINT, 512))
FLAT(cast_half_floor, float, half, 512, 512, Cast(c, a, RoundMode::CAST_FLOOR, 512))
FLAT(cast_brain, float, bfloat16_t, 512, 512, Cast(c, a, RoundMode::CAST_RINT, 512))
FLAT(cast_brain_trunc, float, bfloat16_t, 512, 512, Cast(c, a, RoundMode::CAST_TRUNC, 512))
FLAT(cast_float, bfloat16_t, float, 512, 512, Cast(c, a, RoundMode::CAST_NONE, 512))
FLAT(cast_rint, float, int32_t, 512, 512, Cast(c, a, RoundMode::CAST_RINT, 512))
FLAT(cast_trunc, float, int32_t, 512, 512, Cast(c, a, RoundMode::CAST_TRUNC, 512))
FLAT(cast_round, float, int16_t, 512, 512, Cast(c, a, RoundMode::CAST_ROUND, 512))
FLAT(cast_int8, half, int8_t, 512, 512, Cast(c, a, RoundMode::CAST_FLOOR, 512))
FLAT(cast_int64, int32_t, int64_t, 512, 512, Cast(c, a, RoundMode::CAST_NONE, 512))
FLAT(cast_masked, half, float, 512, 512, Cast(c, a, RoundMode::CAST_NONE, 64, 8, UnaryRepeatParams(1, 1, 8, 4)))

FLAT(compare, float, uint8_t, 512, 64, Compare(c, a, b, CMPMODE::LT, 512))
FLAT(compares, half, uint8_t, 512, 64, CompareScalar(c, a, half(0), CMPMODE::GE, 512))
FLAT(select, float, float, 512, 512, LocalTensor<uint8_t> m = work.ReinterpretCast<uint8_t>();
     Compare(m, a, b, CMPMODE::GT, 512); PipeBarrier<PIPE_V>();
     Select(c, m, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, 500))
FLAT(select_scalar, float, float, 512, 512, LocalTensor<uint8_t> m = work.ReinterpretCast<uint8_t>();
     CompareScalar(m, a, 0.0f, CMPMODE::GT, 512); PipeBarrier<PIPE_V>();
     Select(c, m, a, -1.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64, 8, BinaryRepeatParams(1, 1, 1, 8, 8, 8)))

FLAT(whole_sum, float, float, 512, 16, WholeReduceSum(c, a, 50, 8, 1, 1, 8))
FLAT(whole_max, half, half, 512, 16, WholeReduceMax(c, a, 128, 4, 1, 1, 8))
FLAT(whole_min, float, float, 512, 16, WholeReduceMin(c, a, 64, 8, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE))
FLAT(block_sum, float, float, 512, 64, BlockReduceSum(c, a, 8, 64, 1, 1, 8))
FLAT(pair_sum, float, float, 512, 256, PairReduceSum(c, a, 8, 64, 1, 1, 8))
FLAT(reduce_sum, float, float, 512, 8, ReduceSum(c, a, work, 500))
FLAT(reduce_max, float, float, 512, 8, ReduceMax(c, a, work, 500, true))
FLAT(reduce_half, half, half, 512, 16, ReduceSum(c, a, work, 512))

FLAT(brcb, float, float, 512, 128, Brcb(c, a, 2, BrcbRepeatParams(1, 8)))
FLAT(ramp, float, float, 512, 512, CreateVecIndex(c, 5.0f, 512u))
FLAT(ramp_int, int32_t, int32_t, 512, 512, CreateVecIndex(c, -3, 512u))
FLAT(gather, float, float, 512, 512, LocalTensor<int32_t> i = work.ReinterpretCast<int32_t>();
     CreateVecIndex(i, 0, 512u); PipeBarrier<PIPE_V>(); Muls(i, i, -4, 512); PipeBarrier<PIPE_V>();
     Adds(i, i, 511 * 4, 512); PipeBarrier<PIPE_V>();
     Gather(c, a, i.ReinterpretCast<uint32_t>(), 0, 512u))
FLAT(gatherb, half, half, 512, 128, LocalTensor<int32_t> i = work.ReinterpretCast<int32_t>();
     CreateVecIndex(i, 0, 8u); PipeBarrier<PIPE_V>(); Muls(i, i, 64, 8); PipeBarrier<PIPE_V>();
     Gatherb(c, a, i.ReinterpretCast<uint32_t>(), 1, GatherRepeatParams(1, 8)))
FLAT(transpose16, half, half, 256, 256, Transpose(c, a))
FLAT(transpose_float, float, float, 128, 128, uint64_t to[16]; uint64_t from[16];
     for (uint32_t i = 0; i < 16; ++i) { from[i] = a[i * 8].GetPhyAddr(); to[i] = c[i * 8].GetPhyAddr(); }
     TransDataTo5HD<float>(to, from, TransDataTo5HDParams(false, false, 1, 0, 0)))
FLAT(broadcast_rows, float, float, 16, 512, const uint32_t to[2] = {32, 16}; const uint32_t from[2] = {1, 16};
     Broadcast<float, 2, 0>(c, a, to, from))
FLAT(broadcast_columns, float, float, 32, 512, const uint32_t to[2] = {32, 16}; const uint32_t from[2] = {32, 1};
     Broadcast<float, 2, 1>(c, a, to, from))
FLAT(copy_strided, half, half, 512, 256, Copy(c, a, 128, 2, CopyRepeatParams(1, 2, 8, 16)))
FLAT(sort, float, float, 64, 128, LocalTensor<int32_t> i = work.ReinterpretCast<int32_t>();
     CreateVecIndex(i, 0, 64u); PipeBarrier<PIPE_V>(); Sort32(c, a, i.ReinterpretCast<uint32_t>(), 2))

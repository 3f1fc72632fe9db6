// Reductions: per repeat, per block, per pair, and of the first n elements.
#pragma once

#include "vector.h"

namespace AscendC
{

enum class ReduceType : uint8_t { SUM, MAX, MIN };

}  // namespace AscendC

namespace gafsim
{

template <typename T, typename M>
inline Vector Reduction(Op op, const AscendC::LocalTensor<T> &dst,
                        const AscendC::LocalTensor<T> &src, M mask, int32_t repeats, bool set,
                        int32_t dst_repeat, int32_t src_block, int32_t src_repeat)
{
    static_assert(kIsOneOf<T, half, float>, "reduction: type not supported by the chip");
    Vector v{op, dst.Sim(), {src.Sim(), {}, {}}, 1};
    v.lanes = Masked(mask, static_cast<uint32_t>(repeats), set);
    v.dst_stride = {1, static_cast<uint32_t>(dst_repeat)};
    v.src_stride[0] = {static_cast<uint32_t>(src_block), static_cast<uint32_t>(src_repeat)};
    return v;
}

}  // namespace gafsim

namespace AscendC
{

template <typename T, bool isSetMask = true, typename M>
inline void WholeReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src, M mask,
                           const int32_t repeatTime, const int32_t dstRepStride,
                           const int32_t srcBlkStride, const int32_t srcRepStride,
                           gafsim::Where where = gafsim::Where::Here())
{
    const gafsim::Vector v =
        gafsim::Reduction(gafsim::Op::WholeReduceSum, dst, src, mask, repeatTime, isSetMask,
                          dstRepStride, srcBlkStride, srcRepStride);
    gafsim::Reduce(v.op, gafsim::Fold::Sum, gafsim::Scope::Repeat, v,
                   static_cast<int>(ReduceOrder::ORDER_ONLY_VALUE), where);
}

#define GAFSIM_WHOLE(NAME, FOLD)                                                                   \
    template <typename T, bool isSetMask = true, typename M>                                       \
    inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src, M mask,                 \
                     const int32_t repeatTime, const int32_t dstRepStride,                         \
                     const int32_t srcBlkStride, const int32_t srcRepStride,                       \
                     ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,                           \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        const gafsim::Vector v =                                                                   \
            gafsim::Reduction(gafsim::Op::NAME, dst, src, mask, repeatTime, isSetMask,             \
                              dstRepStride, srcBlkStride, srcRepStride);                           \
        gafsim::Reduce(v.op, gafsim::Fold::FOLD, gafsim::Scope::Repeat, v,                         \
                       static_cast<int>(order), where);                                            \
    }

GAFSIM_WHOLE(WholeReduceMax, Max)
GAFSIM_WHOLE(WholeReduceMin, Min)

#undef GAFSIM_WHOLE

#define GAFSIM_PART(NAME, FOLD, SCOPE)                                                             \
    template <typename T, bool isSetMask = true, typename M>                                       \
    inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src,                         \
                     const int32_t repeatTime, M mask, const int32_t dstRepStride,                 \
                     const int32_t srcBlkStride, const int32_t srcRepStride,                       \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        const gafsim::Vector v =                                                                   \
            gafsim::Reduction(gafsim::Op::NAME, dst, src, mask, repeatTime, isSetMask,             \
                              dstRepStride, srcBlkStride, srcRepStride);                           \
        gafsim::Reduce(v.op, gafsim::Fold::FOLD, gafsim::Scope::SCOPE, v,                          \
                       static_cast<int>(ReduceOrder::ORDER_ONLY_VALUE), where);                    \
    }

GAFSIM_PART(BlockReduceSum, Sum, Block)
GAFSIM_PART(BlockReduceMax, Max, Block)
GAFSIM_PART(BlockReduceMin, Min, Block)
GAFSIM_PART(PairReduceSum, Sum, Pair)

#undef GAFSIM_PART

// The names that newer documentation gives to the same instructions.
template <ReduceType reduceType, typename T, typename U, bool isSetMask = true, typename M>
inline void ReduceRepeat(const LocalTensor<T> &dst, const LocalTensor<U> &src, M mask,
                         const int32_t repeatTime, const int32_t dstRepStride,
                         const int32_t srcBlkStride, const int32_t srcRepStride,
                         ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX,
                         gafsim::Where where = gafsim::Where::Here())
{
    if constexpr (reduceType == ReduceType::SUM) {
        WholeReduceSum<T, isSetMask>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride,
                                     srcRepStride, where);
    } else if constexpr (reduceType == ReduceType::MAX) {
        WholeReduceMax<T, isSetMask>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride,
                                     srcRepStride, order, where);
    } else {
        WholeReduceMin<T, isSetMask>(dst, src, mask, repeatTime, dstRepStride, srcBlkStride,
                                     srcRepStride, order, where);
    }
}

template <ReduceType reduceType, typename T, typename U, bool isSetMask = true, typename M>
inline void ReduceDataBlock(const LocalTensor<T> &dst, const LocalTensor<U> &src, M mask,
                            const int32_t repeatTime, const int32_t dstRepStride,
                            const int32_t srcBlkStride, const int32_t srcRepStride,
                            gafsim::Where where = gafsim::Where::Here())
{
    if constexpr (reduceType == ReduceType::SUM) {
        BlockReduceSum<T, isSetMask>(dst, src, repeatTime, mask, dstRepStride, srcBlkStride,
                                     srcRepStride, where);
    } else if constexpr (reduceType == ReduceType::MAX) {
        BlockReduceMax<T, isSetMask>(dst, src, repeatTime, mask, dstRepStride, srcBlkStride,
                                     srcRepStride, where);
    } else {
        BlockReduceMin<T, isSetMask>(dst, src, repeatTime, mask, dstRepStride, srcBlkStride,
                                     srcRepStride, where);
    }
}

template <ReduceType reduceType, typename T, typename U, bool isSetMask = true, typename M>
inline void ReducePairElem(const LocalTensor<T> &dst, const LocalTensor<U> &src, M mask,
                           const int32_t repeatTime, const int32_t dstRepStride,
                           const int32_t srcBlkStride, const int32_t srcRepStride,
                           gafsim::Where where = gafsim::Where::Here())
{
    static_assert(reduceType == ReduceType::SUM, "ReducePairElem sums only");
    PairReduceSum<T, isSetMask>(dst, src, repeatTime, mask, dstRepStride, srcBlkStride,
                                srcRepStride, where);
}

template <typename T, bool isSetMask = true>
inline void ReduceSum(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                      const LocalTensor<T> &sharedTmpBuffer, const int32_t count,
                      gafsim::Where where = gafsim::Where::Here())
{
    static_assert(gafsim::kIsOneOf<T, half, float>, "ReduceSum: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::ReduceSum, dst.Sim(), {src.Sim(), {}, {}}, 1};
    v.lanes = gafsim::Counted(count);
    gafsim::ReduceAll(v.op, gafsim::Fold::Sum, v, sharedTmpBuffer.Sim(), false, where);
}

#define GAFSIM_REDUCE(NAME, FOLD)                                                                  \
    template <typename T>                                                                          \
    inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src,                         \
                     const LocalTensor<T> &sharedTmpBuffer, const int32_t count,                   \
                     bool calIndex = false, gafsim::Where where = gafsim::Where::Here())           \
    {                                                                                              \
        static_assert(gafsim::kIsOneOf<T, half, float>, #NAME ": type not supported by the chip"); \
        gafsim::Vector v{gafsim::Op::NAME, dst.Sim(), {src.Sim(), {}, {}}, 1};                     \
        v.lanes = gafsim::Counted(count);                                                          \
        gafsim::ReduceAll(v.op, gafsim::Fold::FOLD, v, sharedTmpBuffer.Sim(), calIndex, where);    \
    }

GAFSIM_REDUCE(ReduceMax, Max)
GAFSIM_REDUCE(ReduceMin, Min)

#undef GAFSIM_REDUCE

}  // namespace AscendC

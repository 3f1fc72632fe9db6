// Filling, spreading, gathering, transposing, sorting.
#pragma once

#include "vector.h"

namespace AscendC
{

struct CopyRepeatParams {
    CopyRepeatParams() = default;
    CopyRepeatParams(uint16_t dst, uint16_t src, uint16_t dstRepeat, uint16_t srcRepeat)
        : dstStride(dst), srcStride(src), dstRepeatSize(dstRepeat), srcRepeatSize(srcRepeat)
    {
    }
    uint16_t dstStride = 1;
    uint16_t srcStride = 1;
    uint16_t dstRepeatSize = 8;
    uint16_t srcRepeatSize = 8;
};

struct BrcbRepeatParams {
    BrcbRepeatParams() = default;
    BrcbRepeatParams(uint16_t dstBlk, uint16_t dstRep) : dstBlkStride(dstBlk), dstRepStride(dstRep)
    {
    }
    uint32_t blockNumber = DEFAULT_BLK_NUM;
    uint16_t dstBlkStride = DEFAULT_BLK_STRIDE;
    uint16_t dstRepStride = DEFAULT_REPEAT_STRIDE;
};

struct GatherRepeatParams {
    GatherRepeatParams() = default;
    GatherRepeatParams(uint8_t dstBlk, uint8_t dstRep) : dstBlkStride(dstBlk), dstRepStride(dstRep)
    {
    }
    uint32_t blockNumber = DEFAULT_BLK_NUM;
    uint16_t dstBlkStride = DEFAULT_BLK_STRIDE;
    uint16_t dstRepStride = DEFAULT_REPEAT_STRIDE;
};

constexpr int32_t NCHW_CONV_ADDR_LIST_SIZE = 16;

struct TransDataTo5HDParams {
    TransDataTo5HDParams() = default;
    TransDataTo5HDParams(bool dstHigh, bool srcHigh, uint8_t repeats, uint16_t dstRep,
                         uint16_t srcRep)
        : dstHighHalf(dstHigh), srcHighHalf(srcHigh), repeatTimes(repeats), dstRepStride(dstRep),
          srcRepStride(srcRep)
    {
    }
    bool dstHighHalf = false;
    bool srcHighHalf = false;
    uint8_t repeatTimes = 1;
    uint16_t dstRepStride = 0;
    uint16_t srcRepStride = 0;
};

// Copies within UB under a mask; strides in blocks.
template <typename T, bool isSetMask = true, typename M>
inline void Copy(const LocalTensor<T> &dst, const LocalTensor<T> &src, M mask,
                 const uint8_t repeatTime, const CopyRepeatParams &repeatParams,
                 gafsim::Where where = gafsim::Where::Here())
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Copy: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::Copy, dst.Sim(), {src.Sim(), {}, {}}, 1};
    v.lanes = gafsim::Masked(mask, repeatTime, isSetMask);
    v.dst_stride = {repeatParams.dstStride, repeatParams.dstRepeatSize};
    v.src_stride[0] = {repeatParams.srcStride, repeatParams.srcRepeatSize};
    gafsim::Elementwise(v, where);
}

// firstValue, firstValue + 1, … over the first count elements.
template <typename T>
inline void CreateVecIndex(LocalTensor<T> dst, const T &firstValue, uint32_t count,
                           gafsim::Where where = gafsim::Where::Here())
{
    static_assert(gafsim::kIsOneOf<T, int16_t, half, int32_t, float>,
                  "CreateVecIndex: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::CreateVecIndex, dst.Sim(), {}, 0};
    v.scalar = static_cast<double>(firstValue);
    v.lanes = gafsim::Counted(count);
    gafsim::FillIndex(v, where);
}

template <typename T, typename M>
inline void CreateVecIndex(LocalTensor<T> &dst, const T &firstValue, M mask, uint8_t repeatTime,
                           uint16_t dstBlkStride, uint8_t dstRepStride,
                           gafsim::Where where = gafsim::Where::Here())
{
    static_assert(gafsim::kIsOneOf<T, int16_t, half, int32_t, float>,
                  "CreateVecIndex: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::CreateVecIndex, dst.Sim(), {}, 0};
    v.scalar = static_cast<double>(firstValue);
    v.lanes = gafsim::Masked(mask, repeatTime, true);
    v.dst_stride = {dstBlkStride, dstRepStride};
    gafsim::FillIndex(v, where);
}

template <typename T>
inline void Brcb(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint8_t repeatTime,
                 const BrcbRepeatParams &repeatParams, gafsim::Where where = gafsim::Where::Here())
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Brcb: type not supported by the chip");
    gafsim::SpreadElements(dst.Sim(), src.Sim(), repeatTime,
                           {repeatParams.dstBlkStride, repeatParams.dstRepStride}, where);
}

template <typename T>
inline void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                   const LocalTensor<uint32_t> &srcOffset, const uint32_t srcBaseAddr,
                   const uint32_t count, gafsim::Where where = gafsim::Where::Here())
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Gather: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::Gather, dst.Sim(), {src.Sim(), {}, {}}, 1};
    v.lanes = gafsim::Counted(count);
    gafsim::GatherElements(v, srcOffset.Sim(), srcBaseAddr, where);
}

template <typename T, typename M>
inline void Gather(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                   const LocalTensor<uint32_t> &srcOffset, const uint32_t srcBaseAddr, M mask,
                   const uint8_t repeatTime, const uint16_t dstRepStride,
                   gafsim::Where where = gafsim::Where::Here())
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Gather: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::Gather, dst.Sim(), {src.Sim(), {}, {}}, 1};
    v.lanes = gafsim::Masked(mask, repeatTime, true);
    v.dst_stride = {1, dstRepStride};
    gafsim::GatherElements(v, srcOffset.Sim(), srcBaseAddr, where);
}

template <typename T>
inline void Gatherb(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                    const LocalTensor<uint32_t> &offset, const uint8_t repeatTime,
                    const GatherRepeatParams &repeatParams,
                    gafsim::Where where = gafsim::Where::Here())
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Gatherb: type not supported by the chip");
    gafsim::GatherBlocks(dst.Sim(), src.Sim(), offset.Sim(), repeatTime,
                         {repeatParams.dstBlkStride, repeatParams.dstRepStride}, where);
}

template <typename T>
inline void TransDataTo5HD(uint64_t dstList[NCHW_CONV_ADDR_LIST_SIZE],
                           uint64_t srcList[NCHW_CONV_ADDR_LIST_SIZE],
                           const TransDataTo5HDParams &nchwconvParams,
                           gafsim::Where where = gafsim::Where::Here())
{
    static_assert(sizeof(T) <= 4, "TransDataTo5HD: type not supported by the chip");
    gafsim::TransposeBlocks(
        gafsim::Op::TransDataTo5HD, dstList, srcList,
        {gafsim::TypeOf<T>::value, nchwconvParams.dstHighHalf, nchwconvParams.srcHighHalf,
         nchwconvParams.repeatTimes, nchwconvParams.dstRepStride, nchwconvParams.srcRepStride},
        where);
}

template <typename T>
inline void TransDataTo5HD(const LocalTensor<T> (&dstList)[NCHW_CONV_ADDR_LIST_SIZE],
                           const LocalTensor<T> (&srcList)[NCHW_CONV_ADDR_LIST_SIZE],
                           const TransDataTo5HDParams &nchwconvParams,
                           gafsim::Where where = gafsim::Where::Here())
{
    uint64_t dst[NCHW_CONV_ADDR_LIST_SIZE], src[NCHW_CONV_ADDR_LIST_SIZE];
    for (int i = 0; i < NCHW_CONV_ADDR_LIST_SIZE; ++i) {
        dst[i] = dstList[i].GetPhyAddr();
        src[i] = srcList[i].GetPhyAddr();
    }
    TransDataTo5HD<T>(dst, src, nchwconvParams, where);
}

// A matrix of 16 x 16 elements of 2 B.
template <typename T>
inline void Transpose(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                      gafsim::Where where = gafsim::Where::Here())
{
    static_assert(gafsim::kIsOneOf<T, half, int16_t, uint16_t>,
                  "Transpose: type not supported by the chip");
    uint64_t to[16], from[16];
    for (uint32_t i = 0; i < 16; ++i) {
        to[i] = dst.GetPhyAddr() + i * 32;
        from[i] = src.GetPhyAddr() + i * 32;
    }
    gafsim::TransposeBlocks(gafsim::Op::Transpose, to, from,
                            {gafsim::TypeOf<T>::value, false, false, 1, 0, 0}, where);
}

// One or two dimensions; along `axis` the source has extent 1.
template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
inline void Broadcast(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,
                      const uint32_t dstShape[dim], const uint32_t srcShape[dim],
                      gafsim::Where where = gafsim::Where::Here())
{
    static_assert(dim == 1 || dim == 2, "Broadcast: one or two dimensions");
    (void)srcShape;
    const uint32_t rows = dim == 1 ? 1 : dstShape[0];
    const uint32_t columns = dim == 1 ? dstShape[0] : dstShape[1];
    gafsim::BroadcastMatrix(dstLocal.Sim(), srcLocal.Sim(), rows, columns, dim == 1 ? 1 : axis,
                            where);
}

template <typename T, int32_t dim, int32_t axis, bool isReuseSource = false>
inline void Broadcast(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,
                      const uint32_t dstShape[dim], const uint32_t srcShape[dim],
                      LocalTensor<uint8_t> &, gafsim::Where where = gafsim::Where::Here())
{
    Broadcast<T, dim, axis, isReuseSource>(dstLocal, srcLocal, dstShape, srcShape, where);
}

// (value, index) pairs of each run of 32, by falling value.
template <typename T>
inline void Sort32(const LocalTensor<T> &dst, const LocalTensor<T> &src0,
                   const LocalTensor<uint32_t> &src1, const int32_t repeatTime,
                   gafsim::Where where = gafsim::Where::Here())
{
    static_assert(gafsim::kIsOneOf<T, half, float>, "Sort32: type not supported by the chip");
    gafsim::SortRuns(dst.Sim(), src0.Sim(), src1.Sim(), static_cast<uint32_t>(repeatTime), where);
}

}  // namespace AscendC

// Copies between GM and the local memories.
#pragma once

#include "vector.h"

namespace gafsim
{

template <typename D, typename S>
inline void CopyBursts(const D &dst, const S &src, const AscendC::DataCopyParams &p, Where where)
{
    Copy c{Op::DataCopy,     dst.Sim(),         src.Sim(),        p.blockCount,
           p.blockLen * 32u, p.dstStride * 32u, p.srcStride * 32u};
    CopyBlocks(c, where);
}

template <typename D, typename S>
inline void CopyTable(const D &dst, const S &src, const AscendC::DataCopyParams &p, Where where)
{
    CopyToTable(dst.Sim(), src.Sim(), {p.blockCount, p.blockLen, p.srcStride, p.dstStride}, where);
}

template <typename D, typename S>
inline void CopyCount(const D &dst, const S &src, uint64_t bytes, Where where)
{
    Copy c{Op::DataCopy, dst.Sim(), src.Sim(), 1, static_cast<uint32_t>(bytes / 32 * 32), 0, 0};
    CopyBlocks(c, where);
}

}  // namespace gafsim

namespace AscendC
{

// Contiguous copies: count elements, rounded down to whole blocks of 32 B as the chip does.
template <typename T>
inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src, const uint32_t count,
                     gafsim::Where where = gafsim::Where::Here())
{
    gafsim::CopyCount(dst, src, uint64_t{count} * sizeof(T), where);
}
template <typename T>
inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count,
                     gafsim::Where where = gafsim::Where::Here())
{
    gafsim::CopyCount(dst, src, uint64_t{count} * sizeof(T), where);
}
template <typename T>
inline void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src, const uint32_t count,
                     gafsim::Where where = gafsim::Where::Here())
{
    gafsim::CopyCount(dst, src, uint64_t{count} * sizeof(T), where);
}

// Blocks with strides, lengths and gaps in units of 32 B.
template <typename T>
inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src,
                     const DataCopyParams &repeatParams,
                     gafsim::Where where = gafsim::Where::Here())
{
    gafsim::CopyBursts(dst, src, repeatParams, where);
}
template <typename T>
inline void DataCopy(const GlobalTensor<T> &dst, const LocalTensor<T> &src,
                     const DataCopyParams &repeatParams,
                     gafsim::Where where = gafsim::Where::Here())
{
    gafsim::CopyBursts(dst, src, repeatParams, where);
}
template <typename T>
inline void DataCopy(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                     const DataCopyParams &repeatParams,
                     gafsim::Where where = gafsim::Where::Here())
{
    if (dst.Sim().memory == gafsim::Memory::BT) {
        gafsim::CopyTable(dst, src, repeatParams, where);
    } else {
        gafsim::CopyBursts(dst, src, repeatParams, where);
    }
}
// Of two types: to the bias table, with conversion.
template <typename T, typename U>
inline void DataCopy(const LocalTensor<T> &dst, const LocalTensor<U> &src,
                     const DataCopyParams &repeatParams,
                     gafsim::Where where = gafsim::Where::Here())
{
    gafsim::CopyTable(dst, src, repeatParams, where);
}

// Lengths in bytes; gaps in bytes in GM and in blocks of 32 B in UB, from end to start.
template <typename T>
inline void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src,
                        const DataCopyExtParams &dataCopyParams,
                        const DataCopyPadExtParams<T> &padParams,
                        gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Copy c{gafsim::Op::DataCopyPad,
                   dst.Sim(),
                   src.Sim(),
                   dataCopyParams.blockCount,
                   dataCopyParams.blockLen,
                   uint64_t{dataCopyParams.dstStride} * 32,
                   dataCopyParams.srcStride};
    c.pad = true;
    c.pad_value = padParams.isPad;
    c.left = padParams.leftPadding;
    c.right = padParams.rightPadding;
    c.value = gafsim::BitsOf(padParams.paddingValue);
    gafsim::CopyBlocks(c, where);
}
template <typename T>
inline void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src,
                        const DataCopyExtParams &dataCopyParams,
                        gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Copy c{gafsim::Op::DataCopyPad,
                   dst.Sim(),
                   src.Sim(),
                   dataCopyParams.blockCount,
                   dataCopyParams.blockLen,
                   dataCopyParams.dstStride,
                   uint64_t{dataCopyParams.srcStride} * 32};
    c.pad = true;
    gafsim::CopyBlocks(c, where);
}
template <typename T>
inline void DataCopyPad(const LocalTensor<T> &dst, const GlobalTensor<T> &src,
                        const DataCopyParams &dataCopyParams, const DataCopyPadParams &padParams,
                        gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Copy c{gafsim::Op::DataCopyPad,
                   dst.Sim(),
                   src.Sim(),
                   dataCopyParams.blockCount,
                   dataCopyParams.blockLen,
                   uint64_t{dataCopyParams.dstStride} * 32,
                   dataCopyParams.srcStride};
    c.pad = true;
    c.pad_value = padParams.isPad;
    c.left = padParams.leftPadding;
    c.right = padParams.rightPadding;
    c.value = padParams.paddingValue;
    gafsim::CopyBlocks(c, where);
}
template <typename T>
inline void DataCopyPad(const GlobalTensor<T> &dst, const LocalTensor<T> &src,
                        const DataCopyParams &dataCopyParams,
                        gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Copy c{gafsim::Op::DataCopyPad,
                   dst.Sim(),
                   src.Sim(),
                   dataCopyParams.blockCount,
                   dataCopyParams.blockLen,
                   dataCopyParams.dstStride,
                   uint64_t{dataCopyParams.srcStride} * 32};
    c.pad = true;
    gafsim::CopyBlocks(c, where);
}

}  // namespace AscendC

// The cube unit: fractals to L1 and L0, matrix products, results out of L0C.
#pragma once

#include "copy.h"

namespace AscendC
{

struct Nd2NzParams {
    Nd2NzParams() = default;
    Nd2NzParams(uint16_t nd, uint16_t rows, uint16_t columns, uint32_t srcMatrix, uint32_t srcRow,
                uint16_t c0Stride, uint16_t rowStride, uint32_t dstMatrix)
        : ndNum(nd), nValue(rows), dValue(columns), srcNdMatrixStride(srcMatrix), srcDValue(srcRow),
          dstNzC0Stride(c0Stride), dstNzNStride(rowStride), dstNzMatrixStride(dstMatrix)
    {
    }
    uint16_t ndNum = 0;
    uint16_t nValue = 0;
    uint16_t dValue = 0;
    uint32_t srcNdMatrixStride = 0;
    uint32_t srcDValue = 0;
    uint16_t dstNzC0Stride = 0;
    uint16_t dstNzNStride = 0;
    uint32_t dstNzMatrixStride = 0;
};

struct LoadData2DParams {
    LoadData2DParams() = default;
    LoadData2DParams(uint16_t start, uint8_t repeats, uint16_t stride, uint8_t sidIn, uint16_t gap,
                     bool transpose, uint8_t mode)
        : startIndex(start), dstGap(gap), srcStride(stride), ifTranspose(transpose),
          repeatTimes(repeats), sid(sidIn), addrMode(mode)
    {
    }
    uint16_t startIndex = 0;
    uint16_t dstGap = 0;
    uint16_t srcStride = 0;
    bool ifTranspose = false;
    uint8_t repeatTimes = 0;
    uint8_t sid = 0;
    uint8_t addrMode = 0;
};

struct LoadData2dTransposeParams {
    LoadData2dTransposeParams() = default;
    LoadData2dTransposeParams(uint16_t start, uint8_t repeats, uint16_t stride, uint16_t gap,
                              uint16_t innerGap, uint8_t mode = 0)
        : startIndex(start), repeatTimes(repeats), srcStride(stride), dstGap(gap),
          dstFracGap(innerGap), addrMode(mode)
    {
    }
    uint16_t startIndex = 0;
    uint8_t repeatTimes = 0;
    uint16_t srcStride = 0;
    uint16_t dstGap = 0;
    uint16_t dstFracGap = 0;
    uint8_t addrMode = 0;
};

template <typename T>
struct InitConstValueParams {
    InitConstValueParams() = default;
    InitConstValueParams(uint16_t repeats, uint16_t blocks, uint16_t gap, T value)
        : repeatTimes(repeats), blockNum(blocks), dstGap(gap), initValue(value)
    {
    }
    uint16_t repeatTimes = 0;
    uint16_t blockNum = 0;
    uint16_t dstGap = 0;
    T initValue{};
};

struct MmadParams {
    MmadParams() = default;
    MmadParams(uint16_t mIn, uint16_t nIn, uint16_t kIn, uint8_t unit, bool source, bool init)
        : m(mIn), n(nIn), k(kIn), unitFlag(unit), cmatrixSource(source), cmatrixInitVal(init)
    {
    }
    uint16_t m = 0;
    uint16_t n = 0;
    uint16_t k = 0;
    bool isBias = false;
    int32_t fmOffset = 0;
    bool enSsparse = false;
    bool enWinogradA = false;
    bool enWinogradB = false;
    int8_t unitFlag = 0;
    bool kDirectionAlign = false;
    bool cmatrixSource = false;
    bool cmatrixInitVal = true;
};

enum class CO2Layout : uint8_t { NZ = 0, ROW_MAJOR, COLUMN_MAJOR };

struct FixpipeConfig {
    CO2Layout format;
};
constexpr FixpipeConfig CFG_NZ = {CO2Layout::NZ};
constexpr FixpipeConfig CFG_ROW_MAJOR = {CO2Layout::ROW_MAJOR};

}  // namespace AscendC

enum QuantMode_t {
    NoQuant,
    F322F16,
    F322BF16,
    DEQF16,
    VDEQF16,
    QF322B8_PRE,
    VQF322B8_PRE,
    REQ8,
    VREQ8,
};

namespace AscendC
{

struct FixpipeParamsV220 {
    FixpipeParamsV220() = default;
    FixpipeParamsV220(uint16_t n, uint16_t m, uint16_t srcIn, uint32_t dstIn, bool relu)
        : nSize(n), mSize(m), srcStride(srcIn), dstStride(dstIn), reluEn(relu)
    {
    }
    FixpipeParamsV220(uint16_t n, uint16_t m, uint16_t srcIn, uint32_t dstIn, bool relu,
                      QuantMode_t quant, int64_t scalar, uint16_t nd, uint16_t srcNd,
                      uint16_t dstNd, uint8_t unit)
        : nSize(n), mSize(m), srcStride(srcIn), dstStride(dstIn), quantPre(quant),
          deqScalar(static_cast<uint64_t>(scalar)), ndNum(nd), srcNdStride(srcNd),
          dstNdStride(dstNd), reluEn(relu), unitFlag(unit)
    {
    }
    uint16_t nSize = 0;
    uint16_t mSize = 0;
    uint16_t srcStride = 0;
    uint32_t dstStride = 0;
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint64_t deqScalar = 0;
    uint16_t ndNum = 1;
    uint16_t srcNdStride = 0;
    uint16_t dstNdStride = 0;
    bool reluEn = false;
    uint8_t unitFlag = 0;
    bool isChannelSplit = false;
};

// Row-major in GM to fractals in L1.
template <typename T>
inline void DataCopy(const LocalTensor<T> &dst, const GlobalTensor<T> &src,
                     const Nd2NzParams &intriParams, gafsim::Where where = gafsim::Where::Here())
{
    gafsim::CopyToFractals(
        dst.Sim(), src.Sim(),
        {intriParams.ndNum, intriParams.nValue, intriParams.dValue, intriParams.srcNdMatrixStride,
         intriParams.srcDValue, intriParams.dstNzC0Stride, intriParams.dstNzNStride,
         intriParams.dstNzMatrixStride},
        where);
}

template <typename T>
inline void LoadData(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                     const LoadData2DParams &p, gafsim::Where where = gafsim::Where::Here())
{
    gafsim::LoadFractals(dst.Sim(), src.Sim(),
                         {p.startIndex, p.repeatTimes, p.srcStride, p.dstGap, 0, p.ifTranspose,
                          p.addrMode != 0, false},
                         where);
}

template <typename T>
inline void LoadData(const LocalTensor<T> &dst, const GlobalTensor<T> &src,
                     const LoadData2DParams &p, gafsim::Where where = gafsim::Where::Here())
{
    gafsim::LoadFractals(dst.Sim(), src.Sim(),
                         {p.startIndex, p.repeatTimes, p.srcStride, p.dstGap, 0, p.ifTranspose,
                          p.addrMode != 0, false},
                         where);
}

template <typename T>
inline void LoadDataWithTranspose(const LocalTensor<T> &dst, const LocalTensor<T> &src,
                                  const LoadData2dTransposeParams &p,
                                  gafsim::Where where = gafsim::Where::Here())
{
    gafsim::LoadFractals(dst.Sim(), src.Sim(),
                         {p.startIndex, p.repeatTimes, p.srcStride, p.dstGap, p.dstFracGap, true,
                          p.addrMode != 0, true},
                         where);
}

// Fills blocks of a cube memory with a value.
template <typename T>
inline void Fill(const LocalTensor<T> &dst, const InitConstValueParams<T> &p,
                 gafsim::Where where = gafsim::Where::Here())
{
    gafsim::FillZero(dst.Sim(), p.repeatTimes, p.blockNum, p.dstGap, gafsim::BitsOf(p.initValue),
                     where);
}

// The same by its older name.
template <typename T>
inline void InitConstValue(const LocalTensor<T> &dst, const InitConstValueParams<T> &p,
                           gafsim::Where where = gafsim::Where::Here())
{
    Fill(dst, p, where);
}

template <typename T, typename U, typename S>
inline void Mmad(const LocalTensor<T> &dst, const LocalTensor<U> &fm, const LocalTensor<S> &filter,
                 const MmadParams &p, gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Multiply(
        dst.Sim(), fm.Sim(), filter.Sim(), nullptr,
        {p.m, p.n, p.k, p.cmatrixInitVal, p.cmatrixSource, p.kDirectionAlign, p.unitFlag}, where);
}

template <typename T, typename U, typename S, typename V>
inline void Mmad(const LocalTensor<T> &dst, const LocalTensor<U> &fm, const LocalTensor<S> &filter,
                 const LocalTensor<V> &bias, const MmadParams &p,
                 gafsim::Where where = gafsim::Where::Here())
{
    const gafsim::Operand operand = bias.Sim();
    gafsim::Multiply(dst.Sim(), fm.Sim(), filter.Sim(), &operand,
                     {p.m, p.n, p.k, false, true, p.kDirectionAlign, p.unitFlag}, where);
}

template <typename T, typename U, const FixpipeConfig &config = CFG_ROW_MAJOR>
inline void Fixpipe(const GlobalTensor<T> &dst, const LocalTensor<U> &src,
                    const FixpipeParamsV220 &p, gafsim::Where where = gafsim::Where::Here())
{
    gafsim::FixpipeOut(
        dst.Sim(), src.Sim(),
        {p.nSize, p.mSize, p.srcStride, p.dstStride, p.quantPre, p.deqScalar, p.ndNum,
         p.srcNdStride, p.dstNdStride, p.reluEn, config.format == CO2Layout::ROW_MAJOR, p.unitFlag},
        where);
}

template <typename T, typename U, const FixpipeConfig &config = CFG_NZ>
inline void Fixpipe(const LocalTensor<T> &dst, const LocalTensor<U> &src,
                    const FixpipeParamsV220 &p, gafsim::Where where = gafsim::Where::Here())
{
    static_assert(config.format == CO2Layout::NZ, "L1 holds fractals");
    gafsim::FixpipeOut(dst.Sim(), src.Sim(),
                       {p.nSize, p.mSize, p.srcStride, p.dstStride, p.quantPre, p.deqScalar, 1, 0,
                        0, p.reluEn, false, p.unitFlag},
                       where);
}

}  // namespace AscendC

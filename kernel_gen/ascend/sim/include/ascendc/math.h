// Library functions over vector instructions. Temporary space may be handed over or not; it is
// not needed here.
#pragma once

#include "vector.h"

namespace gafsim
{

template <typename T>
inline void Library(Op op, const AscendC::LocalTensor<T> &dst, const AscendC::LocalTensor<T> &src,
                    uint32_t count, double scalar, Where where)
{
    static_assert(kIsOneOf<T, half, float>, "library function: type not supported by the chip");
    Vector v{op, dst.Sim(), {src.Sim(), {}, {}}, 1};
    v.scalar = scalar;
    v.lanes = Counted(count);
    Elementwise(v, where);
}

template <typename T>
inline void Library(Op op, const AscendC::LocalTensor<T> &dst, const AscendC::LocalTensor<T> &src0,
                    const AscendC::LocalTensor<T> &src1, uint32_t count, Where where)
{
    static_assert(kIsOneOf<T, half, float>, "library function: type not supported by the chip");
    Vector v{op, dst.Sim(), {src0.Sim(), src1.Sim(), {}}, 2};
    v.lanes = Counted(count);
    Elementwise(v, where);
}

}  // namespace gafsim

namespace AscendC
{

#define GAFSIM_LIBRARY(NAME)                                                                       \
    template <typename T, bool isReuseSource = false>                                              \
    inline void NAME(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor,             \
                     const uint32_t calCount, gafsim::Where where = gafsim::Where::Here())         \
    {                                                                                              \
        gafsim::Library(gafsim::Op::NAME, dstTensor, srcTensor, calCount, 0, where);               \
    }                                                                                              \
    template <typename T, bool isReuseSource = false>                                              \
    inline void NAME(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor,             \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        gafsim::Library(gafsim::Op::NAME, dstTensor, srcTensor, srcTensor.GetSize(), 0, where);    \
    }                                                                                              \
    template <typename T, bool isReuseSource = false>                                              \
    inline void NAME(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor,             \
                     const LocalTensor<uint8_t> &, const uint32_t calCount,                        \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        gafsim::Library(gafsim::Op::NAME, dstTensor, srcTensor, calCount, 0, where);               \
    }                                                                                              \
    template <typename T, bool isReuseSource = false>                                              \
    inline void NAME(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor,             \
                     const LocalTensor<uint8_t> &, gafsim::Where where = gafsim::Where::Here())    \
    {                                                                                              \
        gafsim::Library(gafsim::Op::NAME, dstTensor, srcTensor, srcTensor.GetSize(), 0, where);    \
    }

GAFSIM_LIBRARY(Tanh)
GAFSIM_LIBRARY(Sigmoid)
GAFSIM_LIBRARY(Erf)
GAFSIM_LIBRARY(Erfc)
GAFSIM_LIBRARY(Sin)
GAFSIM_LIBRARY(Cos)
GAFSIM_LIBRARY(Tan)
GAFSIM_LIBRARY(Sinh)
GAFSIM_LIBRARY(Cosh)
GAFSIM_LIBRARY(Asin)
GAFSIM_LIBRARY(Acos)
GAFSIM_LIBRARY(Atan)
GAFSIM_LIBRARY(Asinh)
GAFSIM_LIBRARY(Acosh)
GAFSIM_LIBRARY(Atanh)
GAFSIM_LIBRARY(Log)
GAFSIM_LIBRARY(Log2)
GAFSIM_LIBRARY(Log10)
GAFSIM_LIBRARY(Ceil)
GAFSIM_LIBRARY(Floor)
GAFSIM_LIBRARY(Round)
GAFSIM_LIBRARY(Rint)
GAFSIM_LIBRARY(Trunc)
GAFSIM_LIBRARY(Frac)
GAFSIM_LIBRARY(Sign)
GAFSIM_LIBRARY(Lgamma)

#undef GAFSIM_LIBRARY

#define GAFSIM_ACTIVATION(NAME)                                                                    \
    template <typename T, bool highPrecision = false, bool highPerformance = false>                \
    inline void NAME(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,               \
                     const uint32_t dataSize, gafsim::Where where = gafsim::Where::Here())         \
    {                                                                                              \
        gafsim::Library(gafsim::Op::NAME, dstLocal, srcLocal, dataSize, 0, where);                 \
    }                                                                                              \
    template <typename T, bool highPrecision = false, bool highPerformance = false>                \
    inline void NAME(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal,               \
                     const LocalTensor<uint8_t> &, const uint32_t dataSize,                        \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        gafsim::Library(gafsim::Op::NAME, dstLocal, srcLocal, dataSize, 0, where);                 \
    }

GAFSIM_ACTIVATION(Gelu)
GAFSIM_ACTIVATION(FasterGelu)
GAFSIM_ACTIVATION(Silu)

#undef GAFSIM_ACTIVATION

template <typename T, bool isReuseSource = false>
inline void Swish(const LocalTensor<T> &dstLocal, const LocalTensor<T> &srcLocal, uint32_t dataSize,
                  const T &scalarValue, gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Library(gafsim::Op::Swish, dstLocal, srcLocal, dataSize,
                    static_cast<double>(scalarValue), where);
}

#define GAFSIM_LIBRARY_BINARY(NAME)                                                                \
    template <typename T, bool isReuseSource = false>                                              \
    inline void NAME(const LocalTensor<T> &dstTensor, const LocalTensor<T> &src0Tensor,            \
                     const LocalTensor<T> &src1Tensor, uint32_t calCount,                          \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        gafsim::Library(gafsim::Op::NAME, dstTensor, src0Tensor, src1Tensor, calCount, where);     \
    }                                                                                              \
    template <typename T, bool isReuseSource = false>                                              \
    inline void NAME(const LocalTensor<T> &dstTensor, const LocalTensor<T> &src0Tensor,            \
                     const LocalTensor<T> &src1Tensor, const LocalTensor<uint8_t> &,               \
                     uint32_t calCount, gafsim::Where where = gafsim::Where::Here())               \
    {                                                                                              \
        gafsim::Library(gafsim::Op::NAME, dstTensor, src0Tensor, src1Tensor, calCount, where);     \
    }

GAFSIM_LIBRARY_BINARY(Power)
GAFSIM_LIBRARY_BINARY(Fmod)
GAFSIM_LIBRARY_BINARY(Hypot)

#undef GAFSIM_LIBRARY_BINARY

// src ** scalar
template <typename T, bool isReuseSource = false>
inline void Power(const LocalTensor<T> &dstTensor, const LocalTensor<T> &src0Tensor,
                  const T &src1Scalar, uint32_t calCount,
                  gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Library(gafsim::Op::PowerScalar, dstTensor, src0Tensor, calCount,
                    static_cast<double>(src1Scalar), where);
}
template <typename T, bool isReuseSource = false>
inline void Power(const LocalTensor<T> &dstTensor, const LocalTensor<T> &src0Tensor,
                  const T &src1Scalar, const LocalTensor<uint8_t> &, uint32_t calCount,
                  gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Library(gafsim::Op::PowerScalar, dstTensor, src0Tensor, calCount,
                    static_cast<double>(src1Scalar), where);
}

template <typename T, bool isReuseSource = false>
inline void ClampMax(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor,
                     const T scalar, const uint32_t calCount,
                     gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Library(gafsim::Op::Mins, dstTensor, srcTensor, calCount, static_cast<double>(scalar),
                    where);
}
template <typename T, bool isReuseSource = false>
inline void ClampMin(const LocalTensor<T> &dstTensor, const LocalTensor<T> &srcTensor,
                     const T scalar, const uint32_t calCount,
                     gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Library(gafsim::Op::Maxs, dstTensor, srcTensor, calCount, static_cast<double>(scalar),
                    where);
}

template <typename T, bool isReuseSource = false>
inline void Xor(const LocalTensor<T> &dstTensor, const LocalTensor<T> &src0Tensor,
                const LocalTensor<T> &src1Tensor, const uint32_t calCount,
                gafsim::Where where = gafsim::Where::Here())
{
    static_assert(gafsim::kIsOneOf<T, int16_t, uint16_t>, "Xor: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::Xor, dstTensor.Sim(), {src0Tensor.Sim(), src1Tensor.Sim(), {}}, 2};
    v.lanes = gafsim::Counted(calCount);
    gafsim::Elementwise(v, where);
}

}  // namespace AscendC

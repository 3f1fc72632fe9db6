// Comparisons to bits, and selection by bits.
#pragma once

#include "vector.h"

namespace gafsim
{

template <typename U, typename T>
inline Vector Comparison(const AscendC::LocalTensor<U> &dst, const AscendC::LocalTensor<T> &src0,
                         AscendC::CMPMODE mode)
{
    static_assert(sizeof(U) == 1, "the result of a comparison is a tensor of bits in bytes");
    static_assert(kIsOneOf<T, half, float, int32_t>, "Compare: type not supported by the chip");
    Vector v{Op::Compare, dst.Sim(), {src0.Sim(), {}, {}}, 1};
    v.variant = static_cast<int>(mode);
    return v;
}

}  // namespace gafsim

namespace AscendC
{

template <typename T, typename U>
inline void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0,
                    const LocalTensor<T> &src1, CMPMODE cmpMode, uint32_t count,
                    gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Vector v = gafsim::Comparison(dst, src0, cmpMode);
    v.src[1] = src1.Sim();
    v.sources = 2;
    v.lanes = gafsim::Counted(count);
    gafsim::CompareLanes(v, where);
}

template <typename T, typename U, bool isSetMask = true, typename M>
inline void Compare(const LocalTensor<U> &dst, const LocalTensor<T> &src0,
                    const LocalTensor<T> &src1, CMPMODE cmpMode, M mask, uint8_t repeatTime,
                    const BinaryRepeatParams &repeatParams,
                    gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Vector v = gafsim::Comparison(dst, src0, cmpMode);
    v.src[1] = src1.Sim();
    v.sources = 2;
    v.lanes = gafsim::Masked(mask, repeatTime, isSetMask);
    gafsim::Strided(v, repeatParams);
    gafsim::CompareLanes(v, where);
}

// Tensor against scalar; newer documentation calls it Compares.
#define GAFSIM_COMPARE_SCALAR(NAME)                                                                \
    template <typename T, typename U>                                                              \
    inline void NAME(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T src1Scalar,    \
                     CMPMODE cmpMode, uint32_t count, gafsim::Where where = gafsim::Where::Here()) \
    {                                                                                              \
        gafsim::Vector v = gafsim::Comparison(dst, src0, cmpMode);                                 \
        v.op = gafsim::Op::CompareScalar;                                                          \
        v.scalar = static_cast<double>(src1Scalar);                                                \
        v.lanes = gafsim::Counted(count);                                                          \
        gafsim::CompareLanes(v, where);                                                            \
    }                                                                                              \
    template <typename T, typename U, bool isSetMask = true, typename M>                           \
    inline void NAME(const LocalTensor<U> &dst, const LocalTensor<T> &src0, const T src1Scalar,    \
                     CMPMODE cmpMode, M mask, uint8_t repeatTime,                                  \
                     const UnaryRepeatParams &repeatParams,                                        \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        gafsim::Vector v = gafsim::Comparison(dst, src0, cmpMode);                                 \
        v.op = gafsim::Op::CompareScalar;                                                          \
        v.scalar = static_cast<double>(src1Scalar);                                                \
        v.lanes = gafsim::Masked(mask, repeatTime, isSetMask);                                     \
        gafsim::Strided(v, repeatParams);                                                          \
        gafsim::CompareLanes(v, where);                                                            \
    }

GAFSIM_COMPARE_SCALAR(CompareScalar)
GAFSIM_COMPARE_SCALAR(Compares)

#undef GAFSIM_COMPARE_SCALAR

template <typename T, typename U>
inline void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask,
                   const LocalTensor<T> &src0, T src1, SELMODE selMode, uint32_t count,
                   gafsim::Where where = gafsim::Where::Here())
{
    static_assert(gafsim::kIsOneOf<T, half, float>, "Select: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::Select, dst.Sim(), {src0.Sim(), {}, {}}, 1};
    v.scalar = static_cast<double>(src1);
    v.variant = static_cast<int>(selMode);
    v.lanes = gafsim::Counted(count);
    gafsim::SelectLanes(v, selMask.Sim(), where);
}

template <typename T, typename U>
inline void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask,
                   const LocalTensor<T> &src0, const LocalTensor<T> &src1, SELMODE selMode,
                   uint32_t count, gafsim::Where where = gafsim::Where::Here())
{
    static_assert(gafsim::kIsOneOf<T, half, float>, "Select: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::Select, dst.Sim(), {src0.Sim(), src1.Sim(), {}}, 2};
    v.variant = static_cast<int>(selMode);
    v.lanes = gafsim::Counted(count);
    gafsim::SelectLanes(v, selMask.Sim(), where);
}

template <typename T, typename U, bool isSetMask = true, typename M>
inline void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask,
                   const LocalTensor<T> &src0, T src1, SELMODE selMode, M mask, uint8_t repeatTime,
                   const BinaryRepeatParams &repeatParams,
                   gafsim::Where where = gafsim::Where::Here())
{
    static_assert(gafsim::kIsOneOf<T, half, float>, "Select: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::Select, dst.Sim(), {src0.Sim(), {}, {}}, 1};
    v.scalar = static_cast<double>(src1);
    v.variant = static_cast<int>(selMode);
    v.lanes = gafsim::Masked(mask, repeatTime, isSetMask);
    gafsim::Strided(v, repeatParams);
    gafsim::SelectLanes(v, selMask.Sim(), where);
}

template <typename T, typename U, bool isSetMask = true, typename M>
inline void Select(const LocalTensor<T> &dst, const LocalTensor<U> &selMask,
                   const LocalTensor<T> &src0, const LocalTensor<T> &src1, SELMODE selMode, M mask,
                   uint8_t repeatTime, const BinaryRepeatParams &repeatParams,
                   gafsim::Where where = gafsim::Where::Here())
{
    static_assert(gafsim::kIsOneOf<T, half, float>, "Select: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::Select, dst.Sim(), {src0.Sim(), src1.Sim(), {}}, 2};
    v.variant = static_cast<int>(selMode);
    v.lanes = gafsim::Masked(mask, repeatTime, isSetMask);
    gafsim::Strided(v, repeatParams);
    gafsim::SelectLanes(v, selMask.Sim(), where);
}

}  // namespace AscendC

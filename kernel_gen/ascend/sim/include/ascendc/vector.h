// Elementwise vector instructions: the first n elements, or mask and repeats.
#pragma once

#include "tensor.h"

namespace gafsim
{

template <typename T>
inline uint64_t BitsOf(T value)
{
    uint64_t bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(T));
    return bits;
}

inline Lanes Counted(int64_t count)
{
    Lanes lanes;
    lanes.count = count > 0 ? static_cast<uint64_t>(count) : 0;
    return lanes;
}

inline Lanes Masked(const uint64_t mask[], uint32_t repeats, bool set)
{
    Lanes lanes;
    lanes.counted = false;
    lanes.repeats = repeats;
    lanes.mask[0] = mask[0];
    lanes.mask[1] = mask[1];
    lanes.from_register = !set;
    return lanes;
}

inline Lanes Masked(uint64_t count, uint32_t repeats, bool set)
{
    const uint64_t all = ~uint64_t{0};
    const uint64_t mask[2] = {count >= 64 ? all : (uint64_t{1} << count) - 1,
                              count >= 128 ? all
                              : count > 64 ? (uint64_t{1} << (count - 64)) - 1
                                           : 0};
    return Masked(mask, repeats, set);
}

inline void Strided(Vector &v, const AscendC::BinaryRepeatParams &p)
{
    v.dst_stride = {p.dstBlkStride, p.dstRepStride};
    v.src_stride[0] = {p.src0BlkStride, p.src0RepStride};
    v.src_stride[1] = {p.src1BlkStride, p.src1RepStride};
}

inline void Strided(Vector &v, const AscendC::UnaryRepeatParams &p)
{
    v.dst_stride = {p.dstBlkStride, p.dstRepStride};
    v.src_stride[0] = {p.srcBlkStride, p.srcRepStride};
}

}  // namespace gafsim

namespace AscendC
{

// One instruction of two sources in its three public forms.
#define GAFSIM_BINARY(NAME, READS_DST, ...)                                                        \
    template <typename T>                                                                          \
    inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src0,                        \
                     const LocalTensor<T> &src1, const int32_t &count,                             \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        static_assert(gafsim::kIsOneOf<T, __VA_ARGS__>, #NAME ": type not supported by the chip"); \
        gafsim::Vector v{gafsim::Op::NAME, dst.Sim(), {src0.Sim(), src1.Sim(), {}}, 2};            \
        v.reads_dst = READS_DST;                                                                   \
        v.lanes = gafsim::Counted(count);                                                          \
        gafsim::Elementwise(v, where);                                                             \
    }                                                                                              \
    template <typename T, bool isSetMask = true, typename M>                                       \
    inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src0,                        \
                     const LocalTensor<T> &src1, M mask, const uint8_t repeatTime,                 \
                     const BinaryRepeatParams &repeatParams,                                       \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        static_assert(gafsim::kIsOneOf<T, __VA_ARGS__>, #NAME ": type not supported by the chip"); \
        gafsim::Vector v{gafsim::Op::NAME, dst.Sim(), {src0.Sim(), src1.Sim(), {}}, 2};            \
        v.reads_dst = READS_DST;                                                                   \
        v.lanes = gafsim::Masked(mask, repeatTime, isSetMask);                                     \
        gafsim::Strided(v, repeatParams);                                                          \
        gafsim::Elementwise(v, where);                                                             \
    }

GAFSIM_BINARY(Add, false, half, float, int16_t, int32_t)
GAFSIM_BINARY(Sub, false, half, float, int16_t, int32_t)
GAFSIM_BINARY(Mul, false, half, float, int16_t, int32_t)
GAFSIM_BINARY(Div, false, half, float)
GAFSIM_BINARY(Max, false, half, float, int16_t, int32_t)
GAFSIM_BINARY(Min, false, half, float, int16_t, int32_t)
GAFSIM_BINARY(And, false, int16_t, uint16_t)
GAFSIM_BINARY(Or, false, int16_t, uint16_t)
GAFSIM_BINARY(AddRelu, false, half, float, int16_t)
GAFSIM_BINARY(SubRelu, false, half, float, int16_t)
GAFSIM_BINARY(FusedMulAdd, true, half, float)
GAFSIM_BINARY(MulAddRelu, true, half, float)

#undef GAFSIM_BINARY

// dst and sources may differ in type (half sources, float sum).
#define GAFSIM_TERNARY(NAME)                                                                       \
    template <typename T, typename U>                                                              \
    inline void NAME(const LocalTensor<T> &dst, const LocalTensor<U> &src0,                        \
                     const LocalTensor<U> &src1, const int32_t &count,                             \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        static_assert(__is_same(T, U) || (__is_same(T, float) && __is_same(U, half)),              \
                      #NAME ": types not supported by the chip");                                  \
        static_assert(gafsim::kIsOneOf<U, half, float>, #NAME ": type not supported by the chip"); \
        gafsim::Vector v{gafsim::Op::NAME, dst.Sim(), {src0.Sim(), src1.Sim(), {}}, 2};            \
        v.reads_dst = true;                                                                        \
        v.lanes = gafsim::Counted(count);                                                          \
        gafsim::Elementwise(v, where);                                                             \
    }                                                                                              \
    template <typename T, typename U, bool isSetMask = true, typename M>                           \
    inline void NAME(const LocalTensor<T> &dst, const LocalTensor<U> &src0,                        \
                     const LocalTensor<U> &src1, M mask, const uint8_t repeatTime,                 \
                     const BinaryRepeatParams &repeatParams,                                       \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        gafsim::Vector v{gafsim::Op::NAME, dst.Sim(), {src0.Sim(), src1.Sim(), {}}, 2};            \
        v.reads_dst = true;                                                                        \
        v.lanes = gafsim::Masked(mask, repeatTime, isSetMask);                                     \
        gafsim::Strided(v, repeatParams);                                                          \
        gafsim::Elementwise(v, where);                                                             \
    }

GAFSIM_TERNARY(MulAddDst)

#undef GAFSIM_TERNARY

#define GAFSIM_UNARY(NAME, ...)                                                                    \
    template <typename T>                                                                          \
    inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src, const int32_t &count,   \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        static_assert(gafsim::kIsOneOf<T, __VA_ARGS__>, #NAME ": type not supported by the chip"); \
        gafsim::Vector v{gafsim::Op::NAME, dst.Sim(), {src.Sim(), {}, {}}, 1};                     \
        v.lanes = gafsim::Counted(count);                                                          \
        gafsim::Elementwise(v, where);                                                             \
    }                                                                                              \
    template <typename T, bool isSetMask = true, typename M>                                       \
    inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src, M mask,                 \
                     const uint8_t repeatTime, const UnaryRepeatParams &repeatParams,              \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        static_assert(gafsim::kIsOneOf<T, __VA_ARGS__>, #NAME ": type not supported by the chip"); \
        gafsim::Vector v{gafsim::Op::NAME, dst.Sim(), {src.Sim(), {}, {}}, 1};                     \
        v.lanes = gafsim::Masked(mask, repeatTime, isSetMask);                                     \
        gafsim::Strided(v, repeatParams);                                                          \
        gafsim::Elementwise(v, where);                                                             \
    }

GAFSIM_UNARY(Exp, half, float)
GAFSIM_UNARY(Ln, half, float)
GAFSIM_UNARY(Sqrt, half, float)
GAFSIM_UNARY(Rsqrt, half, float)
GAFSIM_UNARY(Reciprocal, half, float)
GAFSIM_UNARY(Abs, half, float)
GAFSIM_UNARY(Relu, half, float, int32_t)
GAFSIM_UNARY(Not, int16_t, uint16_t)

#undef GAFSIM_UNARY

// Tensor with scalar. The scalar has the tensor's type, as in the public signature.
#define GAFSIM_SCALAR(NAME, ...)                                                                   \
    template <typename T, bool isSetMask = true>                                                   \
    inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src,                         \
                     const typename LocalTensor<T>::PrimType &scalarValue, const int32_t &count,   \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        static_assert(gafsim::kIsOneOf<T, __VA_ARGS__>, #NAME ": type not supported by the chip"); \
        gafsim::Vector v{gafsim::Op::NAME, dst.Sim(), {src.Sim(), {}, {}}, 1};                     \
        v.scalar = static_cast<double>(scalarValue);                                               \
        v.integer = static_cast<int64_t>(scalarValue);                                             \
        v.lanes = gafsim::Counted(count);                                                          \
        gafsim::Elementwise(v, where);                                                             \
    }                                                                                              \
    template <typename T, bool isSetMask = true, typename M>                                       \
    inline void NAME(const LocalTensor<T> &dst, const LocalTensor<T> &src,                         \
                     const typename LocalTensor<T>::PrimType &scalarValue, M mask,                 \
                     const uint8_t repeatTime, const UnaryRepeatParams &repeatParams,              \
                     gafsim::Where where = gafsim::Where::Here())                                  \
    {                                                                                              \
        static_assert(gafsim::kIsOneOf<T, __VA_ARGS__>, #NAME ": type not supported by the chip"); \
        gafsim::Vector v{gafsim::Op::NAME, dst.Sim(), {src.Sim(), {}, {}}, 1};                     \
        v.scalar = static_cast<double>(scalarValue);                                               \
        v.integer = static_cast<int64_t>(scalarValue);                                             \
        v.lanes = gafsim::Masked(mask, repeatTime, isSetMask);                                     \
        gafsim::Strided(v, repeatParams);                                                          \
        gafsim::Elementwise(v, where);                                                             \
    }

GAFSIM_SCALAR(Adds, half, float, int16_t, int32_t)
GAFSIM_SCALAR(Muls, half, float, int16_t, int32_t)
GAFSIM_SCALAR(Maxs, half, float, int16_t, int32_t)
GAFSIM_SCALAR(Mins, half, float, int16_t, int32_t)
GAFSIM_SCALAR(LeakyRelu, half, float)
GAFSIM_SCALAR(ShiftLeft, int16_t, uint16_t, int32_t, uint32_t)
GAFSIM_SCALAR(ShiftRight, int16_t, uint16_t, int32_t, uint32_t)

#undef GAFSIM_SCALAR

// dst += src * scalar
template <typename T, typename U>
inline void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalarValue,
                 const int32_t &count, gafsim::Where where = gafsim::Where::Here())
{
    static_assert(gafsim::kIsOneOf<U, half, float>, "Axpy: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::Axpy, dst.Sim(), {src.Sim(), {}, {}}, 1};
    v.reads_dst = true;
    v.scalar = static_cast<double>(scalarValue);
    v.lanes = gafsim::Counted(count);
    gafsim::Elementwise(v, where);
}

template <typename T, typename U, bool isSetMask = true, typename M>
inline void Axpy(const LocalTensor<T> &dst, const LocalTensor<U> &src, const U &scalarValue, M mask,
                 const uint8_t repeatTime, const UnaryRepeatParams &repeatParams,
                 gafsim::Where where = gafsim::Where::Here())
{
    static_assert(gafsim::kIsOneOf<U, half, float>, "Axpy: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::Axpy, dst.Sim(), {src.Sim(), {}, {}}, 1};
    v.reads_dst = true;
    v.scalar = static_cast<double>(scalarValue);
    v.lanes = gafsim::Masked(mask, repeatTime, isSetMask);
    gafsim::Strided(v, repeatParams);
    gafsim::Elementwise(v, where);
}

// Fills with one value.
template <typename T>
inline void Duplicate(const LocalTensor<T> &dst, const T &scalarValue, const int32_t &count,
                      gafsim::Where where = gafsim::Where::Here())
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Duplicate: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::Duplicate, dst.Sim(), {}, 0};
    v.integer = static_cast<int64_t>(gafsim::BitsOf(scalarValue));
    v.lanes = gafsim::Counted(count);
    gafsim::Elementwise(v, where);
}

template <typename T, bool isSetMask = true, typename M>
inline void Duplicate(const LocalTensor<T> &dst, const T &scalarValue, M mask,
                      const uint8_t repeatTime, const uint16_t dstBlockStride,
                      const uint8_t dstRepeatStride, gafsim::Where where = gafsim::Where::Here())
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Duplicate: type not supported by the chip");
    gafsim::Vector v{gafsim::Op::Duplicate, dst.Sim(), {}, 0};
    v.integer = static_cast<int64_t>(gafsim::BitsOf(scalarValue));
    v.lanes = gafsim::Masked(mask, repeatTime, isSetMask);
    v.dst_stride = {dstBlockStride, dstRepeatStride};
    gafsim::Elementwise(v, where);
}

// Conversion with the named rounding; CAST_NONE rounds to nearest even where rounding is needed.
template <typename T, typename U>
inline void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &roundMode,
                 const uint32_t count, gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Vector v{gafsim::Op::Cast, dst.Sim(), {src.Sim(), {}, {}}, 1};
    v.variant = static_cast<int>(roundMode);
    v.lanes = gafsim::Counted(count);
    gafsim::Elementwise(v, where);
}

template <typename T, typename U, bool isSetMask = true, typename M>
inline void Cast(const LocalTensor<T> &dst, const LocalTensor<U> &src, const RoundMode &roundMode,
                 M mask, const uint8_t repeatTime, const UnaryRepeatParams &repeatParams,
                 gafsim::Where where = gafsim::Where::Here())
{
    gafsim::Vector v{gafsim::Op::Cast, dst.Sim(), {src.Sim(), {}, {}}, 1};
    v.variant = static_cast<int>(roundMode);
    v.lanes = gafsim::Masked(mask, repeatTime, isSetMask);
    gafsim::Strided(v, repeatParams);
    gafsim::Elementwise(v, where);
}

// The factor of Cast from int32_t to half; without one the chip's result is not defined.
inline void SetDeqScale(half scale)
{
    gafsim::SetDequantScale(static_cast<float>(scale));
}

inline void SetMaskCount()
{
    gafsim::SetMaskMode(true);
}
inline void SetMaskNorm()
{
    gafsim::SetMaskMode(false);
}

template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(const uint64_t maskHigh, const uint64_t maskLow,
                          gafsim::Where where = gafsim::Where::Here())
{
    gafsim::SetMask(maskHigh, maskLow, where);
}

template <typename T, MaskMode mode = MaskMode::NORMAL>
inline void SetVectorMask(int32_t len, gafsim::Where where = gafsim::Where::Here())
{
    if (mode == MaskMode::COUNTER) {
        gafsim::SetMask(0, static_cast<uint64_t>(len), where);
        return;
    }
    const gafsim::Lanes lanes = gafsim::Masked(static_cast<uint64_t>(len), 1, true);
    gafsim::SetMask(lanes.mask[1], lanes.mask[0], where);
}

inline void ResetMask(gafsim::Where where = gafsim::Where::Here())
{
    gafsim::SetMask(~uint64_t{0}, ~uint64_t{0}, where);
}

}  // namespace AscendC

// Float arithmetic is done in float; half widens, computes in float and rounds once (to nearest
// even), which is exact for one operation. Integers wrap.

#include "arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#if defined(__F16C__)
#include <immintrin.h>
#endif

namespace gafsim
{

void Widen(const uint16_t *from, float *to, uint64_t n)
{
    uint64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8) {
        const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + i));
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(halves));
    }
#endif
    for (; i < n; ++i) {
        _Float16 value;
        std::memcpy(&value, from + i, 2);
        to[i] = static_cast<float>(value);
    }
}

void Narrow(const float *from, uint16_t *to, uint64_t n)
{
    uint64_t i = 0;
#if defined(__F16C__)
    for (; i + 8 <= n; i += 8) {
        const __m128i halves =
            _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(to + i), halves);
    }
#endif
    for (; i < n; ++i) {
        const _Float16 value = static_cast<_Float16>(from[i]);
        std::memcpy(to + i, &value, 2);
    }
}

namespace
{

constexpr uint64_t kChunk = 512;

// Kernels are structs with `static T At(T d, T a, T b, T s)`.
template <typename T, typename F>
void Direct(void *d, const void *a, const void *b, uint64_t n, const Scalars &scalars)
{
    T *dst = static_cast<T *>(d);
    const T *left = static_cast<const T *>(a);
    const T *right = static_cast<const T *>(b);
    const T s =
        std::is_integral_v<T> ? static_cast<T>(scalars.integer) : static_cast<T>(scalars.real);
    for (uint64_t i = 0; i < n; ++i) {
        dst[i] = F::template At<T>(F::kDst ? dst[i] : T{}, left[i], F::kTwo ? right[i] : T{}, s);
    }
}

// Half sources; the destination is half, or float for the mixed forms.
template <typename F, bool kFloatDst>
void Halves(void *d, const void *a, const void *b, uint64_t n, const Scalars &scalars)
{
    float dst[kChunk], left[kChunk], right[kChunk];
    for (uint64_t at = 0; at < n; at += kChunk) {
        const uint64_t m = std::min(kChunk, n - at);
        Widen(static_cast<const uint16_t *>(a) + at, left, m);
        if (F::kTwo) {
            Widen(static_cast<const uint16_t *>(b) + at, right, m);
        }
        if (kFloatDst) {
            Direct<float, F>(static_cast<float *>(d) + at, left, right, m, scalars);
            continue;
        }
        if (F::kDst) {
            Widen(static_cast<const uint16_t *>(d) + at, dst, m);
        }
        Direct<float, F>(dst, left, right, m, scalars);
        Narrow(dst, static_cast<uint16_t *>(d) + at, m);
    }
}

template <typename T>
T Plus(T a, T b)
{
    if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
    } else {
        return a + b;
    }
}
template <typename T>
T Minus(T a, T b)
{
    if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<U>(static_cast<U>(a) - static_cast<U>(b)));
    } else {
        return a - b;
    }
}
template <typename T>
T Times(T a, T b)
{
    if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
        return a * b;
    }
}
// What a NaN gives is not documented: here the second operand, so that a kernel that counts on a
// NaN, or on none, is found.
template <typename T>
T Larger(T a, T b)
{
    return a > b ? a : b;
}
template <typename T>
T Smaller(T a, T b)
{
    return a < b ? a : b;
}
// Signed numbers keep their sign, and the bits below it move.
template <typename T>
T ShiftedLeft(T a, T by)
{
    constexpr uint64_t sign = std::is_signed_v<T> ? uint64_t{1} << (sizeof(T) * 8 - 1) : 0;
    const uint64_t bits = static_cast<uint64_t>(a);
    const uint64_t moved = by >= T(sizeof(T) * 8) ? 0 : bits << by;
    return static_cast<T>((bits & sign) | (moved & ~sign));
}
template <typename T>
T Positive(T a)
{
    return a != a ? a : a > T{} ? a : T{};
}

#define GAFSIM_KERNEL(NAME, TWO, DST, EXPRESSION)                                                  \
    struct K##NAME {                                                                               \
        static constexpr bool kTwo = TWO, kDst = DST;                                              \
        template <typename T>                                                                      \
        static T At([[maybe_unused]] T d, [[maybe_unused]] T a, [[maybe_unused]] T b,              \
                    [[maybe_unused]] T s)                                                          \
        {                                                                                          \
            return static_cast<T>(EXPRESSION);                                                     \
        }                                                                                          \
    };

GAFSIM_KERNEL(Add, true, false, Plus(a, b))
GAFSIM_KERNEL(Sub, true, false, Minus(a, b))
GAFSIM_KERNEL(Mul, true, false, Times(a, b))
GAFSIM_KERNEL(Div, true, false, a / b)
GAFSIM_KERNEL(Max, true, false, Larger(a, b))
GAFSIM_KERNEL(Min, true, false, Smaller(a, b))
GAFSIM_KERNEL(And, true, false, a &b)
GAFSIM_KERNEL(Or, true, false, a | b)
GAFSIM_KERNEL(Xor, true, false, a ^ b)
GAFSIM_KERNEL(AddRelu, true, false, Positive(Plus(a, b)))
GAFSIM_KERNEL(SubRelu, true, false, Positive(Minus(a, b)))
GAFSIM_KERNEL(FusedMulAdd, true, true, std::fma(a, d, b))
GAFSIM_KERNEL(MulAddRelu, true, true, Positive(std::fma(a, d, b)))
GAFSIM_KERNEL(MulAddDst, true, true, std::fma(a, b, d))
GAFSIM_KERNEL(Axpy, false, true, std::fma(a, s, d))
GAFSIM_KERNEL(Adds, false, false, Plus(a, s))
GAFSIM_KERNEL(Muls, false, false, Times(a, s))
GAFSIM_KERNEL(Maxs, false, false, Larger(a, s))
GAFSIM_KERNEL(Mins, false, false, Smaller(a, s))
GAFSIM_KERNEL(LeakyRelu, false, false, a >= T{} ? a : a * s)
GAFSIM_KERNEL(ShiftLeft, false, false, ShiftedLeft(a, s))
GAFSIM_KERNEL(ShiftRight, false, false, a >> std::min<T>(s, T(sizeof(T) * 8 - 1)))
GAFSIM_KERNEL(Exp, false, false, std::exp(a))
GAFSIM_KERNEL(Ln, false, false, std::log(a))
GAFSIM_KERNEL(Sqrt, false, false, std::sqrt(a))
GAFSIM_KERNEL(Rsqrt, false, false, T(1) / std::sqrt(a))
GAFSIM_KERNEL(Reciprocal, false, false, T(1) / a)
GAFSIM_KERNEL(Abs, false, false, std::fabs(a))
GAFSIM_KERNEL(Relu, false, false, Positive(a))
GAFSIM_KERNEL(Not, false, false, ~a)
GAFSIM_KERNEL(Copy, false, false, a)
GAFSIM_KERNEL(Tanh, false, false, std::tanh(a))
GAFSIM_KERNEL(Sigmoid, false, false, T(1) / (T(1) + std::exp(-a)))
GAFSIM_KERNEL(Erf, false, false, std::erf(a))
GAFSIM_KERNEL(Erfc, false, false, std::erfc(a))
GAFSIM_KERNEL(Sin, false, false, std::sin(a))
GAFSIM_KERNEL(Cos, false, false, std::cos(a))
GAFSIM_KERNEL(Tan, false, false, std::tan(a))
GAFSIM_KERNEL(Sinh, false, false, std::sinh(a))
GAFSIM_KERNEL(Cosh, false, false, std::cosh(a))
GAFSIM_KERNEL(Asin, false, false, std::asin(a))
GAFSIM_KERNEL(Acos, false, false, std::acos(a))
GAFSIM_KERNEL(Atan, false, false, std::atan(a))
GAFSIM_KERNEL(Asinh, false, false, std::asinh(a))
GAFSIM_KERNEL(Acosh, false, false, std::acosh(a))
GAFSIM_KERNEL(Atanh, false, false, std::atanh(a))
GAFSIM_KERNEL(Log2, false, false, std::log2(a))
GAFSIM_KERNEL(Log10, false, false, std::log10(a))
GAFSIM_KERNEL(Ceil, false, false, std::ceil(a))
GAFSIM_KERNEL(Floor, false, false, std::floor(a))
GAFSIM_KERNEL(Round, false, false, std::nearbyint(a))
GAFSIM_KERNEL(Trunc, false, false, std::trunc(a))
GAFSIM_KERNEL(Frac, false, false, a - std::trunc(a))
GAFSIM_KERNEL(Sign, false, false, a != a ? a : T((a > T{}) - (a < T{})))
GAFSIM_KERNEL(Power, true, false, std::pow(a, b))
GAFSIM_KERNEL(PowerScalar, false, false, std::pow(a, s))
GAFSIM_KERNEL(Fmod, true, false, std::fmod(a, b))
GAFSIM_KERNEL(Hypot, true, false, std::hypot(a, b))
GAFSIM_KERNEL(Silu, false, false, a / (T(1) + std::exp(-a)))
GAFSIM_KERNEL(Swish, false, false, a / (T(1) + std::exp(-s * a)))
GAFSIM_KERNEL(Gelu, false, false,
              a / (T(1) + std::exp(T(-1.5957691216) * (a + T(0.044715) * a * a * a))))
GAFSIM_KERNEL(FasterGelu, false, false, a / (T(1) + std::exp(T(-1.702) * a)))
GAFSIM_KERNEL(Lgamma, false, false, std::lgamma(a))

#undef GAFSIM_KERNEL

template <typename F>
Flat Floating(Type dst, Type src)
{
    if (dst == Type::F32 && src == Type::F32) {
        return Direct<float, F>;
    }
    if (dst == Type::F16 && src == Type::F16) {
        return Halves<F, false>;
    }
    return nullptr;
}

template <typename F>
Flat Mixed(Type dst, Type src)
{
    return dst == Type::F32 && src == Type::F16 ? Halves<F, true> : Floating<F>(dst, src);
}

template <typename F>
Flat Words(Type dst, Type src)
{
    if (dst == src && src == Type::I32) {
        return Direct<int32_t, F>;
    }
    if (dst == src && src == Type::I16) {
        return Direct<int16_t, F>;
    }
    return Floating<F>(dst, src);
}

template <typename F>
Flat Bitwise(Type dst, Type src)
{
    if (dst != src) {
        return nullptr;
    }
    return src == Type::I16 || src == Type::U16 ? Direct<uint16_t, F> : nullptr;
}

template <typename F>
Flat Shift(Type dst, Type src)
{
    if (dst != src) {
        return nullptr;
    }
    switch (src) {
        case Type::I16: return Direct<int16_t, F>;
        case Type::U16: return Direct<uint16_t, F>;
        case Type::I32: return Direct<int32_t, F>;
        case Type::U32: return Direct<uint32_t, F>;
        default: return nullptr;
    }
}

template <typename F>
Flat AnySize(Type dst, Type src)
{
    if (dst != src) {
        return nullptr;
    }
    switch (SizeOf(src)) {
        case 1: return Direct<uint8_t, F>;
        case 2: return Direct<uint16_t, F>;
        case 4: return Direct<uint32_t, F>;
        default: return Direct<uint64_t, F>;
    }
}

}  // namespace

Flat ArithmeticOf(Op op, Type dst, Type src)
{
    switch (op) {
        case Op::Add: return Words<KAdd>(dst, src);
        case Op::Sub: return Words<KSub>(dst, src);
        case Op::Mul: return Words<KMul>(dst, src);
        case Op::Max: return Words<KMax>(dst, src);
        case Op::Min: return Words<KMin>(dst, src);
        case Op::Adds: return Words<KAdds>(dst, src);
        case Op::Muls: return Words<KMuls>(dst, src);
        case Op::Maxs: return Words<KMaxs>(dst, src);
        case Op::Mins: return Words<KMins>(dst, src);
        case Op::Relu: return Words<KRelu>(dst, src);
        case Op::AddRelu: return Words<KAddRelu>(dst, src);
        case Op::SubRelu: return Words<KSubRelu>(dst, src);
        case Op::And: return Bitwise<KAnd>(dst, src);
        case Op::Xor: return Bitwise<KXor>(dst, src);
        case Op::Or: return Bitwise<KOr>(dst, src);
        case Op::Not: return Bitwise<KNot>(dst, src);
        case Op::ShiftLeft: return Shift<KShiftLeft>(dst, src);
        case Op::ShiftRight: return Shift<KShiftRight>(dst, src);
        case Op::Copy: return AnySize<KCopy>(dst, src);
        case Op::MulAddDst: return Mixed<KMulAddDst>(dst, src);
        case Op::Axpy: return Mixed<KAxpy>(dst, src);
        case Op::Div: return Floating<KDiv>(dst, src);
        case Op::FusedMulAdd: return Floating<KFusedMulAdd>(dst, src);
        case Op::MulAddRelu: return Floating<KMulAddRelu>(dst, src);
        case Op::LeakyRelu: return Floating<KLeakyRelu>(dst, src);
        case Op::Exp: return Floating<KExp>(dst, src);
        case Op::Ln:
        case Op::Log: return Floating<KLn>(dst, src);
        case Op::Sqrt: return Floating<KSqrt>(dst, src);
        case Op::Rsqrt: return Floating<KRsqrt>(dst, src);
        case Op::Reciprocal: return Floating<KReciprocal>(dst, src);
        case Op::Abs: return Floating<KAbs>(dst, src);
        case Op::Tanh: return Floating<KTanh>(dst, src);
        case Op::Sigmoid: return Floating<KSigmoid>(dst, src);
        case Op::Erf: return Floating<KErf>(dst, src);
        case Op::Erfc: return Floating<KErfc>(dst, src);
        case Op::Sin: return Floating<KSin>(dst, src);
        case Op::Cos: return Floating<KCos>(dst, src);
        case Op::Tan: return Floating<KTan>(dst, src);
        case Op::Sinh: return Floating<KSinh>(dst, src);
        case Op::Cosh: return Floating<KCosh>(dst, src);
        case Op::Asin: return Floating<KAsin>(dst, src);
        case Op::Acos: return Floating<KAcos>(dst, src);
        case Op::Atan: return Floating<KAtan>(dst, src);
        case Op::Asinh: return Floating<KAsinh>(dst, src);
        case Op::Acosh: return Floating<KAcosh>(dst, src);
        case Op::Atanh: return Floating<KAtanh>(dst, src);
        case Op::Log2: return Floating<KLog2>(dst, src);
        case Op::Log10: return Floating<KLog10>(dst, src);
        case Op::Ceil: return Floating<KCeil>(dst, src);
        case Op::Floor: return Floating<KFloor>(dst, src);
        case Op::Round:
        case Op::Rint: return Floating<KRound>(dst, src);
        case Op::Trunc: return Floating<KTrunc>(dst, src);
        case Op::Frac: return Floating<KFrac>(dst, src);
        case Op::Sign: return Floating<KSign>(dst, src);
        case Op::Power: return Floating<KPower>(dst, src);
        case Op::PowerScalar: return Floating<KPowerScalar>(dst, src);
        case Op::Fmod: return Floating<KFmod>(dst, src);
        case Op::Hypot: return Floating<KHypot>(dst, src);
        case Op::Silu: return Floating<KSilu>(dst, src);
        case Op::Swish: return Floating<KSwish>(dst, src);
        case Op::Gelu: return Floating<KGelu>(dst, src);
        case Op::FasterGelu: return Floating<KFasterGelu>(dst, src);
        case Op::Lgamma: return Floating<KLgamma>(dst, src);
        default: return nullptr;
    }
}

}  // namespace gafsim

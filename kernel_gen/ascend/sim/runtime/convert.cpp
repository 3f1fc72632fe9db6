// Conversions between element types with the rounding modes of the chip. Integers saturate, not a
// number becomes 0 there; floats overflow to infinity.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "arithmetic.h"

namespace gafsim
{

namespace
{

enum Round { kNone, kRint, kFloor, kCeil, kRound, kTrunc, kOdd };

long double Whole(long double x, int round)
{
    switch (round) {
        case kFloor: return std::floor(x);
        case kCeil: return std::ceil(x);
        case kRound: return std::round(x);
        case kTrunc: return std::trunc(x);
        case kOdd: {
            const long double low = std::trunc(x);
            if (low == x || std::fmod(low, 2.0L) != 0) {
                return low;
            }
            return low + (x > 0 ? 1 : -1);
        }
        default: return std::nearbyint(x);
    }
}

// x rounded to a binary format of `digits` bits whose smallest exponent is `low`.
long double ToFormat(long double x, int digits, int low, long double largest, int round)
{
    if (x == 0 || std::isnan(x) || std::isinf(x)) {
        return x;
    }
    const int exponent = std::max(std::ilogb(x), low) - digits + 1;
    const long double rounded = std::ldexp(Whole(std::ldexp(x, -exponent), round), exponent);
    if (std::fabs(rounded) > largest) {
        return std::copysign(std::numeric_limits<long double>::infinity(), x);
    }
    return rounded;
}

template <typename T>
T Saturated(long double x, int round)
{
    if (std::isnan(x)) {
        return 0;
    }
    const long double whole = std::isinf(x) ? x : Whole(x, round);
    const long double low = static_cast<long double>(std::numeric_limits<T>::min());
    const long double high = static_cast<long double>(std::numeric_limits<T>::max());
    return whole <= low    ? std::numeric_limits<T>::min()
           : whole >= high ? std::numeric_limits<T>::max()
                           : static_cast<T>(whole);
}

template <typename T>
T Load(const void *at, uint64_t i)
{
    T value;
    std::memcpy(&value, static_cast<const uint8_t *>(at) + i * sizeof(T), sizeof(T));
    return value;
}

template <typename T>
void Store(void *at, uint64_t i, T value)
{
    std::memcpy(static_cast<uint8_t *>(at) + i * sizeof(T), &value, sizeof(T));
}

float FromBrain(uint16_t bits)
{
    const uint32_t word = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &word, 4);
    return value;
}

uint16_t ToBrain(float value)
{
    uint32_t word;
    std::memcpy(&word, &value, 4);
    if ((word & 0x7fffffffu) > 0x7f800000u) {
        return static_cast<uint16_t>((word >> 16) | 0x40u);
    }
    return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
}

long double LoadAny(Type type, const void *src, uint64_t i)
{
    switch (type) {
        case Type::F16: return static_cast<long double>(static_cast<float>(Load<_Float16>(src, i)));
        case Type::BF16: return FromBrain(Load<uint16_t>(src, i));
        case Type::F32: return Load<float>(src, i);
        case Type::I8: return Load<int8_t>(src, i);
        case Type::U8: return Load<uint8_t>(src, i);
        case Type::I16: return Load<int16_t>(src, i);
        case Type::I32: return Load<int32_t>(src, i);
        default: return Load<int64_t>(src, i);
    }
}

void StoreAny(Type type, void *dst, uint64_t i, long double x, int round)
{
    switch (type) {
        case Type::F16: {
            const auto y = static_cast<float>(ToFormat(x, 11, -14, 65504.0L, round));
            Store(dst, i, static_cast<_Float16>(y));
            return;
        }
        case Type::BF16: {
            const long double largest = 3.3895313892515355e38L;
            Store(dst, i, ToBrain(static_cast<float>(ToFormat(x, 8, -126, largest, round))));
            return;
        }
        case Type::F32: {
            const long double largest = std::numeric_limits<float>::max();
            Store(dst, i, static_cast<float>(ToFormat(x, 24, -126, largest, round)));
            return;
        }
        case Type::I8: Store(dst, i, Saturated<int8_t>(x, round)); return;
        case Type::U8: Store(dst, i, Saturated<uint8_t>(x, round)); return;
        case Type::I16: Store(dst, i, Saturated<int16_t>(x, round)); return;
        case Type::I32: Store(dst, i, Saturated<int32_t>(x, round)); return;
        default: Store(dst, i, Saturated<int64_t>(x, round)); return;
    }
}

// The conversions that kernels do most, in loops that the compiler vectorises.
bool Fast(Type dst_type, Type src_type, void *dst, const void *src, uint64_t n, int round)
{
    const bool nearest = round == kNone || round == kRint;
    if (src_type == Type::F16 && dst_type == Type::F32) {
        Widen(static_cast<const uint16_t *>(src), static_cast<float *>(dst), n);
        return true;
    }
    if (src_type == Type::F32 && dst_type == Type::F16 && nearest) {
        Narrow(static_cast<const float *>(src), static_cast<uint16_t *>(dst), n);
        return true;
    }
    if (src_type == Type::BF16 && dst_type == Type::F32) {
        for (uint64_t i = 0; i < n; ++i) {
            Store(dst, i, FromBrain(Load<uint16_t>(src, i)));
        }
        return true;
    }
    if (src_type == Type::F32 && dst_type == Type::BF16 && nearest) {
        for (uint64_t i = 0; i < n; ++i) {
            Store(dst, i, ToBrain(Load<float>(src, i)));
        }
        return true;
    }
    if (src_type == Type::I32 && dst_type == Type::F32 && nearest) {
        for (uint64_t i = 0; i < n; ++i) {
            Store(dst, i, static_cast<float>(Load<int32_t>(src, i)));
        }
        return true;
    }
    return false;
}

}  // namespace

bool CanConvert(Type dst, Type src)
{
    using T = Type;
    switch (src) {
        case T::I8:
        case T::U8: return dst == T::F16;
        case T::I16: return dst == T::F16 || dst == T::F32;
        case T::F16:
            return dst == T::I8 || dst == T::U8 || dst == T::I16 || dst == T::I32 || dst == T::F32;
        case T::BF16: return dst == T::I32 || dst == T::F32;
        case T::I32: return dst == T::I16 || dst == T::F16 || dst == T::F32 || dst == T::I64;
        case T::F32:
            return dst == T::I16 || dst == T::F16 || dst == T::BF16 || dst == T::I32 ||
                   dst == T::F32 || dst == T::I64;
        case T::I64: return dst == T::I32 || dst == T::F32;
        default: return false;
    }
}

// Which rounding a conversion takes. CAST_NONE stands for one that loses nothing, or rounds to nearest
// even; those that never lose take no other, those to whole numbers or bf16 need one.
bool CanRound(Type dst, Type src, int round)
{
    using T = Type;
    const bool none = round == kNone;
    if (round == kOdd) {
        return src == T::F32 && dst == T::F16;
    }
    switch (src) {
        case T::I8:
        case T::U8: return none;
        case T::I16: return none || dst == T::F16;
        case T::F16: return dst == T::F32 ? none : (!none || dst == T::I8 || dst == T::U8);
        case T::BF16: return none == (dst == T::F32);
        case T::I32: return none || dst == T::F32;
        case T::F32: return !none || dst == T::F16;
        case T::I64: return none == (dst == T::I32);
        default: return false;
    }
}

bool ConvertLanes(Type dst_type, Type src_type, void *dst, const void *src, uint64_t n, int round)
{
    if (!CanConvert(dst_type, src_type)) {
        return false;
    }
    if (src_type == Type::F32 && dst_type == Type::F32) {
        for (uint64_t i = 0; i < n; ++i) {
            Store(dst, i, static_cast<float>(Whole(Load<float>(src, i), round)));
        }
        return true;
    }
    if (Fast(dst_type, src_type, dst, src, n, round)) {
        return true;
    }
    const uint32_t narrow = SizeOf(dst_type), wide = SizeOf(src_type);
    if (dst == src && narrow > wide) {
        for (uint64_t i = n; i-- > 0;) {
            StoreAny(dst_type, dst, i, LoadAny(src_type, src, i), round);
        }
        return true;
    }
    for (uint64_t i = 0; i < n; ++i) {
        StoreAny(dst_type, dst, i, LoadAny(src_type, src, i), round);
    }
    return true;
}

}  // namespace gafsim

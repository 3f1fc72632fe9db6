// Vector instructions (included inside namespace AscendC).
struct UnaryRepeatParams {
    UnaryRepeatParams() = default;
    UnaryRepeatParams(uint16_t db, uint16_t sb, uint8_t dr, uint8_t sr) : dstBlkStride(db), srcBlkStride(sb), dstRepStride(dr), srcRepStride(sr) {}
    uint16_t dstBlkStride = 1, srcBlkStride = 1;
    uint8_t dstRepStride = 8, srcRepStride = 8;
};
struct BinaryRepeatParams {
    BinaryRepeatParams() = default;
    BinaryRepeatParams(uint8_t db, uint8_t b0, uint8_t b1, uint8_t dr, uint8_t r0, uint8_t r1)
        : dstBlkStride(db), src0BlkStride(b0), src1BlkStride(b1), dstRepStride(dr), src0RepStride(r0), src1RepStride(r1) {}
    uint8_t dstBlkStride = 1, src0BlkStride = 1, src1BlkStride = 1, dstRepStride = 8, src0RepStride = 8, src1RepStride = 8;
};
struct BrcbRepeatParams {
    BrcbRepeatParams() = default;
    BrcbRepeatParams(uint16_t db, uint16_t dr) : dstBlkStride(db), dstRepStride(dr) {}
    uint16_t dstBlkStride = 1, dstRepStride = 8;
};

template <typename T, typename... Among>
constexpr bool kIsOf = (std::is_same_v<T, Among> || ...);
template <typename T>
constexpr bool kArithmetic = kIsOf<T, int16_t, half, int32_t, float>;

struct Side {  // an operand: where lanes of its repeats lie
    uint64_t at;
    uint32_t size;
    uint32_t block, repeat;  // strides in 32 B
    uint64_t Lane(uint32_t r, uint32_t lane) const
    {
        const uint32_t per = 32 / size;
        return at + 32ull * (uint64_t(r) * repeat + uint64_t(lane / per) * block) + lane % per * size;
    }
};

template <typename T>
inline Side SideOf(const LocalTensor<T> &t, uint32_t block, uint32_t repeat, const char *who)
{
    t.In(asc_host::UB, who);
    t.Aligned(32, who);
    return {t.Address(), sizeof(T), block, repeat};
}

template <typename T>
inline void Reach(const LocalTensor<T> &t, const Side &s, uint32_t r, uint32_t lanes, const char *who)
{
    const uint32_t per = 32 / s.size;
    uint64_t far = 0;
    for (uint32_t lane = 0; lane < lanes; lane += per) {
        far = std::max(far, s.Lane(r, std::min(lane + per, lanes) - 1) + s.size);
    }
    if (far > t.Address() + t.bytes) {
        Fail("%s: repeat %u reaches %llu B beyond its tensor of %u B", who, r, (unsigned long long)(far - t.Address() - t.bytes), t.bytes);
    }
}

// Repeats must not read what an earlier one of the call wrote, nor overlap in part within one.
class Overlaps {
public:
    Overlaps() : byRepeat(asc_host::kUb / 32 + 16, 0), byLane(byRepeat.size(), 0) {}
    void Read(const Side &s, const Side &d, uint32_t r, uint32_t lanes, const char *who)
    {
        const uint32_t per = 32 / s.size;
        for (uint32_t lane = 0; lane < lanes; lane += per) {
            const uint64_t block = s.Lane(r, lane) / 32;
            if (byRepeat[block] != 0 && byRepeat[block] <= r) {
                Fail("%s: repeat %u reads what repeat %u wrote", who, r, byRepeat[block] - 1);
            }
            const uint32_t dper = 32 / d.size;
            for (uint32_t to = 0; to < lanes; to += dper) {
                if (d.Lane(r, to) / 32 == block && (s.size != d.size || to != lane)) {
                    Fail("%s: operands of repeat %u overlap in part", who, r);
                }
            }
        }
    }
    void Wrote(const Side &d, uint32_t r, uint32_t lanes)
    {
        for (uint32_t lane = 0; lane < lanes; lane += 32 / d.size) {
            const uint64_t block = d.Lane(r, lane) / 32;
            byRepeat[block] = r + 1;
            touched.push_back(block);
        }
    }
    void Clear()
    {
        for (auto b : touched) {
            byRepeat[b] = 0;
        }
        touched.clear();
    }

private:
    std::vector<uint32_t> byRepeat, byLane;
    std::vector<uint64_t> touched;
};
inline thread_local Overlaps overlaps;

template <typename D, typename... S, typename F, size_t... I>
inline void Lanewise(const char *who, const LocalTensor<D> &d, const Side &ds, uint64_t count, bool normal, uint32_t mask, uint32_t repeats,
                     F f, std::index_sequence<I...>, const std::pair<const LocalTensor<S> *, Side> &...sources)
{
    asc_host::Called(who);
    constexpr uint32_t widest = std::max({sizeof(D), sizeof(S)...});
    constexpr uint32_t lanes = 256 / widest;
    if (normal) {
        if (repeats > 255) {
            Fail("%s: %u repeats", who, repeats);
        }
        if (mask > lanes) {
            Fail("%s: mask %u of %u lanes", who, mask, lanes);
        }
        if (ds.block == 0) {
            Fail("%s: the result's block stride is 0", who);
        }
        if (mask == 0 || repeats == 0) {
            return;
        }
    } else {
        repeats = static_cast<uint32_t>((count + lanes - 1) / lanes);
    }
    uint8_t *ub = asc_host::core->memory[asc_host::UB].data();
    overlaps.Clear();
    struct Clearing {
        ~Clearing() { overlaps.Clear(); }
    } clearing;
    for (uint32_t r = 0; r < repeats; r++) {
        const uint32_t active = normal ? mask : static_cast<uint32_t>(std::min<uint64_t>(lanes, count - uint64_t(r) * lanes));
        Reach(d, ds, r, active, who);
        (Reach(*sources.first, sources.second, r, active, who), ...);
        (overlaps.Read(sources.second, ds, r, active, who), ...);
        for (uint32_t lane = 0; lane < active; lane++) {
            std::tuple<S...> values;
            (std::memcpy(&std::get<I>(values), ub + sources.second.Lane(r, lane), sizeof(S)), ...);
            uint8_t *to = ub + ds.Lane(r, lane);
            D made;
            std::memcpy(&made, to, sizeof(D));
            made = f(made, std::get<I>(values)...);
            std::memcpy(to, &made, sizeof(D));
        }
        overlaps.Wrote(ds, r, active);
    }
}

template <typename T>
inline T Plain(T v) { return v; }
inline float Plain(half v) { return static_cast<float>(v); }
template <typename T>
struct UnsignedOf { using type = T; };
template <> struct UnsignedOf<int16_t> { using type = uint32_t; };
template <> struct UnsignedOf<int32_t> { using type = uint32_t; };
template <> struct UnsignedOf<half> { using type = float; };
template <typename T>
using Wide = typename UnsignedOf<T>::type;
template <typename T>
inline Wide<T> W(T v) { return static_cast<Wide<T>>(v); }

#define ASC_BINARY(NAME, CHECK, EXPRESSION)                                                                                     \
    template <typename T>                                                                                                       \
    inline void NAME(const LocalTensor<T> &d, const LocalTensor<T> &a, const LocalTensor<T> &b, const int32_t &count)            \
    {                                                                                                                           \
        static_assert(CHECK, #NAME ": type");                                                                                    \
        const char *who = #NAME;                                                                                                 \
        Lanewise<T, T, T>(who, d, SideOf(d, 1, 8, who), count, false, 0, 0, [](T old, T x, T y) { (void)old; return static_cast<T>(EXPRESSION); },      \
                          std::index_sequence<0, 1>(), std::pair<const LocalTensor<T> *, Side>(&a, SideOf(a, 1, 8, who)),                                 \
                          std::pair<const LocalTensor<T> *, Side>(&b, SideOf(b, 1, 8, who)));                                    \
    }                                                                                                                           \
    template <typename T, bool isSetMask = true>                                                                                \
    inline void NAME(const LocalTensor<T> &d, const LocalTensor<T> &a, const LocalTensor<T> &b, uint64_t mask, const uint8_t repeats, \
                     const BinaryRepeatParams &p)                                                                               \
    {                                                                                                                           \
        static_assert(CHECK, #NAME ": type");                                                                                    \
        const char *who = #NAME "/strided";                                                                                      \
        Lanewise<T, T, T>(who, d, SideOf(d, p.dstBlkStride, p.dstRepStride, who), 0, true, uint32_t(mask), repeats,              \
                          [](T old, T x, T y) { (void)old; return static_cast<T>(EXPRESSION); }, std::index_sequence<0, 1>(),                     \
                          std::pair<const LocalTensor<T> *, Side>(&a, SideOf(a, p.src0BlkStride, p.src0RepStride, who)),                         \
                          std::pair<const LocalTensor<T> *, Side>(&b, SideOf(b, p.src1BlkStride, p.src1RepStride, who)));        \
    }

ASC_BINARY(Add, kArithmetic<T>, W(x) + W(y))
ASC_BINARY(Sub, kArithmetic<T>, W(x) - W(y))
ASC_BINARY(Mul, kArithmetic<T>, W(x) * W(y))
ASC_BINARY(Div, (kIsOf<T, half, float>), Plain(x) / Plain(y))
ASC_BINARY(Max, kArithmetic<T>, Plain(x) > Plain(y) ? x : y)
ASC_BINARY(Min, kArithmetic<T>, Plain(x) < Plain(y) ? x : y)
ASC_BINARY(And, (kIsOf<T, int16_t, uint16_t>), x & y)
ASC_BINARY(Or, (kIsOf<T, int16_t, uint16_t>), x | y)
ASC_BINARY(FusedMulAdd, (kIsOf<T, half, float>), std::fma(Plain(x), Plain(old), Plain(y)))

#define ASC_UNARY(NAME, CHECK, EXPRESSION)                                                                                      \
    template <typename T>                                                                                                       \
    inline void NAME(const LocalTensor<T> &d, const LocalTensor<T> &a, const int32_t &count)                                     \
    {                                                                                                                           \
        static_assert(CHECK, #NAME ": type");                                                                                    \
        const char *who = #NAME;                                                                                                 \
        Lanewise<T, T>(who, d, SideOf(d, 1, 8, who), count, false, 0, 0, [](T, T x) { return static_cast<T>(EXPRESSION); },          \
                       std::index_sequence<0>(), std::pair<const LocalTensor<T> *, Side>(&a, SideOf(a, 1, 8, who)));             \
    }                                                                                                                           \
    template <typename T, bool isSetMask = true>                                                                                \
    inline void NAME(const LocalTensor<T> &d, const LocalTensor<T> &a, uint64_t mask, const uint8_t repeats, const UnaryRepeatParams &p) \
    {                                                                                                                           \
        static_assert(CHECK, #NAME ": type");                                                                                    \
        const char *who = #NAME "/strided";                                                                                      \
        Lanewise<T, T>(who, d, SideOf(d, p.dstBlkStride, p.dstRepStride, who), 0, true, uint32_t(mask), repeats,                 \
                       [](T, T x) { return static_cast<T>(EXPRESSION); }, std::index_sequence<0>(),                               \
                       std::pair<const LocalTensor<T> *, Side>(&a, SideOf(a, p.srcBlkStride, p.srcRepStride, who)));             \
    }

ASC_UNARY(Abs, (kIsOf<T, half, float>), std::fabs(Plain(x)))
ASC_UNARY(Exp, (kIsOf<T, half, float>), std::exp(Plain(x)))
ASC_UNARY(Ln, (kIsOf<T, half, float>), std::log(Plain(x)))
ASC_UNARY(Sqrt, (kIsOf<T, half, float>), std::sqrt(Plain(x)))
ASC_UNARY(Not, (kIsOf<T, int16_t, uint16_t>), ~x)

#define ASC_SCALAR(NAME, CHECK, EXPRESSION)                                                                                     \
    template <typename T, bool isSetMask = true>                                                                                \
    inline void NAME(const LocalTensor<T> &d, const LocalTensor<T> &a, const T &scalar, const int32_t &count)                    \
    {                                                                                                                           \
        static_assert(CHECK, #NAME ": type");                                                                                    \
        const char *who = #NAME;                                                                                                 \
        const T y = scalar;                                                                                                      \
        Lanewise<T, T>(who, d, SideOf(d, 1, 8, who), count, false, 0, 0, [y](T, T x) { return static_cast<T>(EXPRESSION); },          \
                       std::index_sequence<0>(), std::pair<const LocalTensor<T> *, Side>(&a, SideOf(a, 1, 8, who)));             \
    }                                                                                                                           \
    template <typename T, bool isSetMask = true>                                                                                \
    inline void NAME(const LocalTensor<T> &d, const LocalTensor<T> &a, const T &scalar, uint64_t mask, const uint8_t repeats,     \
                     const UnaryRepeatParams &p)                                                                                \
    {                                                                                                                           \
        static_assert(CHECK, #NAME ": type");                                                                                    \
        const char *who = #NAME "/strided";                                                                                      \
        const T y = scalar;                                                                                                      \
        Lanewise<T, T>(who, d, SideOf(d, p.dstBlkStride, p.dstRepStride, who), 0, true, uint32_t(mask), repeats,                 \
                       [y](T, T x) { return static_cast<T>(EXPRESSION); }, std::index_sequence<0>(),                              \
                       std::pair<const LocalTensor<T> *, Side>(&a, SideOf(a, p.srcBlkStride, p.srcRepStride, who)));             \
    }

template <typename T>
inline T ShiftedLeft(T x, T by)
{
    constexpr int bits = 8 * sizeof(T);
    if (by < T(0) || int64_t(by) > bits) {
        Fail("ShiftLeft by %lld", (long long)by);
    }
    if (std::is_unsigned_v<T>) {
        return int64_t(by) == bits ? T(0) : static_cast<T>(static_cast<uint64_t>(x) << by);
    }
    // arithmetic: the sign stays, the bits below it move
    const uint64_t sign = uint64_t(1) << (bits - 1), all = static_cast<uint64_t>(x);
    const uint64_t low = int64_t(by) >= bits ? 0 : (all & (sign - 1)) << by & (sign - 1);
    return static_cast<T>((all & sign) | low);
}
template <typename T>
inline T ShiftedRight(T x, T by)
{
    constexpr int bits = 8 * sizeof(T);
    if (by < T(0) || int64_t(by) > bits) {
        Fail("ShiftRight by %lld", (long long)by);
    }
    if (std::is_unsigned_v<T>) {
        return static_cast<T>(static_cast<uint64_t>(x) >> by);
    }
    return static_cast<T>(static_cast<int64_t>(x) >> by);
}
template <typename T>
constexpr bool kShifts = kIsOf<T, int16_t, uint16_t, int32_t, uint32_t>;

ASC_SCALAR(Adds, kArithmetic<T>, W(x) + W(y))
ASC_SCALAR(Muls, kArithmetic<T>, W(x) * W(y))
ASC_SCALAR(Maxs, kArithmetic<T>, Plain(x) > Plain(y) ? x : y)
ASC_SCALAR(Mins, kArithmetic<T>, Plain(x) < Plain(y) ? x : y)
ASC_SCALAR(ShiftLeft, kShifts<T>, ShiftedLeft(x, y))
ASC_SCALAR(ShiftRight, kShifts<T>, ShiftedRight(x, y))

template <typename T>
inline void Duplicate(const LocalTensor<T> &d, const T &scalar, const int32_t &count)
{
    static_assert(kIsOf<T, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float>, "Duplicate: type");
    const T value = scalar;
    Lanewise<T>("Duplicate", d, SideOf(d, 1, 8, "Duplicate"), count, false, 0, 0, [value](T) { return value; }, std::index_sequence<>());
}
template <typename T, bool isSetMask = true>
inline void Duplicate(const LocalTensor<T> &d, const T &scalar, uint64_t mask, const uint8_t repeats, const uint16_t block, const uint8_t repeat)
{
    static_assert(kIsOf<T, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float>, "Duplicate: type");
    const T value = scalar;
    Lanewise<T>("Duplicate/strided", d, SideOf(d, block, repeat, "Duplicate"), 0, true, uint32_t(mask), repeats, [value](T) { return value; },
                std::index_sequence<>());
}

template <typename T>
inline void CreateVecIndex(LocalTensor<T> d, const T &first, uint32_t count)
{
    static_assert(kArithmetic<T>, "CreateVecIndex: type");
    asc_host::Called("CreateVecIndex");
    d.In(asc_host::UB, "CreateVecIndex");
    d.Aligned(32, "CreateVecIndex");
    d.Inside(0, count);
    for (uint32_t i = 0; i < count; i++) {
        d.SetValue(i, static_cast<T>(first + static_cast<T>(i)));
    }
}

// ---- conversions -----------------------------------------------------------------------------------
inline double Rounded(double x, RoundMode mode)
{
    switch (mode) {
        case RoundMode::CAST_NONE: case RoundMode::CAST_RINT: return std::nearbyint(x);
        case RoundMode::CAST_FLOOR: return std::floor(x);
        case RoundMode::CAST_CEIL: return std::ceil(x);
        case RoundMode::CAST_ROUND: return std::round(x);
        case RoundMode::CAST_TRUNC: return std::trunc(x);
        default: Fail("round mode %d", int(mode));
    }
}
template <typename I>
inline I Saturated(double x)
{
    if (std::isnan(x)) {
        return 0;
    }
    const double low = static_cast<double>(std::numeric_limits<I>::min()), high = static_cast<double>(std::numeric_limits<I>::max());
    return x <= low ? std::numeric_limits<I>::min() : x >= high ? std::numeric_limits<I>::max() : static_cast<I>(x);
}
inline float Widened(bfloat16_t x)
{
    const uint32_t word = uint32_t(x.bits) << 16;
    float value;
    std::memcpy(&value, &word, 4);
    return value;
}
inline bfloat16_t Narrowed(float x)
{
    uint32_t word;
    std::memcpy(&word, &x, 4);
    if (std::isnan(x)) {
        return {0x7fc0};
    }
    return {static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16)};
}
constexpr unsigned kNone = 1, kInteger = 2, kOdd = 4;  // CAST_NONE; the five roundings
template <typename D, typename S>
constexpr unsigned Modes()
{
    if (kIsOf<S, int8_t, uint8_t>) return kIsOf<D, half> ? kNone : 0;
    if (kIsOf<S, int16_t>) return kIsOf<D, half> ? kNone | kInteger : kIsOf<D, float> ? kNone : 0;
    if (kIsOf<S, half>) return kIsOf<D, int8_t, uint8_t> ? kNone | kInteger : kIsOf<D, int16_t, int32_t> ? kInteger : kIsOf<D, float> ? kNone : 0;
    if (kIsOf<S, bfloat16_t>) return kIsOf<D, int32_t> ? kInteger : kIsOf<D, float> ? kNone : 0;
    if (kIsOf<S, int32_t>) return kIsOf<D, int16_t, int64_t> ? kNone : kIsOf<D, float> ? kNone | kInteger : 0;
    if (kIsOf<S, float>) return kIsOf<D, half> ? kNone | kInteger | kOdd : kIsOf<D, int16_t, bfloat16_t, int32_t, float, int64_t> ? kInteger : 0;
    if (kIsOf<S, int64_t>) return kIsOf<D, int32_t> ? kNone : kIsOf<D, float> ? kInteger : 0;
    return 0;
}
template <typename D, typename S>
inline D Converted(S x, RoundMode mode)
{
    if constexpr (kIsOf<D, half, bfloat16_t, float> && kIsOf<S, half, float, bfloat16_t> && !(kIsOf<D, float> && kIsOf<S, float>)) {
        if (mode != RoundMode::CAST_NONE && mode != RoundMode::CAST_RINT) {
            Fail("float to float by round mode %d is not modelled", int(mode));
        }
        if constexpr (kIsOf<S, bfloat16_t>) {
            return Widened(x);
        } else if constexpr (kIsOf<D, bfloat16_t>) {
            return Narrowed(x);
        } else {
            return static_cast<D>(static_cast<float>(x));
        }
    } else if constexpr (kIsOf<D, float, half>) {
        if constexpr (std::is_floating_point_v<S>) {
            return static_cast<float>(Rounded(x, mode));
        } else {
            if (mode != RoundMode::CAST_NONE && mode != RoundMode::CAST_RINT) {
                Fail("integer to float by round mode %d is not modelled", int(mode));
            }
            return static_cast<D>(static_cast<float>(x));
        }
    } else {
        if constexpr (kIsOf<S, bfloat16_t>) {
            return Saturated<D>(Rounded(Widened(x), mode));
        } else if constexpr (std::is_integral_v<S>) {
            return static_cast<D>(std::clamp<int64_t>(x, std::numeric_limits<D>::min(), std::numeric_limits<D>::max()));
        } else {
            const double value = static_cast<double>(static_cast<float>(x));
            if (kIsOf<D, uint8_t> && value < 0) {
                Fail("half to uint8_t of the negative %g", value);
            }
            return Saturated<D>(Rounded(value, mode));
        }
    }
}
template <typename D, typename S>
inline void CheckMode(RoundMode mode)
{
    static_assert(Modes<D, S>() != 0, "Cast: no such conversion");
    const unsigned needed = mode == RoundMode::CAST_NONE ? kNone : mode == RoundMode::CAST_ODD ? kOdd : kInteger;
    if ((Modes<D, S>() & needed) == 0) {
        Fail("Cast: round mode %d for %s", int(mode), __PRETTY_FUNCTION__);
    }
}
template <typename D, typename S>
inline void Cast(const LocalTensor<D> &d, const LocalTensor<S> &a, const RoundMode &mode, const uint32_t count)
{
    CheckMode<D, S>(mode);
    constexpr uint32_t widest = std::max(sizeof(D), sizeof(S));
    const RoundMode m = mode;
    Lanewise<D, S>("Cast", d, SideOf(d, 1, 8 * sizeof(D) / widest, "Cast"), count, false, 0, 0, [m](D, S x) { return Converted<D>(x, m); },
                   std::index_sequence<0>(), std::pair<const LocalTensor<S> *, Side>(&a, SideOf(a, 1, 8 * sizeof(S) / widest, "Cast")));
}

// ---- comparison, selection -------------------------------------------------------------------------
template <typename T>
inline bool Holds(T a, T b, CMPMODE mode)
{
    const auto x = Plain(a), y = Plain(b);
    switch (mode) {
        case CMPMODE::LT: return x < y;
        case CMPMODE::GT: return x > y;
        case CMPMODE::EQ: return x == y;
        case CMPMODE::LE: return x <= y;
        case CMPMODE::GE: return x >= y;
        default: return x != y;
    }
}
template <typename T, typename U, typename Other>
inline void Compared(const char *who, const LocalTensor<U> &d, const LocalTensor<T> &a, CMPMODE mode, uint32_t count, Other other)
{
    asc_host::Called(who);
    d.In(asc_host::UB, who);
    d.Aligned(32, who);
    a.In(asc_host::UB, who);
    a.Aligned(32, who);
    a.Inside(0, count);
    d.Inside(0, count / 8);
    if (count * sizeof(T) % 256 != 0) {
        Fail("%s: %u elements are no multiple of 256 B", who, count);
    }
    if (kIsOf<T, int32_t> && mode != CMPMODE::EQ) {
        Fail("%s: mode %d on int32_t", who, int(mode));
    }
    if (d.Address() < a.Address() + count * sizeof(T) && a.Address() < d.Address() + count / 8) {
        Fail("%s: result in its operand", who);
    }
    for (uint32_t i = 0; i < count; i += 8) {
        uint8_t bits = 0;
        for (uint32_t k = 0; k < 8; k++) {
            bits = static_cast<uint8_t>(bits | (Holds(a.GetValue(i + k), other(i + k), mode) ? 1 << k : 0));
        }
        d.data[i / 8] = bits;
    }
}
template <typename T, typename U>
inline void Compare(const LocalTensor<U> &d, const LocalTensor<T> &a, const LocalTensor<T> &b, CMPMODE mode, uint32_t count)
{
    static_assert(kIsOf<T, half, float, int32_t> && kIsOf<U, int8_t, uint8_t>, "Compare: type");
    b.In(asc_host::UB, "Compare");
    b.Aligned(32, "Compare");
    b.Inside(0, count);
    Compared("Compare", d, a, mode, count, [&](uint32_t i) { return b.GetValue(i); });
}
template <typename T, typename U>
inline void CompareScalar(const LocalTensor<U> &d, const LocalTensor<T> &a, const T scalar, CMPMODE mode, uint32_t count)
{
    static_assert(kIsOf<T, half, float, int32_t> && kIsOf<U, uint8_t>, "CompareScalar: type");
    Compared("CompareScalar", d, a, mode, count, [&](uint32_t) { return scalar; });
}
template <typename T, typename U, typename Other>
inline void Selected(const LocalTensor<T> &d, const LocalTensor<U> &mask, const LocalTensor<T> &a, uint32_t count, Other other)
{
    static_assert(kIsOf<T, half, float> && kIsOf<U, uint8_t, uint16_t, uint32_t, uint64_t>, "Select: type");
    mask.In(asc_host::UB, "Select");
    mask.Aligned(32, "Select");
    LocalTensor<uint8_t>{mask.position, mask.data, mask.bytes}.Inside(0, (count + 7) / 8);
    a.Aligned(32, "Select");
    d.Aligned(32, "Select");
    a.Inside(0, count);
    d.Inside(0, count);
    for (uint32_t i = 0; i < count; i++) {
        d.SetValue(i, mask.data[i / 8] >> i % 8 & 1 ? a.GetValue(i) : other(i));
    }
}
template <typename T, typename U>
inline void Select(const LocalTensor<T> &d, const LocalTensor<U> &mask, const LocalTensor<T> &a, T scalar, SELMODE mode, uint32_t count)
{
    asc_host::Called("Select/scalar");
    if (mode != SELMODE::VSEL_TENSOR_SCALAR_MODE) {
        Fail("Select: mode %d with a scalar", int(mode));
    }
    Selected(d, mask, a, count, [&](uint32_t) { return scalar; });
}
template <typename T, typename U>
inline void Select(const LocalTensor<T> &d, const LocalTensor<U> &mask, const LocalTensor<T> &a, const LocalTensor<T> &b, SELMODE mode, uint32_t count)
{
    asc_host::Called("Select/tensor");
    if (mode != SELMODE::VSEL_TENSOR_TENSOR_MODE) {
        Fail("Select: mode %d with tensors is not modelled", int(mode));
    }
    b.Aligned(32, "Select");
    b.Inside(0, count);
    Selected(d, mask, a, count, [&](uint32_t i) { return b.GetValue(i); });
}

// ---- reductions, rearrangement ---------------------------------------------------------------------
template <typename T, typename F>
inline void Whole(const char *who, const LocalTensor<T> &d, const LocalTensor<T> &a, int32_t mask, int32_t repeats, int32_t dstRep, int32_t srcBlk,
                  int32_t srcRep, F fold)
{
    static_assert(kIsOf<T, half, float>, "WholeReduce: type");
    asc_host::Called(who);
    d.In(asc_host::UB, who);
    d.Aligned(sizeof(T), who);
    const Side s = SideOf(a, srcBlk, srcRep, who);
    if (repeats < 0 || repeats > 255 || mask < 0 || mask > int32_t(256 / sizeof(T))) {
        Fail("%s: %d repeats, mask %d", who, repeats, mask);
    }
    for (int32_t r = 0; r < repeats && mask > 0; r++) {
        Reach(a, s, r, mask, who);
        std::vector<float> values;
        for (int32_t lane = 0; lane < mask; lane++) {
            T v;
            std::memcpy(&v, asc_host::core->memory[asc_host::UB].data() + s.Lane(r, lane), sizeof(T));
            values.push_back(static_cast<float>(v));
        }
        while (values.size() > 1) {  // neighbours two by two
            std::vector<float> next;
            for (size_t i = 0; i < values.size(); i += 2) {
                next.push_back(i + 1 < values.size() ? fold(values[i], values[i + 1]) : values[i]);
            }
            values = next;
        }
        const uint64_t to = d.Address() + r * dstRep * sizeof(T), low = s.Lane(r, 0);
        if (to >= low && to < low + 256) {
            Fail("%s: result in its operand", who);
        }
        d.SetValue(r * dstRep, static_cast<T>(values[0]));
    }
}
template <typename T, bool isSetMask = true>
inline void WholeReduceSum(const LocalTensor<T> &d, const LocalTensor<T> &a, const int32_t mask, const int32_t repeats, const int32_t dstRep,
                           const int32_t srcBlk, const int32_t srcRep)
{
    Whole("WholeReduceSum", d, a, mask, repeats, dstRep, srcBlk, srcRep, [](float x, float y) { return x + y; });
}
inline void OnlyValue(ReduceOrder order)
{
    if (order != ReduceOrder::ORDER_ONLY_VALUE) {
        Fail("WholeReduceMax/Min: order %d is not modelled", int(order));
    }
}
template <typename T, bool isSetMask = true>
inline void WholeReduceMax(const LocalTensor<T> &d, const LocalTensor<T> &a, const int32_t mask, const int32_t repeats, const int32_t dstRep,
                           const int32_t srcBlk, const int32_t srcRep, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX)
{
    OnlyValue(order);
    Whole("WholeReduceMax", d, a, mask, repeats, dstRep, srcBlk, srcRep, [](float x, float y) { return x > y ? x : y; });
}
template <typename T, bool isSetMask = true>
inline void WholeReduceMin(const LocalTensor<T> &d, const LocalTensor<T> &a, const int32_t mask, const int32_t repeats, const int32_t dstRep,
                           const int32_t srcBlk, const int32_t srcRep, ReduceOrder order = ReduceOrder::ORDER_VALUE_INDEX)
{
    OnlyValue(order);
    Whole("WholeReduceMin", d, a, mask, repeats, dstRep, srcBlk, srcRep, [](float x, float y) { return x < y ? x : y; });
}

template <typename T>
inline void Brcb(const LocalTensor<T> &d, const LocalTensor<T> &a, const uint8_t repeats, const BrcbRepeatParams &p)
{
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Brcb: type");
    asc_host::Called("Brcb");
    d.In(asc_host::UB, "Brcb");
    d.Aligned(32, "Brcb");
    a.In(asc_host::UB, "Brcb");
    a.Aligned(32, "Brcb");
    a.Inside(0, 8u * repeats);
    if (p.dstBlkStride == 0) {
        Fail("Brcb: block stride 0");
    }
    constexpr uint32_t per = 32 / sizeof(T);
    if (repeats > 0 && d.Address() < a.Address() + 8u * repeats * sizeof(T) && a.Address() < d.Address() + 1) {
        Fail("Brcb: result in its operand");
    }
    for (uint32_t i = 0; i < 8u * repeats; i++) {
        const uint32_t at = (i / 8 * p.dstRepStride + i % 8 * p.dstBlkStride) * per;
        for (uint32_t k = 0; k < per; k++) {
            d.SetValue(at + k, a.GetValue(i));
        }
    }
}
template <typename T>
inline void Gather(const LocalTensor<T> &d, const LocalTensor<T> &a, const LocalTensor<uint32_t> &offsets, const uint32_t base, const uint32_t count)
{
    static_assert(kIsOf<T, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float>, "Gather: type");
    asc_host::Called("Gather");
    for (auto at : {d.Address(), a.Address(), offsets.Address()}) {
        if (at % 32 != 0) {
            Fail("Gather: unaligned");
        }
    }
    d.In(asc_host::UB, "Gather");
    a.In(asc_host::UB, "Gather");
    offsets.In(asc_host::UB, "Gather");
    d.Inside(0, count);
    offsets.Inside(0, count);
    std::vector<T> made(count);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t at = uint64_t(base) + offsets.GetValue(i);
        if (at % sizeof(T) != 0 || at + sizeof(T) > a.bytes) {
            Fail("Gather: offset %llu of a tensor of %u B", (unsigned long long)at, a.bytes);
        }
        std::memcpy(&made[i], a.data + at, sizeof(T));
    }
    if (d.data < a.data + a.bytes && a.data < d.data + count * sizeof(T)) {
        Fail("Gather: result in its operand");
    }
    std::memcpy(d.data, made.data(), count * sizeof(T));
}

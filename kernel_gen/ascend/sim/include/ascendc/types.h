// Element types, positions, pipes and parameter structs of the public Ascend C API.
#pragma once

#include "sim.h"

#define __aicore__
#define __global__
#define __gm__
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define GM_ADDR uint8_t *

using half = _Float16;

// Stored and converted only, as on the chip: arithmetic goes through float.
struct bfloat16_t {
    uint16_t bits;

    bfloat16_t() = default;
    explicit bfloat16_t(float value)
    {
        uint32_t word;
        __builtin_memcpy(&word, &value, 4);
        if ((word & 0x7fffffffu) > 0x7f800000u) {
            bits = static_cast<uint16_t>((word >> 16) | 0x40u);
        } else {
            bits = static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
        }
    }
    explicit operator float() const
    {
        uint32_t word = static_cast<uint32_t>(bits) << 16;
        float value;
        __builtin_memcpy(&value, &word, 4);
        return value;
    }
};

enum pipe_t {
    PIPE_S,
    PIPE_V,
    PIPE_M,
    PIPE_MTE1,
    PIPE_MTE2,
    PIPE_MTE3,
    PIPE_FIX,
    PIPE_ALL,
};

enum event_t {
    EVENT_ID0,
    EVENT_ID1,
    EVENT_ID2,
    EVENT_ID3,
    EVENT_ID4,
    EVENT_ID5,
    EVENT_ID6,
    EVENT_ID7
};

namespace AscendC
{

using TEventID = int8_t;

enum class TPosition : uint8_t {
    GM,
    A1,
    A2,
    B1,
    B2,
    C1,
    C2,
    CO1,
    CO2,
    VECIN,
    VECOUT,
    VECCALC,
    LCM = VECCALC,
    SPM,
    SHM = SPM,
    TSCM,
    C2PIPE2GM,
    C2PIPE2LOCAL,
    MAX,
};
using QuePosition = TPosition;

// The event from the first pipe to the second.
enum class HardEvent : uint8_t {
    MTE2_MTE1,
    MTE1_MTE2,
    MTE1_M,
    M_MTE1,
    MTE2_V,
    V_MTE2,
    MTE3_V,
    V_MTE3,
    M_V,
    V_M,
    V_V,
    MTE3_MTE1,
    MTE1_MTE3,
    MTE1_V,
    MTE2_M,
    M_MTE2,
    V_MTE1,
    M_FIX,
    FIX_M,
    MTE3_MTE2,
    MTE2_MTE3,
    S_V,
    V_S,
    S_MTE2,
    MTE2_S,
    S_MTE3,
    MTE3_S,
    MTE2_FIX,
    FIX_MTE2,
    FIX_S,
    S_FIX,
    M_S,
    S_M,
    FIX_MTE3,
    MTE3_FIX,
    MTE1_FIX,
    FIX_MTE1,
    FIX_FIX,
    MTE1_S,
    S_MTE1,
    FIX_V,
    MAX,
};

enum class RoundMode : uint8_t {
    CAST_NONE,
    CAST_RINT,
    CAST_FLOOR,
    CAST_CEIL,
    CAST_ROUND,
    CAST_TRUNC,
    CAST_ODD,
};

enum class CMPMODE : uint8_t { LT, GT, EQ, LE, GE, NE };

enum class SELMODE : uint8_t {
    VSEL_CMPMASK_SPR,
    VSEL_TENSOR_SCALAR_MODE,
    VSEL_TENSOR_TENSOR_MODE,
};

enum class ReduceOrder : uint8_t {
    ORDER_VALUE_INDEX,
    ORDER_INDEX_VALUE,
    ORDER_ONLY_VALUE,
    ORDER_ONLY_INDEX,
};

enum class MaskMode : uint8_t { NORMAL, COUNTER };

constexpr int32_t ONE_BLK_SIZE = 32;
constexpr int32_t DEFAULT_BLK_NUM = 8;
constexpr int32_t DEFAULT_BLK_STRIDE = 1;
constexpr int32_t DEFAULT_REPEAT_STRIDE = 8;
constexpr int32_t ONE_REPEAT_BYTE_SIZE = 256;
constexpr uint64_t MASK_PLACEHOLDER = 0;
constexpr uint64_t MASK_PLACEHOLDER_LIST[2] = {0, 0};

struct BinaryRepeatParams {
    BinaryRepeatParams() = default;
    BinaryRepeatParams(uint8_t dstBlk, uint8_t src0Blk, uint8_t src1Blk, uint8_t dstRep,
                       uint8_t src0Rep, uint8_t src1Rep)
        : dstBlkStride(dstBlk), src0BlkStride(src0Blk), src1BlkStride(src1Blk),
          dstRepStride(dstRep), src0RepStride(src0Rep), src1RepStride(src1Rep)
    {
    }
    uint32_t blockNumber = DEFAULT_BLK_NUM;
    uint8_t dstBlkStride = DEFAULT_BLK_STRIDE;
    uint8_t src0BlkStride = DEFAULT_BLK_STRIDE;
    uint8_t src1BlkStride = DEFAULT_BLK_STRIDE;
    uint8_t dstRepStride = DEFAULT_REPEAT_STRIDE;
    uint8_t src0RepStride = DEFAULT_REPEAT_STRIDE;
    uint8_t src1RepStride = DEFAULT_REPEAT_STRIDE;
};

struct UnaryRepeatParams {
    UnaryRepeatParams() = default;
    UnaryRepeatParams(uint16_t dstBlk, uint16_t srcBlk, uint8_t dstRep, uint8_t srcRep)
        : dstBlkStride(dstBlk), srcBlkStride(srcBlk), dstRepStride(dstRep), srcRepStride(srcRep)
    {
    }
    uint32_t blockNumber = DEFAULT_BLK_NUM;
    uint16_t dstBlkStride = DEFAULT_BLK_STRIDE;
    uint16_t srcBlkStride = DEFAULT_BLK_STRIDE;
    uint8_t dstRepStride = DEFAULT_REPEAT_STRIDE;
    uint8_t srcRepStride = DEFAULT_REPEAT_STRIDE;
};

// Lengths and gaps in blocks of 32 B (DataCopy) or, for DataCopyPad, bytes in GM.
struct DataCopyParams {
    DataCopyParams() = default;
    DataCopyParams(uint16_t count, uint16_t length, uint16_t srcGap, uint16_t dstGap)
        : blockCount(count), blockLen(length), srcStride(srcGap), dstStride(dstGap)
    {
    }
    uint16_t blockCount = 1;
    uint16_t blockLen = 0;
    uint16_t srcStride = 0;
    uint16_t dstStride = 0;
};

struct DataCopyExtParams {
    DataCopyExtParams() = default;
    DataCopyExtParams(uint16_t count, uint32_t length, uint32_t srcGap, uint32_t dstGap,
                      uint32_t reserved)
        : blockCount(count), blockLen(length), srcStride(srcGap), dstStride(dstGap), rsv(reserved)
    {
    }
    uint16_t blockCount = 1;
    uint32_t blockLen = 0;
    uint32_t srcStride = 0;
    uint32_t dstStride = 0;
    uint32_t rsv = 0;
};

struct DataCopyPadParams {
    DataCopyPadParams() = default;
    DataCopyPadParams(bool pad, uint8_t left, uint8_t right, uint64_t value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value)
    {
    }
    bool isPad = false;
    uint8_t leftPadding = 0;
    uint8_t rightPadding = 0;
    uint64_t paddingValue = 0;
};

template <typename T>
struct DataCopyPadExtParams {
    DataCopyPadExtParams() = default;
    DataCopyPadExtParams(bool pad, uint8_t left, uint8_t right, T value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value)
    {
    }
    bool isPad = false;
    uint8_t leftPadding = 0;
    uint8_t rightPadding = 0;
    T paddingValue{};
};

}  // namespace AscendC

namespace gafsim
{

template <typename T>
struct TypeOf;
template <>
struct TypeOf<half> {
    static constexpr Type value = Type::F16;
};
template <>
struct TypeOf<bfloat16_t> {
    static constexpr Type value = Type::BF16;
};
template <>
struct TypeOf<float> {
    static constexpr Type value = Type::F32;
};
template <>
struct TypeOf<int8_t> {
    static constexpr Type value = Type::I8;
};
template <>
struct TypeOf<uint8_t> {
    static constexpr Type value = Type::U8;
};
template <>
struct TypeOf<bool> {
    static constexpr Type value = Type::U8;
};
template <>
struct TypeOf<int16_t> {
    static constexpr Type value = Type::I16;
};
template <>
struct TypeOf<uint16_t> {
    static constexpr Type value = Type::U16;
};
template <>
struct TypeOf<int32_t> {
    static constexpr Type value = Type::I32;
};
template <>
struct TypeOf<uint32_t> {
    static constexpr Type value = Type::U32;
};
template <>
struct TypeOf<int64_t> {
    static constexpr Type value = Type::I64;
};
template <>
struct TypeOf<uint64_t> {
    static constexpr Type value = Type::U64;
};

template <typename T, typename... Allowed>
constexpr bool kIsOneOf = (__is_same(T, Allowed) || ...);

constexpr Memory MemoryOf(AscendC::TPosition position)
{
    using P = AscendC::TPosition;
    switch (position) {
        case P::A1:
        case P::B1:
        case P::C1:
        case P::TSCM: return Memory::L1;
        case P::A2: return Memory::L0A;
        case P::B2: return Memory::L0B;
        case P::C2: return Memory::BT;
        case P::C2PIPE2GM: return Memory::FB;
        case P::CO1: return Memory::L0C;
        case P::GM:
        case P::CO2: return Memory::GM;
        default: return Memory::UB;
    }
}

template <AscendC::TPosition position>
constexpr Memory kMemoryOf = MemoryOf(position);

struct PipePair {
    Pipe from;
    Pipe to;
};

constexpr PipePair PipesOf(AscendC::HardEvent event)
{
    using E = AscendC::HardEvent;
    constexpr Pipe S = Pipe::S, V = Pipe::V, M = Pipe::M, MTE1 = Pipe::MTE1, MTE2 = Pipe::MTE2,
                   MTE3 = Pipe::MTE3, FIX = Pipe::FIX;
    switch (event) {
        case E::MTE2_MTE1: return {MTE2, MTE1};
        case E::MTE1_MTE2: return {MTE1, MTE2};
        case E::MTE1_M: return {MTE1, M};
        case E::M_MTE1: return {M, MTE1};
        case E::MTE2_V: return {MTE2, V};
        case E::V_MTE2: return {V, MTE2};
        case E::MTE3_V: return {MTE3, V};
        case E::V_MTE3: return {V, MTE3};
        case E::M_V: return {M, V};
        case E::V_M: return {V, M};
        case E::V_V: return {V, V};
        case E::MTE3_MTE1: return {MTE3, MTE1};
        case E::MTE1_MTE3: return {MTE1, MTE3};
        case E::MTE1_V: return {MTE1, V};
        case E::MTE2_M: return {MTE2, M};
        case E::M_MTE2: return {M, MTE2};
        case E::V_MTE1: return {V, MTE1};
        case E::M_FIX: return {M, FIX};
        case E::FIX_M: return {FIX, M};
        case E::MTE3_MTE2: return {MTE3, MTE2};
        case E::MTE2_MTE3: return {MTE2, MTE3};
        case E::S_V: return {S, V};
        case E::V_S: return {V, S};
        case E::S_MTE2: return {S, MTE2};
        case E::MTE2_S: return {MTE2, S};
        case E::S_MTE3: return {S, MTE3};
        case E::MTE3_S: return {MTE3, S};
        case E::MTE2_FIX: return {MTE2, FIX};
        case E::FIX_MTE2: return {FIX, MTE2};
        case E::FIX_S: return {FIX, S};
        case E::S_FIX: return {S, FIX};
        case E::M_S: return {M, S};
        case E::S_M: return {S, M};
        case E::FIX_MTE3: return {FIX, MTE3};
        case E::MTE3_FIX: return {MTE3, FIX};
        case E::MTE1_FIX: return {MTE1, FIX};
        case E::FIX_MTE1: return {FIX, MTE1};
        case E::FIX_FIX: return {FIX, FIX};
        case E::MTE1_S: return {MTE1, S};
        case E::S_MTE1: return {S, MTE1};
        case E::FIX_V: return {FIX, V};
        default: return {S, S};
    }
}

}  // namespace gafsim

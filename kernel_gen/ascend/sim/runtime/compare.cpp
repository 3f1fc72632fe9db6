// Comparisons to bits, selection by bits, and the ramp of lane indices.

#include <algorithm>
#include <cstring>

#include "arithmetic.h"
#include "lanes.h"

namespace gafsim
{

namespace
{

enum Mode { kLess, kGreater, kEqual, kLessEqual, kGreaterEqual, kNotEqual };

template <typename T>
bool Holds(int mode, T a, T b)
{
    switch (mode) {
        case kLess: return a < b;
        case kGreater: return a > b;
        case kEqual: return a == b;
        case kLessEqual: return a <= b;
        case kGreaterEqual: return a >= b;
        default: return a != b;
    }
}

int32_t LoadInt(const uint8_t *at)
{
    int32_t value;
    std::memcpy(&value, at, 4);
    return value;
}

// Lane numbers of a run, counted over all repeats with every lane in its place.
uint64_t FirstLane(const Vector &v, const Run &run, uint32_t size, uint64_t index)
{
    if (v.lanes.counted) {
        return index;
    }
    const uint64_t per_repeat = kRepeatBytes / size;
    const uint64_t pitch = uint64_t{v.src_stride[0].repeat} * kBlockBytes;
    const uint64_t block = uint64_t{v.src_stride[0].block} * kBlockBytes;
    const uint64_t repeat = pitch == 0 ? 0 : run.src[0] / pitch;
    const uint64_t rest = run.src[0] - repeat * pitch;
    const uint64_t in_block = block == 0 ? 0 : rest / block;
    return repeat * per_repeat + in_block * (kBlockBytes / size) + (rest - in_block * block) / size;
}

void PutBit(uint8_t *bits, uint64_t lane, bool value)
{
    const uint8_t one = static_cast<uint8_t>(1u << (lane % 8));
    bits[lane / 8] = static_cast<uint8_t>(value ? bits[lane / 8] | one : bits[lane / 8] & ~one);
}

bool GetBit(const uint8_t *bits, uint64_t lane)
{
    return (bits[lane / 8] >> (lane % 8)) & 1;
}

// The sources' part of a comparison or selection.
bool TouchSources(Instruction &instruction, const Vector &v, const std::vector<Run> &runs)
{
    for (int i = 0; i < v.sources; ++i) {
        const uint32_t size = SizeOf(v.src[i].type);
        if (!instruction.Legal(v.src[i], v.src[i].at, v.src[i].at, kBlockBytes)) {
            return false;
        }
        for (const Run &run : runs) {
            if (!Reads(instruction, v.src[i], v.src[i].at + run.src[i], run.lanes * size, 1)) {
                return false;
            }
        }
    }
    return true;
}

bool ValidComparison(const Vector &v, Where where)
{
    const uint32_t size = SizeOf(v.src[0].type);
    if (v.lanes.counted && v.lanes.count * size % kRepeatBytes != 0) {
        Sim().Fail("compare-count", where,
                   Format("%s of %llu elements: they must fill whole 256 B", NameOf(v.op),
                          static_cast<unsigned long long>(v.lanes.count)));
        return false;
    }
    if (v.src[0].type == Type::I32 && v.variant != kEqual) {
        Sim().Fail("unsupported-type", where,
                   Format("%s of int32_t: the chip compares for equality only", NameOf(v.op)));
        return false;
    }
    return true;
}

}  // namespace

void CompareLanes(const Vector &v, Where where)
{
    Simulation &sim = Sim();
    const uint32_t size = SizeOf(v.src[0].type);
    if (!ValidComparison(v, where) || !ValidLanes(v, size, where)) {
        return;
    }
    Vector lanes = v;
    lanes.dst = v.src[0];
    lanes.dst_stride = v.src_stride[0];
    const std::vector<Run> runs = RunsOf(lanes, size);
    if (runs.empty()) {
        return;
    }
    Instruction instruction(v.op, Pipe::V, where);
    const uint64_t bytes = static_cast<uint64_t>(RepeatsOf(v, size)) * (kRepeatBytes / size / 8);
    if (sim.function &&
        (!TouchSources(instruction, v, runs) || !Writes(instruction, v.dst, v.dst.at, bytes))) {
        return;
    }
    if (sim.function) {
        Core &core = instruction.core();
        uint8_t *dst = BytesAt(core, v.dst);
        const uint8_t *a = BytesAt(core, v.src[0]);
        const uint8_t *b = v.sources > 1 ? BytesAt(core, v.src[1]) : nullptr;
        uint64_t index = 0;
        for (const Run &run : runs) {
            const uint64_t first = FirstLane(v, run, size, index);
            for (uint64_t i = 0; i < run.lanes; ++i) {
                const uint8_t *left = a + run.src[0] + i * size;
                const uint8_t *right = b == nullptr ? nullptr : b + run.src[1] + i * size;
                const bool holds =
                    v.src[0].type == Type::I32
                        ? Holds(v.variant, LoadInt(left),
                                right ? LoadInt(right) : static_cast<int32_t>(v.scalar))
                        : Holds(v.variant, LoadLane(v.src[0].type, left),
                                right ? LoadLane(v.src[0].type, right)
                                      : static_cast<float>(v.scalar));
                PutBit(dst, first + i, holds);
            }
            index += run.lanes;
        }
    }
    Price(instruction, lanes, size);
}

void SelectLanes(const Vector &v, const Operand &mask, Where where)
{
    Simulation &sim = Sim();
    const uint32_t size = SizeOf(v.dst.type);
    const std::vector<Run> runs = RunsOf(v, size);
    if (runs.empty() || !ValidLanes(v, size, where)) {
        return;
    }
    Instruction instruction(v.op, Pipe::V, where);
    const uint64_t per_repeat = kRepeatBytes / size;
    const bool repeats_mask = v.variant == 0;
    const uint64_t lanes =
        v.lanes.counted ? v.lanes.count : static_cast<uint64_t>(RepeatsOf(v, size)) * per_repeat;
    const uint64_t bytes = (repeats_mask ? std::min(lanes, per_repeat) + 7 : lanes + 7) / 8;
    if (sim.function &&
        (!Reads(instruction, mask, mask.at, bytes) || !Touches(instruction, v, runs))) {
        return;
    }
    if (sim.function) {
        Core &core = instruction.core();
        uint8_t *dst = BytesAt(core, v.dst);
        const uint8_t *bits = BytesAt(core, mask);
        const uint8_t *a = BytesAt(core, v.src[0]);
        const uint8_t *b = v.sources > 1 ? BytesAt(core, v.src[1]) : nullptr;
        uint8_t scalar[4];
        StoreLane(v.dst.type, scalar, static_cast<float>(v.scalar));
        uint64_t index = 0;
        for (const Run &run : runs) {
            const uint64_t first = FirstLane(v, run, size, index);
            for (uint64_t i = 0; i < run.lanes; ++i) {
                const uint64_t lane = repeats_mask ? (first + i) % per_repeat : first + i;
                const uint8_t *from = GetBit(bits, lane) ? a + run.src[0] + i * size
                                      : b != nullptr     ? b + run.src[1] + i * size
                                                         : scalar;
                std::memcpy(dst + run.dst + i * size, from, size);
            }
            index += run.lanes;
        }
    }
    Price(instruction, v, size);
}

void FillIndex(const Vector &v, Where where)
{
    Simulation &sim = Sim();
    const uint32_t size = SizeOf(v.dst.type);
    const std::vector<Run> runs = RunsOf(v, size);
    if (runs.empty()) {
        return;
    }
    Instruction instruction(v.op, Pipe::V, where);
    if (sim.function && !Touches(instruction, v, runs)) {
        return;
    }
    if (sim.function) {
        uint8_t *dst = BytesAt(instruction.core(), v.dst);
        Vector as_source = v;
        as_source.src_stride[0] = v.dst_stride;
        uint64_t index = 0;
        for (Run run : runs) {
            run.src[0] = run.dst;
            const uint64_t first = FirstLane(as_source, run, size, index);
            for (uint64_t i = 0; i < run.lanes; ++i) {
                const double value = v.scalar + static_cast<double>(first + i);
                uint8_t *at = dst + run.dst + i * size;
                if (v.dst.type == Type::I32 || v.dst.type == Type::I16) {
                    const int64_t whole = static_cast<int64_t>(value);
                    std::memcpy(at, &whole, size);
                } else {
                    StoreLane(v.dst.type, at, static_cast<float>(value));
                }
            }
            index += run.lanes;
        }
    }
    Price(instruction, v, size);
}

}  // namespace gafsim

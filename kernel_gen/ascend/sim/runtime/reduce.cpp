// Reductions. Sums are binary trees over neighbouring lanes, rounded to the element type at every
// level, as the chip's documentation draws them.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lanes.h"

namespace gafsim
{

namespace
{

constexpr int kBlocks = 8;
enum Order { kValueIndex, kIndexValue, kOnlyValue, kOnlyIndex };

struct Best {
    float value = 0;
    uint32_t index = 0;
};

float Rounded(Type type, float value)
{
    return type == Type::F16 ? static_cast<float>(static_cast<_Float16>(value)) : value;
}

float Tree(Type type, std::vector<float> &values)
{
    if (values.empty()) {
        return 0;
    }
    size_t n = values.size();
    while (n > 1) {
        for (size_t i = 0; i < n / 2; ++i) {
            values[i] = Rounded(type, values[2 * i] + values[2 * i + 1]);
        }
        if (n % 2 == 1) {
            values[n / 2] = values[n - 1];
        }
        n = (n + 1) / 2;
    }
    return values[0];
}

// The first of equals. What a NaN gives is not documented: here it is the result where it comes
// first, and is passed over elsewhere.
Best Extreme(Fold fold, const std::vector<float> &values, const std::vector<uint32_t> &lanes)
{
    Best best{values[0], lanes[0]};
    for (size_t i = 1; i < values.size(); ++i) {
        const bool better = fold == Fold::Max ? values[i] > best.value : values[i] < best.value;
        if (better) {
            best = {values[i], lanes[i]};
        }
    }
    return best;
}

void StoreIndex(Type type, uint8_t *at, uint32_t index)
{
    std::memcpy(at, &index, SizeOf(type));
}

// Bytes of one result, and where value and index lie in it (-1: not there).
struct Shape {
    uint32_t bytes;
    int value, index;
};

Shape ShapeOf(Type type, int order)
{
    const int size = static_cast<int>(SizeOf(type));
    switch (order) {
        case kValueIndex: return {2u * size, 0, size};
        case kIndexValue: return {2u * size, size, 0};
        case kOnlyIndex: return {4, -1, 0};
        default: return {static_cast<uint32_t>(size), 0, -1};
    }
}

// The active lanes of one repeat that belong to part `part` of `parts`.
struct Kept {
    std::vector<float> values;
    std::vector<uint32_t> lanes;
};

Kept Collect(const Vector &v, const uint8_t *src, const uint64_t mask[2], uint64_t repeat,
             uint32_t first, uint32_t count)
{
    const uint32_t size = SizeOf(v.src[0].type);
    const uint32_t per_block = kBlockBytes / size;
    Kept found;
    for (uint32_t lane = first; lane < first + count; ++lane) {
        if (((mask[lane / 64] >> (lane % 64)) & 1) == 0) {
            continue;
        }
        const uint64_t at = repeat * v.src_stride[0].repeat * kBlockBytes +
                            uint64_t{lane / per_block} * v.src_stride[0].block * kBlockBytes +
                            lane % per_block * size;
        found.values.push_back(LoadLane(v.src[0].type, src + at));
        found.lanes.push_back(lane);
    }
    return found;
}

void Store(Type type, uint8_t *dst, const Shape &shape, const Best &best, int order)
{
    if (shape.value >= 0) {
        StoreLane(type, dst + shape.value, best.value);
    }
    if (shape.index >= 0 && order == kOnlyIndex) {
        std::memcpy(dst, &best.index, 4);
    } else if (shape.index >= 0) {
        StoreIndex(type, dst + shape.index, best.index);
    }
}

// A reduction per repeat, block or pair, with the geometry of its results.
struct Folding {
    Fold fold;
    int order;
    Shape shape;
    uint32_t parts;  // results per repeat
    uint64_t pitch;  // bytes from repeat to repeat
    uint64_t repeats, align;
};

Folding FoldingOf(Fold fold, Scope scope, const Vector &v, int order)
{
    const uint32_t size = SizeOf(v.src[0].type);
    const uint32_t all = kRepeatBytes / size;
    Folding f{fold, order, ShapeOf(v.src[0].type, order), 1, 0, 0, 0};
    f.parts = scope == Scope::Repeat ? 1 : scope == Scope::Block ? kBlocks : all / 2;
    f.pitch = uint64_t{v.dst_stride.repeat} * f.shape.bytes * f.parts;
    f.repeats = static_cast<uint64_t>(RepeatsOf(v, size));
    f.align = scope == Scope::Repeat ? f.shape.bytes : scope == Scope::Block ? 8 * size : 32;
    return f;
}

bool TouchFolding(Instruction &instruction, const Vector &v, const Folding &f,
                  const std::vector<Run> &runs)
{
    const Operand &src = v.src[0];
    if (!instruction.Legal(src, src.at, src.at, kBlockBytes)) {
        return false;
    }
    for (const Run &run : runs) {
        if (!Reads(instruction, src, src.at + run.src[0], run.lanes * SizeOf(src.type), 1)) {
            return false;
        }
    }
    for (uint64_t r = 0; r < f.repeats; ++r) {
        const uint64_t bytes = uint64_t{f.shape.bytes} * f.parts;
        if (!Writes(instruction, v.dst, v.dst.at + r * f.pitch, bytes, f.align)) {
            return false;
        }
    }
    return true;
}

Best FoldLanes(Type type, Fold fold, Kept &found)
{
    Best best;
    if (fold == Fold::Sum) {
        best.value = Tree(type, found.values);
    } else if (!found.values.empty()) {
        best = Extreme(fold, found.values, found.lanes);
    } else {
        best.value = fold == Fold::Max ? -INFINITY : INFINITY;
    }
    return best;
}

void ComputeFolding(Core &core, const Vector &v, const Folding &f)
{
    const Type type = v.src[0].type;
    const uint64_t *mask = v.lanes.from_register ? core.mask : v.lanes.mask;
    const uint8_t *src = BytesAt(core, v.src[0]);
    uint8_t *dst = BytesAt(core, v.dst);
    const uint32_t width = kRepeatBytes / SizeOf(type) / f.parts;
    std::vector<Best> results;  // a result may overwrite lanes that a later repeat reads
    for (uint64_t r = 0; r < f.repeats; ++r) {
        for (uint32_t part = 0; part < f.parts; ++part) {
            Kept found = Collect(v, src, mask, r, part * width, width);
            results.push_back(FoldLanes(type, f.fold, found));
        }
    }
    for (uint64_t i = 0; i < results.size(); ++i) {
        const uint64_t at = i / f.parts * f.pitch + i % f.parts * f.shape.bytes;
        Store(type, dst + at, f.shape, results[i], f.order);
    }
}

// One sum per repeat, then the sums alike.
float SumAll(Type type, std::vector<float> values)
{
    const size_t per_repeat = kRepeatBytes / SizeOf(type);
    while (values.size() > 1) {
        std::vector<float> sums;
        for (size_t at = 0; at < values.size(); at += per_repeat) {
            const size_t end = std::min(values.size(), at + per_repeat);
            std::vector<float> part(values.begin() + static_cast<long>(at),
                                    values.begin() + static_cast<long>(end));
            sums.push_back(Tree(type, part));
        }
        values = std::move(sums);
    }
    return values[0];
}

}  // namespace

void Reduce(Op op, Fold fold, Scope scope, const Vector &v, int order, Where where)
{
    Simulation &sim = Sim();
    const uint32_t size = SizeOf(v.src[0].type);
    Vector lanes = v;
    lanes.dst = v.src[0];
    lanes.dst_stride = v.src_stride[0];
    const std::vector<Run> runs = RunsOf(lanes, size);
    if (runs.empty() || !ValidLanes(v, size, where)) {
        return;
    }
    Instruction instruction(op, Pipe::V, where);
    const Folding folding = FoldingOf(fold, scope, v, order);
    if (sim.function && !TouchFolding(instruction, v, folding, runs)) {
        return;
    }
    if (sim.function) {
        ComputeFolding(instruction.core(), v, folding);
    }
    Price(instruction, lanes, size);
}

void ReduceAll(Op op, Fold fold, const Vector &v, const Operand &scratch, bool with_index,
               Where where)
{
    Simulation &sim = Sim();
    const Type type = v.src[0].type;
    const uint32_t size = SizeOf(type);
    const uint64_t count = v.lanes.count;
    if (count == 0) {
        return;
    }
    Instruction instruction(op, Pipe::V, where);
    const uint64_t repeats = static_cast<uint64_t>(RepeatsOf(v, size));
    const uint64_t partials = repeats * size * (fold == Fold::Sum ? 1 : 2);
    const bool apart = scratch.at != v.src[0].at && scratch.at != v.dst.at;
    if (sim.function && (!Reads(instruction, v.src[0], v.src[0].at, count * size) ||
                      (apart && !Writes(instruction, scratch, scratch.at, partials)) ||
                      !Writes(instruction, v.dst, v.dst.at, with_index ? 2u * size : size, size))) {
        return;
    }
    if (sim.function) {
        const uint8_t *src = BytesAt(instruction.core(), v.src[0]);
        uint8_t *dst = BytesAt(instruction.core(), v.dst);
        Kept all;
        for (uint64_t i = 0; i < count; ++i) {
            all.values.push_back(LoadLane(type, src + i * size));
            all.lanes.push_back(static_cast<uint32_t>(i));
        }
        const Best best = fold == Fold::Sum ? Best{SumAll(type, std::move(all.values)), 0}
                                            : Extreme(fold, all.values, all.lanes);
        StoreLane(type, dst, best.value);
        if (with_index) {
            StoreIndex(type, dst + size, best.index);
        }
    }
    Price(instruction, v, size);
}

}  // namespace gafsim

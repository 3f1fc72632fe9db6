// Instructions that move lanes: spreading, gathering, transposing, sorting.

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "lanes.h"

namespace gafsim
{

namespace
{

constexpr uint32_t kPerRepeat = 8;

uint32_t Word(const uint8_t *at)
{
    uint32_t word;
    std::memcpy(&word, at, 4);
    return word;
}

void Charge(Instruction &instruction, Op op, double repeats)
{
    const Chip &chip = Sim().chip;
    const int i = static_cast<int>(op);
    instruction.Run(repeats * chip.repeat[i] + chip.fixed[i], chip.vector_start);
}

}  // namespace

void SpreadElements(const Operand &dst, const Operand &src, uint32_t repeats, Stride stride,
                    Where where)
{
    if (repeats == 0) {
        return;
    }
    Simulation &sim = Sim();
    Instruction instruction(Op::Brcb, Pipe::V, where);
    const uint32_t size = SizeOf(dst.type);
    const auto block_at = [&](uint32_t i) {
        return (uint64_t{i / kPerRepeat} * stride.repeat + i % kPerRepeat * stride.block) *
               kBlockBytes;
    };
    if (sim.function) {
        if (!Reads(instruction, src, src.at, uint64_t{repeats} * kPerRepeat * size)) {
            return;
        }
        for (uint32_t i = 0; i < repeats * kPerRepeat; ++i) {
            if (!Writes(instruction, dst, dst.at + block_at(i), kBlockBytes)) {
                return;
            }
        }
    }
    if (sim.function) {
        uint8_t *to = BytesAt(instruction.core(), dst);
        const uint8_t *from = BytesAt(instruction.core(), src);
        for (uint32_t i = 0; i < repeats * kPerRepeat; ++i) {
            for (uint32_t lane = 0; lane < kBlockBytes; lane += size) {
                std::memcpy(to + block_at(i) + lane, from + i * size, size);
            }
        }
    }
    Charge(instruction, Op::Brcb, repeats);
}

namespace
{

// The blocks of `source` that hold the elements at `places`, as stretches of bytes, where all of
// them are written; none otherwise.
std::vector<std::pair<uint64_t, uint64_t>> BlocksOf(const Core &core, const Operand &source,
                                                    const std::vector<uint64_t> &places)
{
    const Shadow &shadow = core.shadows[static_cast<int>(source.memory)];
    std::vector<bool> read((source.high - source.low) / kBlockBytes + 1);
    for (const uint64_t at : places) {
        read[(at - source.low) / kBlockBytes] = true;
    }
    std::vector<std::pair<uint64_t, uint64_t>> stretches;
    for (size_t first = 0; first < read.size(); ++first) {
        const size_t begin = first;
        while (first < read.size() && read[first]) {
            ++first;
        }
        const uint64_t low = source.low + begin * kBlockBytes;
        const uint64_t high = std::min(source.low + first * kBlockBytes, source.high);
        if (low < high && !shadow.Written(low, high)) {
            return {};
        }
        if (low < high) {
            stretches.emplace_back(low, high);
        }
    }
    return stretches;
}

// Reads whole blocks: element by element, what is known of a tile would fall into as many pieces.
// Where a block is written in part, its elements are looked at alone.
void ReadElements(Instruction &instruction, const Operand &source,
                  const std::vector<uint64_t> &places, uint32_t size)
{
    const auto stretches = BlocksOf(instruction.core(), source, places);
    for (const auto &[low, high] : stretches) {
        instruction.Read(source, low, high);
    }
    for (size_t i = 0; stretches.empty() && i < places.size(); ++i) {
        instruction.Read(source, places[i], places[i] + size);
    }
}

bool TouchGather(Instruction &instruction, const Vector &v, const Operand &offset, uint32_t base,
                 const std::vector<Run> &runs)
{
    const uint32_t size = SizeOf(v.dst.type);
    uint64_t total = 0;
    for (const Run &run : runs) {
        total += run.lanes;
    }
    if (!Reads(instruction, offset, offset.at, total * 4)) {
        return false;
    }
    const uint8_t *offsets = BytesAt(instruction.core(), offset);
    std::vector<uint64_t> places(total);
    for (uint64_t lane = 0; lane < total; ++lane) {
        places[lane] = v.src[0].at + base + Word(offsets + lane * 4);
        if (!instruction.Legal(v.src[0], places[lane], places[lane] + size, size)) {
            return false;
        }
    }
    ReadElements(instruction, v.src[0], places, size);
    for (const Run &run : runs) {
        if (!Writes(instruction, v.dst, v.dst.at + run.dst, run.lanes * size, size)) {
            return false;
        }
    }
    return true;
}

}  // namespace

void GatherElements(const Vector &v, const Operand &offset, uint32_t base, Where where)
{
    Simulation &sim = Sim();
    const uint32_t size = SizeOf(v.dst.type);
    Vector lanes = v;
    lanes.src[0] = v.dst;
    lanes.src_stride[0] = v.dst_stride;
    const std::vector<Run> runs = RunsOf(lanes, size);
    if (runs.empty()) {
        return;
    }
    Instruction instruction(Op::Gather, Pipe::V, where);
    if (sim.function && !TouchGather(instruction, v, offset, base, runs)) {
        return;
    }
    if (sim.function) {
        Core &core = instruction.core();
        const uint8_t *next = BytesAt(core, offset);
        const uint8_t *from = BytesAt(core, v.src[0]) + base;
        uint8_t *to = BytesAt(core, v.dst);
        for (const Run &run : runs) {
            for (uint64_t i = 0; i < run.lanes; ++i, next += 4) {
                std::memcpy(to + run.dst + i * size, from + Word(next), size);
            }
        }
    }
    Charge(instruction, Op::Gather, RepeatsOf(v, size));
}

void GatherBlocks(const Operand &dst, const Operand &src, const Operand &offset, uint32_t repeats,
                  Stride stride, Where where)
{
    if (repeats == 0) {
        return;
    }
    Simulation &sim = Sim();
    Instruction instruction(Op::Gatherb, Pipe::V, where);
    Core &core = instruction.core();
    const uint32_t blocks = repeats * kPerRepeat;
    if (sim.function && !Reads(instruction, offset, offset.at, uint64_t{blocks} * 4)) {
        return;
    }
    const uint8_t *offsets = BytesAt(core, offset);
    for (uint32_t i = 0; sim.function && i < blocks; ++i) {
        const uint64_t from = src.at + Word(offsets + i * 4);
        const uint64_t to =
            dst.at + (uint64_t{i / kPerRepeat} * stride.repeat + i % kPerRepeat * stride.block) *
                         kBlockBytes;
        if (!Reads(instruction, src, from, kBlockBytes) ||
            !Writes(instruction, dst, to, kBlockBytes)) {
            return;
        }
        uint8_t *bytes = core.bytes[static_cast<int>(Memory::UB)].data();
        std::memmove(bytes + to, bytes + from, kBlockBytes);
    }
    Charge(instruction, Op::Gatherb, repeats);
}

namespace
{

// 16 blocks as rows of a matrix, written transposed into 16 blocks.
void TransposeOnce(const BlockTranspose &t, uint8_t *const to[16], const uint8_t *const from[16])
{
    uint8_t copy[16][kBlockBytes];
    for (int i = 0; i < 16; ++i) {
        std::memcpy(copy[i], from[i], kBlockBytes);
    }
    switch (SizeOf(t.type)) {
        case 1:
            for (int i = 0; i < 16; ++i) {
                for (int j = 0; j < 16; ++j) {
                    to[i][j + (t.dst_high ? 16 : 0)] = copy[j][i + (t.src_high ? 16 : 0)];
                }
            }
            return;
        case 2:
            for (int i = 0; i < 16; ++i) {
                for (int j = 0; j < 16; ++j) {
                    std::memcpy(to[i] + 2 * j, copy[j] + 2 * i, 2);
                }
            }
            return;
        default:
            // 16 rows of 8 columns: a column is 16 elements, two blocks.
            for (int column = 0; column < 8; ++column) {
                for (int row = 0; row < 16; ++row) {
                    std::memcpy(to[2 * column + row / 8] + row % 8 * 4, copy[row] + column * 4, 4);
                }
            }
    }
}

}  // namespace

void TransposeBlocks(Op op, const uint64_t dst[16], const uint64_t src[16], const BlockTranspose &t,
                     Where where)
{
    if (t.repeats == 0) {
        return;
    }
    Simulation &sim = Sim();
    Instruction instruction(op, Pipe::V, where);
    Core &core = instruction.core();
    const uint64_t capacity = static_cast<uint64_t>(sim.chip.capacity[0]);
    const Operand ub{Memory::UB, t.type, 0, 0, capacity};
    const bool single = t.repeats == 1;
    for (uint32_t r = 0; sim.function && r < t.repeats; ++r) {
        // A single repeat already starts one stride further, as documented.
        const uint64_t step = single ? 1 : r;
        uint8_t *to[16];
        const uint8_t *from[16];
        for (int i = 0; i < 16; ++i) {
            const uint64_t at = src[i] + step * t.src_stride * kBlockBytes;
            if (!Reads(instruction, ub, at, kBlockBytes)) {
                return;
            }
            from[i] = core.bytes[0].data() + at;
        }
        for (int i = 0; i < 16; ++i) {
            const uint64_t at = dst[i] + step * t.dst_stride * kBlockBytes;
            if (!Writes(instruction, ub, at, kBlockBytes)) {
                return;
            }
            to[i] = core.bytes[0].data() + at;
        }
        if (sim.function) {
            TransposeOnce(t, to, from);
        }
    }
    Charge(instruction, op, t.repeats);
}

void BroadcastMatrix(const Operand &dst, const Operand &src, uint32_t rows, uint32_t columns,
                     int axis, Where where)
{
    Simulation &sim = Sim();
    Instruction instruction(Op::Broadcast, Pipe::V, where);
    const uint32_t size = SizeOf(dst.type);
    const uint64_t count = uint64_t{rows} * columns;
    if (sim.function &&
        (!Reads(instruction, src, src.at, uint64_t{axis == 0 ? columns : rows} * size) ||
         !Writes(instruction, dst, dst.at, count * size))) {
        return;
    }
    if (sim.function) {
        uint8_t *to = BytesAt(instruction.core(), dst);
        const uint8_t *from = BytesAt(instruction.core(), src);
        for (uint32_t row = 0; row < rows; ++row) {
            for (uint32_t column = 0; column < columns; ++column) {
                const uint64_t index = axis == 0 ? column : row;
                std::memcpy(to + (uint64_t{row} * columns + column) * size, from + index * size,
                            size);
            }
        }
    }
    Charge(instruction, Op::Broadcast,
           static_cast<double>((count * size + kRepeatBytes - 1) / kRepeatBytes));
}

void SortRuns(const Operand &dst, const Operand &src, const Operand &index, uint32_t repeats,
              Where where)
{
    if (repeats == 0) {
        return;
    }
    Simulation &sim = Sim();
    Instruction instruction(Op::Sort32, Pipe::V, where);
    const uint32_t size = SizeOf(src.type);
    const uint64_t count = uint64_t{repeats} * 32;
    if (sim.function && (!Reads(instruction, src, src.at, count * size) ||
                      !Reads(instruction, index, index.at, count * 4) ||
                      !Writes(instruction, dst, dst.at, count * 8))) {
        return;
    }
    if (sim.function) {
        Core &core = instruction.core();
        uint8_t *to = BytesAt(core, dst);
        const uint8_t *values = BytesAt(core, src);
        const uint8_t *indices = BytesAt(core, index);
        for (uint32_t r = 0; r < repeats; ++r) {
            uint32_t order[32];
            std::iota(order, order + 32, r * 32);
            std::stable_sort(order, order + 32, [&](uint32_t a, uint32_t b) {
                return LoadLane(src.type, values + a * size) >
                       LoadLane(src.type, values + b * size);
            });
            for (uint32_t i = 0; i < 32; ++i) {
                uint8_t *pair = to + (uint64_t{r} * 32 + i) * 8;
                std::memset(pair, 0, 8);
                std::memcpy(pair, values + order[i] * size, size);
                std::memcpy(pair + 4, indices + order[i] * 4, 4);
            }
        }
    }
    Charge(instruction, Op::Sort32, repeats);
}

}  // namespace gafsim

// Matrices in fractals of 512 B: from GM to L1, from L1 to L0.

#include <algorithm>
#include <cstring>

#include "lanes.h"

namespace gafsim
{

namespace
{

constexpr uint64_t kFractal = 512;
constexpr uint64_t kL0Align = 512;

struct Rate {
    double per_cycle, start;
};

Rate RateOf(Memory memory)
{
    const Chip &chip = Sim().chip;
    return memory == Memory::L0A ? Rate{chip.l0a_rate, chip.l0a_start}
                                 : Rate{chip.l0b_rate, chip.l0b_start};
}

// A fractal of 16 rows of 32 B, transposed as a matrix of 16 x 16 elements of 2 B.
void Transposed(uint8_t *to, const uint8_t *from)
{
    for (int row = 0; row < 16; ++row) {
        for (int column = 0; column < 16; ++column) {
            std::memcpy(to + (column * 16 + row) * 2, from + (row * 16 + column) * 2, 2);
        }
    }
}

// Two fractals that make a square (b8: on top of each other, b32: side by side), transposed.
void TransposedPair(uint32_t size, uint8_t *first, uint8_t *second, const uint8_t *from)
{
    const uint32_t side = size == 1 ? 32 : 16;
    uint8_t *const to[2] = {first, second};
    for (uint32_t row = 0; row < side; ++row) {
        for (uint32_t column = 0; column < side; ++column) {
            const uint64_t source = size == 1
                                        ? row * 32 + column
                                        : (column / 8) * kFractal + (row * 8 + column % 8) * 4;
            const uint32_t to_row = column, to_column = row;
            uint8_t *target = size == 1 ? to[to_row / 16] + to_row % 16 * 32 + to_column
                                        : to[to_column / 8] + (to_row * 8 + to_column % 8) * 4;
            std::memcpy(target, from + source, size);
        }
    }
}

}  // namespace

namespace
{

// Where the block of a row lies that holds the elements from `start` on.
uint64_t BlockAt(const Operand &dst, const NdToNz &p, uint32_t size, uint32_t matrix, uint32_t row,
                 uint32_t start)
{
    const uint32_t per_block = kBlockBytes / size;
    const uint64_t blocks =
        uint64_t{start / per_block} * p.c0_stride + uint64_t{row} * p.row_stride;
    return dst.at + matrix * p.dst_matrix * size + blocks * kBlockBytes;
}

// All blocks of a matrix: checked, and written. Blocks of rows that follow each other are one range.
bool WriteBlocks(Instruction &instruction, const Operand &dst, const NdToNz &p, uint32_t size,
                 uint32_t matrix)
{
    const uint32_t together = p.row_stride == 1 ? p.rows : 1;
    for (uint32_t start = 0; start < p.columns; start += kBlockBytes / size) {
        for (uint32_t row = 0; row < p.rows; row += together) {
            const uint64_t to = BlockAt(dst, p, size, matrix, row, start);
            if (!Writes(instruction, dst, to, uint64_t{together} * kBlockBytes)) {
                return false;
            }
        }
    }
    return true;
}

// One row of one matrix, from GM into the blocks of its fractals.
bool CopyRow(Instruction &instruction, const Operand &dst, const Operand &src, const NdToNz &p,
             uint32_t matrix, uint32_t row)
{
    const uint32_t size = SizeOf(src.type);
    const uint32_t per_block = kBlockBytes / size;
    const uint64_t from = src.at + (matrix * p.src_matrix + row * p.src_row) * size;
    if (!Reads(instruction, src, from, uint64_t{p.columns} * size, 1)) {
        return false;
    }
    const uint8_t *source = reinterpret_cast<const uint8_t *>(from);
    for (uint32_t start = 0; start < p.columns; start += per_block) {
        Operand target = dst;
        target.at = BlockAt(dst, p, size, matrix, row, start);
        uint8_t *place = BytesAt(instruction.core(), target);
        const uint64_t count = std::min<uint64_t>(per_block, p.columns - start);
        std::memset(place, 0, kBlockBytes);
        std::memcpy(place, source + uint64_t{start} * size, count * size);
    }
    return true;
}

}  // namespace

void CopyToFractals(const Operand &dst, const Operand &src, const NdToNz &p, Where where)
{
    Simulation &sim = Sim();
    if (p.matrices == 0 || p.rows == 0 || p.columns == 0) {
        return;
    }
    if (p.matrices > 4095 || p.rows > 16384 || p.c0_stride > 16384 || p.src_row > 65535) {
        sim.Fail(
            "copy-limit", where,
            Format("DataCopy to fractals: %u matrices of %u rows, row of %llu elements; at most "
                   "4095, 16384, 65535",
                   p.matrices, p.rows, static_cast<unsigned long long>(p.src_row)));
        return;
    }
    Instruction instruction(Op::DataCopy, Pipe::MTE2, where);
    const uint32_t size = SizeOf(src.type);
    if (!instruction.Legal(src, src.at, src.at + size, 1)) {
        return;
    }
    GlobalBuffer *buffer = sim.Find(src.at);
    double moved = 0;
    for (uint32_t matrix = 0; matrix < p.matrices; ++matrix) {
        moved += MovedBytes(src.at - buffer->low + matrix * p.src_matrix * size,
                            uint64_t{p.columns} * size, p.src_row * size, p.rows);
        const bool touches = sim.function;
        if (touches && !WriteBlocks(instruction, dst, p, size, matrix)) {
            return;
        }
        for (uint32_t row = 0; touches && row < p.rows; ++row) {
            if (!CopyRow(instruction, dst, src, p, matrix, row)) {
                return;
            }
        }
    }
    const double bytes = double(p.matrices) * p.rows * p.columns * size;
    instruction.RunCopy(buffer, bytes, moved, false);
}

namespace
{

// The r-th fractal (or pair of fractals) of a load.
bool LoadOne(Instruction &instruction, const Operand &dst, const Operand &src, const FractalLoad &p,
             uint64_t fractals, uint32_t r)
{
    const uint32_t size = SizeOf(src.type);
    const uint64_t align = dst.memory == Memory::L1 ? kBlockBytes : kL0Align;
    const int64_t index = int64_t{p.start} + (p.descending ? -1 : 1) * int64_t{r} * p.src_stride;
    Operand source = src, target = dst;
    source.at = src.at + static_cast<uint64_t>(index) * fractals * kFractal;
    target.at = dst.at + r * (1 + uint64_t{p.dst_gap}) * kFractal;
    const uint64_t apart = (1 + uint64_t{p.dst_inner_gap}) * kFractal;
    if (!Reads(instruction, src, source.at, fractals * kFractal) ||
        !Writes(instruction, dst, target.at, kFractal, align) ||
        (fractals == 2 && !Writes(instruction, dst, target.at + apart, kFractal, align))) {
        return false;
    }
    const uint8_t *in = BytesAt(instruction.core(), source);
    uint8_t *out = BytesAt(instruction.core(), target);
    if (fractals == 2) {
        TransposedPair(size, out, out + apart, in);
    } else if (p.transpose) {
        Transposed(out, in);
    } else {
        std::memcpy(out, in, kFractal);
    }
    return true;
}

}  // namespace

void LoadFractals(const Operand &dst, const Operand &src, const FractalLoad &p, Where where)
{
    Simulation &sim = Sim();
    const uint32_t size = SizeOf(src.type);
    if (p.repeats == 0) {
        return;
    }
    if (p.transpose && !p.square && size != 2) {
        sim.Fail("unsupported-type", where,
                 Format("LoadData transposes elements of 2 B only, not %s", NameOf(src.type)));
        return;
    }
    const bool global = src.memory == Memory::GM;
    Instruction instruction(Op::LoadData, global ? Pipe::MTE2 : Pipe::MTE1, where);
    const uint64_t fractals = p.square && size != 2 ? 2 : 1;
    for (uint32_t r = 0; sim.function && r < p.repeats; ++r) {
        if (!LoadOne(instruction, dst, src, p, fractals, r)) {
            return;
        }
    }
    const double bytes = double(p.repeats) * fractals * kFractal;
    if (!global) {
        const Rate rate = RateOf(dst.memory);
        instruction.Run(bytes / rate.per_cycle, rate.start);
    } else if (instruction.Legal(src, src.at, src.at + size, 1)) {
        const double moved = bytes + p.repeats * sim.chip.burst;
        instruction.RunCopy(sim.Find(src.at), bytes, moved, false);
    }
}

void FillZero(const Operand &dst, uint32_t repeats, uint32_t blocks, uint32_t gap, uint64_t bits,
              Where where)
{
    Simulation &sim = Sim();
    const uint32_t size = SizeOf(dst.type);
    const uint64_t block = dst.memory == Memory::L1 ? kBlockBytes : kFractal;
    const Pipe pipe = dst.memory == Memory::L1 ? Pipe::MTE2 : Pipe::MTE1;
    Instruction instruction(Op::Fill, pipe, where);
    for (uint32_t r = 0; sim.function && r < repeats; ++r) {
        const uint64_t to = dst.at + r * (uint64_t{blocks} + gap) * block;
        if (!Writes(instruction, dst, to, blocks * block)) {
            return;
        }
        Operand target = dst;
        target.at = to;
        uint8_t *out = BytesAt(instruction.core(), target);
        for (uint64_t at = 0; at < blocks * block; at += size) {
            std::memcpy(out + at, &bits, size);
        }
    }
    const Rate rate = RateOf(Memory::L0A);
    instruction.Run(double(repeats) * blocks * block / rate.per_cycle, rate.start);
}

}  // namespace gafsim

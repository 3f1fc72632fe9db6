// The matrix unit. Products of halves are exact in float and summed in float, in the order of k.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "arithmetic.h"
#include "lanes.h"

namespace gafsim
{

namespace
{

constexpr uint32_t kSide = 16;
constexpr uint64_t kFractal = 512;
constexpr uint64_t kBiasAlign = 128;  // where a product finds its bias
constexpr uint32_t kOrderedFractals = 10;  // results of fewer need a PipeBarrier<PIPE_M>

uint64_t Up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit;
}

// The k that one step of the cube takes.
uint32_t StepOf(Type type)
{
    return SizeOf(type) == 1 ? 32 : SizeOf(type) == 4 ? 4 : 16;
}

// Neighbouring elements of an input as numbers that hold them exactly.
void Numbers(Type type, const uint8_t *at, float *to, uint32_t count)
{
    if (type == Type::F16) {
        Widen(reinterpret_cast<const uint16_t *>(at), to, count);
    } else if (type == Type::F32) {
        std::memcpy(to, at, count * sizeof(float));
    } else {
        for (uint32_t i = 0; i < count; ++i) {  // bfloat16: the upper half of a float
            uint16_t half;
            std::memcpy(&half, at + 2 * i, 2);
            const uint32_t word = uint32_t{half} << 16;
            std::memcpy(to + i, &word, 4);
        }
    }
}

void Numbers(Type, const uint8_t *at, int32_t *to, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        to[i] = static_cast<int8_t>(at[i]);
    }
}

// L0A: fractals of 16 rows and 32 B, row by row of fractals.
uint64_t AOffset(uint32_t row, uint32_t k, uint32_t columns, uint32_t c0)
{
    const uint64_t across = Up(columns, c0);
    return ((row / kSide) * across + k / c0) * kSide * c0 + row % kSide * c0 + k % c0;
}

// L0B: fractals of 32 B of k and 16 columns, column-major inside.
uint64_t BOffset(uint32_t k, uint32_t column, uint32_t columns, uint32_t c0)
{
    const uint64_t across = Up(columns, kSide);
    return ((k / c0) * across + column / kSide) * kSide * c0 + column % kSide * c0 + k % c0;
}

// The left input as rows of m, and the right one as rows of k. In fractals of both, k runs along
// blocks of 32 B. A left input of one row is no fractals but a vector: the chip multiplies it so.
template <typename T>
std::vector<T> LeftRows(const uint8_t *bytes, Type type, uint32_t m, uint32_t k)
{
    const uint32_t size = SizeOf(type), c0 = 32 / size;
    std::vector<T> dense(uint64_t{m} * k);
    if (m == 1) {
        Numbers(type, bytes, dense.data(), k);
        return dense;
    }
    for (uint32_t row = 0; row < m; ++row) {
        for (uint32_t at = 0; at < k; at += c0) {
            Numbers(type, bytes + AOffset(row, at, k, c0) * size,
                    dense.data() + uint64_t{row} * k + at, std::min(c0, k - at));
        }
    }
    return dense;
}

template <typename T>
std::vector<T> RightRows(const uint8_t *bytes, Type type, uint32_t k, uint32_t n)
{
    const uint32_t size = SizeOf(type), c0 = 32 / size;
    std::vector<T> dense(uint64_t{k} * n);
    T block[32];
    for (uint32_t at = 0; at < k; at += c0) {
        const uint32_t count = std::min(c0, k - at);
        for (uint32_t column = 0; column < n; ++column) {
            Numbers(type, bytes + BOffset(at, column, n, c0) * size, block, count);
            for (uint32_t i = 0; i < count; ++i) {
                dense[uint64_t{at + i} * n + column] = block[i];
            }
        }
    }
    return dense;
}

// L0C: columns of fractals of 16 x 16.
uint64_t COffset(uint32_t row, uint32_t column, uint64_t rows16)
{
    return (uint64_t{column} / kSide) * rows16 * kSide + uint64_t{row} * kSide + column % kSide;
}

template <typename T>
void Product(uint8_t *c_bytes, const std::vector<T> &a, const std::vector<T> &b,
             const MatrixMultiply &p, const uint8_t *bias)
{
    T *c = reinterpret_cast<T *>(c_bytes);
    const uint64_t rows16 = Up(p.m, kSide) * kSide;
    std::vector<T> row(p.n);
    for (uint32_t i = 0; i < p.m; ++i) {
        for (uint32_t j = 0; j < p.n; ++j) {
            row[j] = p.zero ? T{} : c[COffset(i, j, rows16)];
            if (bias != nullptr) {
                std::memcpy(&row[j], bias + j * sizeof(T), sizeof(T));
            }
        }
        for (uint32_t k = 0; k < p.k; ++k) {
            const T left = a[uint64_t{i} * p.k + k];
            const T *right = b.data() + uint64_t{k} * p.n;
            for (uint32_t j = 0; j < p.n; ++j) {
                row[j] += left * right[j];
            }
        }
        for (uint32_t j = 0; j < p.n; ++j) {
            c[COffset(i, j, rows16)] = row[j];
        }
    }
}

bool ValidTypes(const Operand &c, const Operand &a, const Operand &b, const Operand *bias,
                Where where)
{
    const bool integer = a.type == Type::I8 && b.type == Type::I8 && c.type == Type::I32;
    const bool real = a.type == b.type && c.type == Type::F32 &&
                      (a.type == Type::F16 || a.type == Type::BF16 || a.type == Type::F32);
    if (!integer && !real) {
        Sim().Fail("unsupported-type", where,
                   Format("Mmad: no product of %s and %s into %s", NameOf(a.type), NameOf(b.type),
                          NameOf(c.type)));
    }
    if (bias != nullptr && bias->type != c.type) {
        Sim().Fail("unsupported-type", where,
                   Format("Mmad: a bias of %s for a result of %s", NameOf(bias->type),
                          NameOf(c.type)));
        return false;
    }
    if (bias != nullptr && bias->memory != Memory::BT && bias->memory != Memory::L0C) {
        Sim().Fail("operand-memory", where,
                   Format("Mmad with a bias in %s: expected the bias table or L0C",
                          NameOf(bias->memory)));
        return false;
    }
    if (a.memory != Memory::L0A || b.memory != Memory::L0B || c.memory != Memory::L0C) {
        Sim().Fail("operand-memory", where,
                   Format("Mmad of %s and %s into %s: expected L0A, L0B, L0C", NameOf(a.memory),
                          NameOf(b.memory), NameOf(c.memory)));
        return false;
    }
    return integer || real;
}

// Fractals of all operands: checked, read and written.
bool TouchProduct(Instruction &instruction, const Operand &c, const Operand &a, const Operand &b,
                  const Operand *start, const MatrixMultiply &p)
{
    const uint64_t m1 = Up(p.m, kSide), n1 = Up(p.n, kSide);
    const uint32_t size = SizeOf(a.type);
    const bool even = p.k_even && size == 4;  // k is padded to a whole 16
    const uint64_t k1 = Up(p.k, even ? 16 : 32 / size) * (even ? 2 : 1);
    const uint64_t result = m1 * n1 * kSide * kSide * 4;
    const uint64_t left = p.m == 1 ? uint64_t{p.k} * size : m1 * k1 * kFractal;
    return Reads(instruction, a, a.at, left, kFractal) &&
           Reads(instruction, b, b.at, n1 * k1 * kFractal, kFractal) &&
           (start == nullptr || Reads(instruction, *start, start->at, p.n * 4, kBiasAlign)) &&
           (start != nullptr || p.zero || Reads(instruction, c, c.at, result, 64)) &&
           Writes(instruction, c, c.at, result, 64);
}

// What a product starts from: a bias in the table, by operand or by flag; null: C or zero.
const Operand *StartOf(const Operand *bias, const Operand &table, const MatrixMultiply &p)
{
    if (bias != nullptr) {
        return bias->memory == Memory::BT ? bias : nullptr;
    }
    return p.from_bias && !p.zero ? &table : nullptr;
}

}  // namespace

void Multiply(const Operand &c, const Operand &a, const Operand &b, const Operand *bias,
              const MatrixMultiply &p, Where where)
{
    Simulation &sim = Sim();
    if (p.m == 0 || p.n == 0 || p.k == 0 || !ValidTypes(c, a, b, bias, where)) {
        return;
    }
    if (p.m > 4095 || p.n > 4095 || p.k > 4095) {
        sim.Fail("copy-limit", where, Format("Mmad of %u x %u x %u: at most 4095", p.m, p.n, p.k));
        return;
    }
    Instruction instruction(Op::Mmad, Pipe::M, where);
    Core &core = instruction.core();
    const uint64_t m1 = Up(p.m, kSide), n1 = Up(p.n, kSide);
    if (m1 * n1 >= kOrderedFractals) {
        instruction.AfterPrevious();
    }
    if (p.unit_flag != 0) {
        Acquire(core, Pipe::M, ReleaseOf(core, Pipe::FIX));
    }
    const Operand table{Memory::BT, c.type, 0, 0, static_cast<uint64_t>(sim.chip.capacity[5])};
    const Operand *start = StartOf(bias, table, p);
    if (sim.function && !TouchProduct(instruction, c, a, b, start, p)) {
        return;
    }
    if (sim.function) {
        uint8_t *out = BytesAt(core, c);
        const uint8_t *from = start == nullptr ? nullptr : BytesAt(core, *start);
        if (c.type == Type::I32) {
            Product(out, LeftRows<int32_t>(BytesAt(core, a), a.type, p.m, p.k),
                    RightRows<int32_t>(BytesAt(core, b), b.type, p.k, p.n), p, from);
        } else {
            Product(out, LeftRows<float>(BytesAt(core, a), a.type, p.m, p.k),
                    RightRows<float>(BytesAt(core, b), b.type, p.k, p.n), p, from);
        }
    }
    instruction.Run(static_cast<double>(m1 * n1 * Up(p.k, StepOf(a.type))), sim.chip.mmad_start);
}

namespace
{

// One integer, or a number that becomes one, on its way out. `scale` holds the bits of a float in its low half.
void Emit(uint8_t *to, Type type, const uint8_t *from, Type from_type, const FixOut &p)
{
    const auto low = static_cast<uint32_t>(p.scale);
    float scale;
    std::memcpy(&scale, &low, 4);
    if (from_type == Type::I32) {
        int32_t value;
        std::memcpy(&value, from, 4);
        value = p.relu ? std::max(value, 0) : value;
        if (type == Type::I32) {
            std::memcpy(to, &value, 4);
        } else if (type == Type::F16) {
            StoreLane(Type::F16, to, static_cast<float>(value) * scale);
        } else {
            const float scaled = std::nearbyint(static_cast<float>(value) * scale);
            *to = static_cast<uint8_t>(
                static_cast<int8_t>(std::min(127.0f, std::max(-128.0f, scaled))));
        }
        return;
    }
    float value = LoadLane(Type::F32, from);
    value = p.relu && value < 0 ? 0.0f : value;
    const float scaled = std::nearbyint(value * scale);
    *to = static_cast<uint8_t>(static_cast<int8_t>(std::min(127.0f, std::max(-128.0f, scaled))));
}

// Neighbouring results, at most a fractal's row of them.
void EmitRow(uint8_t *to, Type type, const uint8_t *from, Type from_type, uint32_t count,
             const FixOut &p)
{
    const bool plain = from_type == Type::F32 && SizeOf(type) > 1;
    if (!plain) {
        const uint32_t size = SizeOf(type);
        for (uint32_t i = 0; i < count; ++i) {
            Emit(to + i * size, type, from + i * 4, from_type, p);
        }
        return;
    }
    float values[kSide];
    std::memcpy(values, from, count * sizeof(float));
    for (uint32_t i = 0; p.relu && i < count; ++i) {
        values[i] = values[i] < 0 ? 0.0f : values[i];
    }
    if (type == Type::F16) {
        Narrow(values, reinterpret_cast<uint16_t *>(to), count);
    } else if (type == Type::BF16) {
        ConvertLanes(Type::BF16, Type::F32, to, values, count, 1);
    } else {
        std::memcpy(to, values, count * sizeof(float));
    }
}

bool ValidQuant(Type to, Type from, int quant)
{
    switch (quant) {
        case 0: return to == from;
        case 1: return from == Type::F32 && to == Type::F16;
        case 2: return from == Type::F32 && to == Type::BF16;
        case 3: return from == Type::I32 && to == Type::F16;
        case 5: return from == Type::F32 && to == Type::I8;
        case 7: return from == Type::I32 && to == Type::I8;
        default: return false;
    }
}

}  // namespace

namespace
{

// One stretch of results of a Fixpipe: `width` columns from `column` on, all rows. Rows lie `pitch`
// bytes apart from `top` on.
struct Stretch {
    uint64_t source, top, pitch;
    uint32_t column, width;
};

bool FixStretch(Instruction &instruction, const Operand &dst, const Operand &src, const FixOut &p,
                const Stretch &stretch)
{
    Core &core = instruction.core();
    const uint32_t size = SizeOf(dst.type);
    const uint64_t bytes = uint64_t{stretch.width} * size;
    const uint64_t align = dst.memory == Memory::GM ? 1 : kBlockBytes;
    std::vector<uint8_t> line(bytes);
    for (uint32_t row = 0; row < p.m; ++row) {
        Operand target = dst;
        target.at = stretch.top + row * stretch.pitch;
        if (!Writes(instruction, dst, target.at, bytes, align)) {
            return false;
        }
        for (uint32_t j = 0; j < stretch.width; j += kSide) {
            Operand first = src;
            first.at = stretch.source + COffset(row, stretch.column + j, p.src_stride) * 4;
            const uint32_t count = std::min(kSide, stretch.width - j);
            if (!Reads(instruction, src, first.at, count * 4, 4)) {
                return false;
            }
            EmitRow(line.data() + uint64_t{j} * size, dst.type, BytesAt(core, first), src.type,
                    count, p);
        }
        if (dst.memory != Memory::GM) {
            std::memcpy(BytesAt(core, target), line.data(), bytes);
        } else if (!AtomicStore(core, dst.type, BytesAt(core, target), line.data(), bytes,
                                instruction.where())) {
            return false;
        }
    }
    return true;
}

// Columns that lie together in the target: all of a row, or one column of fractals.
uint32_t ColumnsTogether(const Operand &dst, const FixOut &p)
{
    const uint32_t size = SizeOf(dst.type);
    return p.rows ? p.n : dst.memory == Memory::L1 || size < 4 ? 32 / size : kSide;
}

// All of a Fixpipe. Returns the bytes of bandwidth that it takes, or a negative number where
// refused.
double FixAll(Instruction &instruction, const Operand &dst, const Operand &src, const FixOut &p,
              uint64_t base)
{
    const Simulation &sim = Sim();
    const uint32_t size = SizeOf(dst.type);
    const uint32_t together = ColumnsTogether(dst, p);
    double moved = 0;
    for (uint32_t matrix = 0; matrix < p.matrices; ++matrix) {
        for (uint32_t start = 0; start < p.n; start += together) {
            const uint64_t across = p.rows
                                        ? uint64_t{start} * size
                                        : uint64_t{start / together} * p.dst_stride * kBlockBytes;
            Stretch stretch{};
            stretch.source = src.at + uint64_t{matrix} * p.src_matrix * kSide * kSide * 4;
            stretch.top = dst.at + matrix * p.dst_matrix * size + across;
            stretch.pitch = (p.rows ? p.dst_stride : uint64_t{together}) * size;
            stretch.column = start;
            stretch.width = std::min(together, p.n - start);
            const uint64_t bytes = uint64_t{stretch.width} * size;
            moved += p.rows ? MovedBytes(stretch.top - base, bytes, stretch.pitch, p.m)
                            : MovedBytes(stretch.top - base, bytes * p.m);
            if (sim.function && !FixStretch(instruction, dst, src, p, stretch)) {
                return -1;
            }
        }
    }
    return moved;
}

}  // namespace

void FixpipeOut(const Operand &dst, const Operand &src, const FixOut &p, Where where)
{
    Simulation &sim = Sim();
    if (p.n == 0 || p.m == 0 || p.matrices == 0) {
        return;
    }
    if (!ValidQuant(dst.type, src.type, p.quant) || src.memory != Memory::L0C) {
        sim.Fail("unsupported-type", where,
                 Format("Fixpipe from %s %s to %s with quantisation mode %d", NameOf(src.memory),
                        NameOf(src.type), NameOf(dst.type), p.quant));
        return;
    }
    Instruction instruction(Op::Fixpipe, Pipe::FIX, where);
    if (p.unit_flag != 0) {
        Acquire(instruction.core(), Pipe::FIX, ReleaseOf(instruction.core(), Pipe::M));
    }
    const uint32_t size = SizeOf(dst.type);
    const bool global = dst.memory == Memory::GM;
    if (global && !instruction.Legal(dst, dst.at, dst.at + size, 1)) {
        return;
    }
    GlobalBuffer *buffer = global ? sim.Find(dst.at) : nullptr;
    const double moved = FixAll(instruction, dst, src, p, global ? buffer->low : 0);
    if (moved < 0) {
        return;
    }
    const double elements = double(p.matrices) * p.m * p.n;
    const double cycles = elements / sim.chip.fix_rate;
    if (global) {
        instruction.RunCopy(buffer, elements * size, moved, true, cycles);
    } else {
        instruction.Run(cycles, sim.chip.fix_start);
    }
}

}  // namespace gafsim

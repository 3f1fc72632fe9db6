// Copies in bursts, and single elements read or written by the scalar unit.

#include <algorithm>
#include <cstring>

#include "core.h"

namespace gafsim
{

namespace
{

constexpr uint32_t kMaxPadBlocks = 4095;
constexpr uint32_t kMaxPadLength = 2097151;
constexpr uint32_t kBlock = 32;

uint64_t Up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

// Which pipe carries a copy: the memories at both ends decide.
Pipe PipeOf(const Copy &c)
{
    if (c.src.memory == Memory::GM) {
        return Pipe::MTE2;
    }
    if (c.dst.memory == Memory::GM) {
        return c.src.memory == Memory::L0C ? Pipe::FIX : Pipe::MTE3;
    }
    if (c.src.memory == Memory::UB) {
        return c.dst.memory == Memory::UB ? Pipe::V : Pipe::MTE3;
    }
    return Pipe::MTE1;
}

bool WithinLimits(const Copy &c, Where where)
{
    Simulation &sim = Sim();
    const uint32_t size = SizeOf(c.src.type);
    if (c.pad && (c.blocks > kMaxPadBlocks || c.length > kMaxPadLength)) {
        sim.Fail("copy-limit", where,
                 Format("DataCopyPad: %u blocks of %u B, at most %u of %u B", c.blocks, c.length,
                        kMaxPadBlocks, kMaxPadLength));
        return false;
    }
    if (c.pad && (c.left * size > kBlock || c.right * size > kBlock)) {
        sim.Fail("copy-limit", where,
                 Format("DataCopyPad: padding of %u and %u elements, at most 32 B a side", c.left,
                        c.right));
        return false;
    }
    if (!c.pad && (c.blocks > kMaxPadBlocks || c.length / kBlock > 65535)) {
        sim.Fail("copy-limit", where,
                 Format("DataCopy: %u blocks of %u B, at most 4095 of 65535 · 32 B", c.blocks,
                        c.length));
        return false;
    }
    if (c.pad && c.length % size != 0) {
        sim.Fail("copy-limit", where,
                 Format("DataCopyPad: %u B are no whole elements of %u B", c.length, size));
        return false;
    }
    if (c.length == 0 && !c.pad && c.blocks != 0) {
        sim.Fail("copy-empty", where, "DataCopy of less than 32 B moves nothing: use DataCopyPad");
        return false;
    }
    return c.blocks != 0 && c.length != 0;
}

struct Geometry {
    uint64_t dst_pitch, src_pitch;
    uint64_t dst_bytes;  // of a block, with padding where it lands in UB
};

Geometry GeometryOf(const Copy &c)
{
    const uint32_t size = SizeOf(c.src.type);
    const bool inward = c.src.memory == Memory::GM;
    Geometry g{};
    g.dst_bytes = c.length;
    if (!c.pad) {
        g.dst_pitch = c.length + c.dst_gap;
        g.src_pitch = c.length + c.src_gap;
    } else if (inward) {
        g.dst_bytes = Up(c.length + uint64_t{c.left + c.right} * size, kBlock);
        g.dst_pitch = g.dst_bytes + c.dst_gap;
        g.src_pitch = c.length + c.src_gap;
    } else {
        g.dst_pitch = c.length + c.dst_gap;
        g.src_pitch = Up(c.length, kBlock) + c.src_gap;
    }
    return g;
}

// One block into UB with its padding: declared value, or the block's first element.
void PadBlock(const Copy &c, uint8_t *dst, const uint8_t *src, uint64_t dst_bytes)
{
    const uint32_t size = SizeOf(c.src.type);
    const void *fill = c.pad_value ? static_cast<const void *>(&c.value) : src;
    const uint64_t before = uint64_t{c.left} * size;
    const uint64_t after = before + c.length;
    for (uint64_t at = 0; at < dst_bytes; at += size) {
        if (at < before || at >= after) {
            std::memcpy(dst + at, fill, size);
        }
    }
    std::memcpy(dst + before, src, c.length);
}

template <typename T>
T Combine(int kind, T old, T value)
{
    switch (kind) {
        case 1: return static_cast<T>(old + value);
        case 2: return old > value ? old : value;
        default: return old < value ? old : value;
    }
}

template <typename T>
void Merge(int kind, uint8_t *dst, const uint8_t *src, uint64_t bytes)
{
    for (uint64_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
        T old, value;
        std::memcpy(&old, dst + at, sizeof(T));
        std::memcpy(&value, src + at, sizeof(T));
        old = Combine(kind, old, value);
        std::memcpy(dst + at, &old, sizeof(T));
    }
}

}  // namespace

double MovedBytes(uint64_t at, uint64_t bytes)
{
    const Chip &chip = Sim().chip;
    const auto sector = static_cast<uint64_t>(chip.sector);
    return static_cast<double>(Up(at + bytes, sector) - at / sector * sector) + chip.burst;
}

double MovedBytes(uint64_t at, uint64_t bytes, uint64_t pitch, uint64_t bursts)
{
    if (pitch % static_cast<uint64_t>(Sim().chip.sector) == 0) {
        return MovedBytes(at, bytes) * static_cast<double>(bursts);
    }
    double moved = 0;
    for (uint64_t i = 0; i < bursts; ++i) {
        moved += MovedBytes(at + i * pitch, bytes);
    }
    return moved;
}

bool AtomicStore(Core &core, Type type, uint8_t *dst, const uint8_t *src, uint64_t bytes,
                 Where where)
{
    if (core.atomic == 0) {
        std::memcpy(dst, src, bytes);
        return true;
    }
    if (type != core.atomic_type) {
        Sim().Fail("atomic-type", where,
                   Format("a store of %s while the atomic type is %s", NameOf(type),
                          NameOf(core.atomic_type)));
        return false;
    }
    switch (type) {
        case Type::F32: Merge<float>(core.atomic, dst, src, bytes); return true;
        case Type::F16: Merge<_Float16>(core.atomic, dst, src, bytes); return true;
        case Type::I32: Merge<int32_t>(core.atomic, dst, src, bytes); return true;
        case Type::I16: Merge<int16_t>(core.atomic, dst, src, bytes); return true;
        case Type::I8: Merge<int8_t>(core.atomic, dst, src, bytes); return true;
        default: break;
    }
    Sim().Fail("atomic-type", where, Format("the chip has no atomic store of %s", NameOf(type)));
    return false;
}

namespace
{

// Whether the scalar unit may read what is copied, to find out where to go on: for times, too.
bool IsLookedAt(const Copy &c)
{
    const bool position = c.src.type == Type::I32 || c.src.type == Type::I64;
    return Sim().scalars_look && position && c.src.memory == Memory::GM;
}

// Blocks of one side of a copy.
struct Blocks {
    uint64_t bytes, pitch;
    uint32_t count;
};

// Those that follow each other are one: what is known of the bytes stays whole.
Blocks Joined(Blocks blocks)
{
    return blocks.pitch == blocks.bytes ? Blocks{blocks.bytes * blocks.count, 0, 1} : blocks;
}

bool IsLegal(Instruction &instruction, const Operand &side, const Blocks &blocks)
{
    for (uint32_t i = 0; i < blocks.count; ++i) {
        const uint64_t low = side.at + i * blocks.pitch;
        if (!instruction.Legal(side, low, low + blocks.bytes, kBlock)) {
            return false;
        }
    }
    return true;
}

// Enters blocks as read or as written.
void EnterBlocks(Instruction &instruction, const Operand &side, const Blocks &blocks, bool writes)
{
    for (uint32_t i = 0; i < blocks.count; ++i) {
        const uint64_t low = side.at + i * blocks.pitch, high = low + blocks.bytes;
        if (writes) {
            instruction.Write(side, low, high);
        } else {
            instruction.Read(side, low, high);
        }
    }
}

// Moves the i-th block. False where refused.
bool MoveOne(Instruction &instruction, const Copy &c, const Geometry &g, uint32_t i)
{
    Core &core = instruction.core();
    Operand src = c.src, dst = c.dst;
    src.at += i * g.src_pitch;
    dst.at += i * g.dst_pitch;
    uint8_t *target = BytesAt(core, dst);
    const uint8_t *source = BytesAt(core, src);
    if (c.pad && c.src.memory == Memory::GM) {
        PadBlock(c, target, source, g.dst_bytes);
    } else if (c.dst.memory == Memory::GM) {
        return AtomicStore(core, c.src.type, target, source, c.length, instruction.where());
    } else {
        std::memmove(target, source, c.length);
    }
    return true;
}

}  // namespace

void CopyBlocks(const Copy &c, Where where)
{
    if (!WithinLimits(c, where)) {
        return;
    }
    Simulation &sim = Sim();
    Instruction instruction(c.op, PipeOf(c), where);
    const Geometry g = GeometryOf(c);
    const bool inward = c.src.memory == Memory::GM;
    const bool outward = c.dst.memory == Memory::GM;
    const bool moves = sim.function || IsLookedAt(c);
    const uint32_t looked_at = moves ? c.blocks : 1;  // only for time
    const Blocks read = Joined({c.length, g.src_pitch, looked_at});
    const Blocks written = Joined({g.dst_bytes, g.dst_pitch, looked_at});
    // Where bytes lie outside of memory is told before what was never written there.
    if (!IsLegal(instruction, c.src, read) || !IsLegal(instruction, c.dst, written)) {
        return;
    }
    if (sim.function) {
        EnterBlocks(instruction, c.src, read, false);
        EnterBlocks(instruction, c.dst, written, true);
    }
    for (uint32_t i = 0; moves && i < c.blocks; ++i) {
        if (!MoveOne(instruction, c, g, i)) {
            return;
        }
    }
    const double bytes = double(c.length) * c.blocks;
    if (!inward && !outward) {
        instruction.Run(bytes / sim.chip.ub_rate, sim.chip.ub_start);
        return;
    }
    const uint64_t at = inward ? c.src.at : c.dst.at;
    GlobalBuffer *buffer = sim.Find(at);
    const double moved =
        MovedBytes(at - buffer->low, c.length, inward ? g.src_pitch : g.dst_pitch, c.blocks);
    instruction.RunCopy(buffer, bytes, moved, outward);
}

bool ScalarRead(const Operand &from, void *value, Where where)
{
    Simulation &sim = Sim();
    Instruction instruction(Op::GetValue, Pipe::S, where);
    const uint32_t size = SizeOf(from.type);
    if (!instruction.Legal(from, from.at, from.at + size, size)) {
        return false;
    }
    instruction.Read(from, from.at, from.at + size);
    sim.scalars_look = sim.scalars_look || from.memory != Memory::GM;
    std::memcpy(value, BytesAt(instruction.core(), from), size);
    instruction.Run(from.memory == Memory::GM ? sim.chip.scalar_gm : sim.chip.scalar_read, 0);
    return true;
}

void ScalarWrite(const Operand &to, const void *value, Where where)
{
    Simulation &sim = Sim();
    Instruction instruction(Op::SetValue, Pipe::S, where);
    const uint32_t size = SizeOf(to.type);
    if (!instruction.Legal(to, to.at, to.at + size, size)) {
        return;
    }
    instruction.Write(to, to.at, to.at + size);
    if (sim.function || to.memory != Memory::GM) {
        std::memcpy(BytesAt(instruction.core(), to), value, size);
    }
    instruction.Run(to.memory == Memory::GM ? sim.chip.scalar_gm : sim.chip.scalar_write, 0);
}

void SetAtomic(int kind, Type type)
{
    Core &core = Running();
    core.atomic = kind;
    core.atomic_type = type;
}

}  // namespace gafsim

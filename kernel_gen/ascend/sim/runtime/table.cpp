// The bias table: what a product starts from, one number per column.

#include <cstring>

#include "arithmetic.h"
#include "lanes.h"

namespace gafsim
{

namespace
{

constexpr uint32_t kUnit = 64;  // bytes: lengths at the source, gaps and starts in the table

bool ValidTable(const Operand &dst, const Operand &src, const TableCopy &p, Where where)
{
    Simulation &sim = Sim();
    if (dst.memory != Memory::BT || src.memory != Memory::L1) {
        sim.Fail("operand-memory", where,
                 Format("DataCopy of %s in %s to %s in %s: expected L1 to the bias table",
                        NameOf(src.type), NameOf(src.memory), NameOf(dst.type),
                        NameOf(dst.memory)));
        return false;
    }
    const bool same = dst.type == src.type && (src.type == Type::F32 || src.type == Type::I32);
    if (!same && !(src.type == Type::F16 && dst.type == Type::F32)) {
        sim.Fail("unsupported-type", where,
                 Format("DataCopy of %s to %s in the bias table: it takes float, int32_t, and half "
                        "as float",
                        NameOf(src.type), NameOf(dst.type)));
        return false;
    }
    if (p.blocks > 4095) {
        sim.Fail("copy-limit", where, Format("DataCopy: %u blocks, at most 4095", p.blocks));
        return false;
    }
    return p.blocks != 0 && p.length != 0;
}

}  // namespace

void CopyToTable(const Operand &dst, const Operand &src, const TableCopy &p, Where where)
{
    if (!ValidTable(dst, src, p, where)) {
        return;
    }
    const Simulation &sim = Sim();
    Instruction instruction(Op::DataCopy, Pipe::MTE1, where);
    const uint64_t read = uint64_t{p.length} * kUnit;
    const uint64_t count = read / SizeOf(src.type), written = count * SizeOf(dst.type);
    for (uint32_t i = 0; sim.function && i < p.blocks; ++i) {
        Operand from = src, to = dst;
        from.at += i * (read + uint64_t{p.src_gap} * kBlockBytes);
        to.at += i * (written + uint64_t{p.dst_gap} * kUnit);
        if (!Reads(instruction, src, from.at, read) ||
            !Writes(instruction, dst, to.at, written, kUnit)) {
            return;
        }
        const uint8_t *in = BytesAt(instruction.core(), from);
        uint8_t *out = BytesAt(instruction.core(), to);
        if (src.type == Type::F16) {
            Widen(reinterpret_cast<const uint16_t *>(in), reinterpret_cast<float *>(out),
                  static_cast<uint32_t>(count));
        } else {
            std::memcpy(out, in, read);
        }
    }
    instruction.Run(static_cast<double>(p.blocks * read) / sim.chip.bt_rate, sim.chip.bt_start);
}

}  // namespace gafsim

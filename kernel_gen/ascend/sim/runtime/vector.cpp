// Elementwise vector instructions: rules, arithmetic, price.

#include <algorithm>
#include <cstring>

#include "arithmetic.h"
#include "lanes.h"

namespace gafsim
{

namespace
{

uint32_t WidestOf(const Vector &v)
{
    uint32_t widest = SizeOf(v.dst.type);
    for (int i = 0; i < v.sources; ++i) {
        widest = std::max(widest, SizeOf(v.src[i].type));
    }
    return widest;
}

void FillLanes(const Vector &v, uint8_t *dst, const std::vector<Run> &runs)
{
    const uint32_t size = SizeOf(v.dst.type);
    for (const Run &run : runs) {
        for (uint64_t i = 0; i < run.lanes; ++i) {
            std::memcpy(dst + run.dst + i * size, &v.integer, size);
        }
    }
}

void Dequantise(float scale, uint8_t *dst, const uint8_t *src, const std::vector<Run> &runs)
{
    for (const Run &run : runs) {
        for (uint64_t i = 0; i < run.lanes; ++i) {
            int32_t value;
            std::memcpy(&value, src + run.src[0] + i * 4, 4);
            StoreLane(Type::F16, dst + run.dst + i * 2, static_cast<float>(value) * scale);
        }
    }
}

void Compute(const Vector &v, Core &core, const std::vector<Run> &runs)
{
    uint8_t *dst = BytesAt(core, v.dst);
    if (v.op == Op::Duplicate) {
        FillLanes(v, dst, runs);
        return;
    }
    const uint8_t *src[3] = {};
    for (int i = 0; i < v.sources; ++i) {
        src[i] = BytesAt(core, v.src[i]);
    }
    if (v.op == Op::Cast && v.src[0].type == Type::I32 && v.dst.type == Type::F16) {
        Dequantise(core.scale, dst, src[0], runs);
        return;
    }
    if (v.op == Op::Cast) {
        for (const Run &run : runs) {
            ConvertLanes(v.dst.type, v.src[0].type, dst + run.dst, src[0] + run.src[0], run.lanes,
                         v.variant);
        }
        return;
    }
    const Flat flat = ArithmeticOf(v.op, v.dst.type, v.src[0].type);
    const Scalars scalars{v.scalar, v.integer};
    for (const Run &run : runs) {
        flat(dst + run.dst, src[0] + run.src[0], v.sources > 1 ? src[1] + run.src[1] : nullptr,
             run.lanes, scalars);
    }
}

bool Supported(const Vector &v)
{
    if (v.op == Op::Duplicate) {
        return true;
    }
    if (v.op == Op::Cast) {
        return CanConvert(v.dst.type, v.src[0].type);
    }
    return ArithmeticOf(v.op, v.dst.type, v.src[0].type) != nullptr;
}

// The documented limit: operands are the same or apart, except by whole repeats.
bool Overlaps(const Vector &v, const std::vector<Run> &runs, Where where)
{
    const uint64_t lanes = runs.back().lanes;
    for (int i = 0; v.lanes.counted && i < v.sources; ++i) {
        const uint64_t to = v.dst.at + lanes * SizeOf(v.dst.type);
        const uint64_t from = v.src[i].at + lanes * SizeOf(v.src[i].type);
        if (v.dst.at != v.src[i].at && v.dst.at < from && v.src[i].at < to) {
            Sim().Fail("operand-overlap", where,
                       Format("%s: the result overlaps source %d in part", NameOf(v.op), i));
            return true;
        }
    }
    return false;
}

}  // namespace

void Elementwise(const Vector &v, Where where)
{
    Simulation &sim = Sim();
    if (!Supported(v)) {
        sim.Fail("unsupported-type", where,
                 Format("%s: no instruction from %s to %s", NameOf(v.op), NameOf(v.src[0].type),
                        NameOf(v.dst.type)));
        return;
    }
    if (v.op == Op::Cast && !CanRound(v.dst.type, v.src[0].type, v.variant)) {
        sim.Fail("round-mode", where,
                 Format("Cast: no round mode %d from %s to %s", v.variant, NameOf(v.src[0].type),
                        NameOf(v.dst.type)));
        return;
    }
    const uint32_t widest = WidestOf(v);
    if (!ValidLanes(v, widest, where)) {
        return;
    }
    if (!sim.function) {
        if (RepeatsOf(v, widest) > 0) {
            Instruction instruction(v.op, Pipe::V, where);
            Price(instruction, v, widest);
        }
        return;
    }
    const std::vector<Run> runs = RunsOf(v, widest);
    if (runs.empty()) {
        return;  // count or repeats of 0: no instruction
    }
    Instruction instruction(v.op, Pipe::V, where);
    if (v.op == Op::Cast && v.src[0].type == Type::I32 && v.dst.type == Type::F16 &&
        !instruction.core().scaled) {
        sim.Fail("deq-scale", where, "Cast from int32_t to half without SetDeqScale");
        return;
    }
    if (Overlaps(v, runs, where) || !Touches(instruction, v, runs)) {
        return;
    }
    Compute(v, instruction.core(), runs);
    Price(instruction, v, widest);
}

void SetDequantScale(float scale)
{
    Core &core = Running();
    core.scaled = true;
    core.scale = scale;
}

void SetMask(uint64_t high, uint64_t low, Where)
{
    Core &core = Running();
    core.mask[0] = low;
    core.mask[1] = high;
    core.now += Sim().chip.fixed[static_cast<int>(Op::SetMask)];
}

void SetMaskMode(bool counter)
{
    Running().counter_mode = counter;
}

}  // namespace gafsim

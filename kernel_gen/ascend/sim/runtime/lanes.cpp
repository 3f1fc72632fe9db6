#include "lanes.h"

#include <algorithm>
#include <cstring>

namespace gafsim
{

namespace
{

constexpr uint32_t kMaxRepeats = 255;
constexpr uint64_t kBanks = 16;
constexpr uint64_t kBankRow = kBanks * kBlockBytes;  // 512 B
constexpr uint64_t kBankColumn = 64 * 1024;          // addresses of one set of 16 banks

struct Part {
    const Operand *operand;
    Stride stride;
    uint32_t size;
};

std::vector<Part> PartsOf(const Vector &v)
{
    std::vector<Part> parts = {{&v.dst, v.dst_stride, SizeOf(v.dst.type)}};
    for (int i = 0; i < v.sources; ++i) {
        parts.push_back({&v.src[i], v.src_stride[i], SizeOf(v.src[i].type)});
    }
    return parts;
}

uint64_t &OffsetOf(Run &run, size_t part)
{
    return part == 0 ? run.dst : run.src[part - 1];
}

// Appends a run, joined with the last one where it goes on in every operand.
void Append(std::vector<Run> &runs, const std::vector<Part> &parts, Run run)
{
    if (!runs.empty()) {
        Run &last = runs.back();
        bool joins = true;
        for (size_t p = 0; p < parts.size(); ++p) {
            joins = joins && OffsetOf(last, p) + last.lanes * parts[p].size == OffsetOf(run, p);
        }
        if (joins) {
            last.lanes += run.lanes;
            return;
        }
    }
    runs.push_back(run);
}

bool Bit(const uint64_t mask[2], uint64_t lane)
{
    return (mask[lane / 64] >> (lane % 64)) & 1;
}

// The lanes of one repeat in [first, last) that the mask keeps.
void Chunk(std::vector<Run> &runs, const std::vector<Part> &parts, uint64_t repeat, uint64_t first,
           uint64_t last)
{
    Run run;
    run.lanes = last - first;
    for (size_t p = 0; p < parts.size(); ++p) {
        const uint64_t per_block = kBlockBytes / parts[p].size;
        OffsetOf(run, p) = repeat * parts[p].stride.repeat * kBlockBytes +
                           first / per_block * parts[p].stride.block * kBlockBytes +
                           first % per_block * parts[p].size;
    }
    Append(runs, parts, run);
}

// How many lanes a mask keeps where these are the first ones; else none.
uint64_t Leading(const uint64_t mask[2], uint64_t lanes)
{
    uint64_t count = 0;
    while (count < lanes && Bit(mask, count)) {
        ++count;
    }
    for (uint64_t lane = count; lane < lanes; ++lane) {
        if (Bit(mask, lane)) {
            return 0;
        }
    }
    return count;
}

// How repeats fall into runs: all that a mask keeps, at most `chunk` lanes each.
struct Pattern {
    uint64_t mask[2];
    uint64_t lanes, chunk;
    uint64_t leading;
};

// Blocks that follow each other in every operand.
bool Dense(const std::vector<Part> &parts)
{
    return std::all_of(parts.begin(), parts.end(),
                       [](const Part &part) { return part.stride.block == 1; });
}

void Repeat(std::vector<Run> &runs, const std::vector<Part> &parts, uint64_t repeat,
            const Pattern &pattern)
{
    for (uint64_t start = 0; start < pattern.leading; start += pattern.chunk) {
        Chunk(runs, parts, repeat, start, std::min(start + pattern.chunk, pattern.leading));
    }
    for (uint64_t start = 0; pattern.leading == 0 && start < pattern.lanes;
         start += pattern.chunk) {
        const uint64_t end = std::min(start + pattern.chunk, pattern.lanes);
        uint64_t first = start;
        while (first < end) {
            while (first < end && !Bit(pattern.mask, first)) {
                ++first;
            }
            uint64_t last = first;
            while (last < end && Bit(pattern.mask, last)) {
                ++last;
            }
            if (last > first) {
                Chunk(runs, parts, repeat, first, last);
            }
            first = last;
        }
    }
}

struct MaskState {
    uint64_t mask[2];
    bool counter;
};

MaskState MaskOf(const Vector &v)
{
    const Core &core = Running();
    if (!v.lanes.from_register) {
        return {{v.lanes.mask[0], v.lanes.mask[1]}, core.counter_mode};
    }
    return {{core.mask[0], core.mask[1]}, core.counter_mode};
}

}  // namespace

std::vector<Run> RunsOf(const Vector &v, uint32_t widest)
{
    std::vector<Run> runs;
    if (v.lanes.counted) {
        if (v.lanes.count != 0) {
            Run all;
            all.lanes = v.lanes.count;
            runs.push_back(all);
        }
        return runs;
    }
    const std::vector<Part> parts = PartsOf(v);
    uint64_t chunk = kBlockBytes;
    for (const Part &part : parts) {
        chunk = std::min<uint64_t>(chunk, kBlockBytes / part.size);
    }
    const MaskState state = MaskOf(v);
    const uint64_t lanes = kRepeatBytes / widest;
    if (!state.counter) {
        const uint64_t kept = std::min<uint64_t>(lanes, 128);
        const uint64_t leading = Leading(state.mask, kept);
        const Pattern pattern{{state.mask[0], state.mask[1]}, kept,
                              leading != 0 && Dense(parts) ? kept : chunk, leading};
        runs.reserve(v.lanes.repeats * ((lanes + pattern.chunk - 1) / pattern.chunk));
        for (uint64_t r = 0; r < v.lanes.repeats; ++r) {
            Repeat(runs, parts, r, pattern);
        }
        return runs;
    }
    uint64_t left = state.mask[0];
    for (uint64_t r = 0; left != 0; ++r) {
        const uint64_t now = std::min(left, lanes);
        Repeat(runs, parts, r, {{0, 0}, now, Dense(parts) ? now : chunk, now});
        left -= now;
    }
    return runs;
}

bool ValidLanes(const Vector &v, uint32_t widest, Where where)
{
    if (v.lanes.counted) {
        return true;
    }
    if (v.lanes.repeats > kMaxRepeats) {
        Sim().Fail(
            "repeat-limit", where,
            Format("%s: %u repeats, at most %u", NameOf(v.op), v.lanes.repeats, kMaxRepeats));
        return false;
    }
    const uint64_t lanes = kRepeatBytes / widest;
    const uint64_t beyond = lanes >= 128  ? 0
                            : lanes >= 64 ? v.lanes.mask[1]
                                          : v.lanes.mask[1] | (v.lanes.mask[0] >> lanes);
    if (!v.lanes.from_register && !Running().counter_mode && beyond != 0) {
        Sim().Fail("mask-limit", where,
                   Format("%s: the mask selects lanes beyond the %llu of a repeat", NameOf(v.op),
                          static_cast<unsigned long long>(lanes)));
        return false;
    }
    return true;
}

double RepeatsOf(const Vector &v, uint32_t widest)
{
    const uint64_t lanes = kRepeatBytes / widest;
    if (v.lanes.counted) {
        return static_cast<double>((v.lanes.count + lanes - 1) / lanes);
    }
    const MaskState state = MaskOf(v);
    return static_cast<double>(state.counter ? (state.mask[0] + lanes - 1) / lanes
                                             : v.lanes.repeats);
}

double BankConflicts(const Vector &v, double repeats)
{
    const Chip &chip = Sim().chip;
    // Blocks of two operands that fall into one bank group in the same cycle, as a share of eight.
    const auto overlap = [](const Operand &a, const Operand &b) {
        const int64_t shift = static_cast<int64_t>((a.at / kBlockBytes) % kBanks) -
                              static_cast<int64_t>((b.at / kBlockBytes) % kBanks);
        const int64_t apart = std::min((shift + 16) % 16, (16 - shift) % 16);
        return std::max<int64_t>(0, 8 - apart) / 8.0;
    };
    double cycles = 0;
    if (v.sources >= 2 && v.src[0].at != v.src[1].at) {
        cycles += overlap(v.src[0], v.src[1]) * chip.bank_read_read;
    }
    double worst = 0;
    for (int i = 0; i < v.sources; ++i) {
        // A result in place is written after it was read: no conflict of its own.
        if (v.src[i].at != v.dst.at && v.src[i].at / kBankColumn == v.dst.at / kBankColumn) {
            worst = std::max(worst, overlap(v.src[i], v.dst) * chip.bank_read_write);
        }
    }
    const auto strided = [](Stride stride) {
        const double rows = stride.block % 16 == 0  ? 8
                            : stride.block % 8 == 0 ? 4
                            : stride.block % 4 == 0 ? 2
                                                    : 1;
        return stride.block == 0 ? 0.0 : rows - 1;
    };
    if (!v.lanes.counted) {
        cycles += strided(v.dst_stride);
        for (int i = 0; i < v.sources; ++i) {
            cycles += strided(v.src_stride[i]);
        }
    }
    return (cycles + worst) * repeats;
}

namespace
{

struct Stretch {
    uint64_t low, high;
};

// One operand's runs, joined where they follow each other. False where one is out of bounds.
bool Stretches(const Instruction &instruction, const Part &part, size_t index,
               const std::vector<Run> &runs, std::vector<Stretch> &found)
{
    const size_t first = found.size();
    for (Run run : runs) {
        const uint64_t at = part.operand->at + OffsetOf(run, index);
        const uint64_t end = at + run.lanes * part.size;
        if (found.size() > first && found.back().high == at) {
            found.back().high = end;
        } else {
            found.push_back({at, end});
        }
    }
    for (size_t i = first; i < found.size(); ++i) {
        if (!instruction.Legal(*part.operand, found[i].low, found[i].high, 1)) {
            return false;
        }
    }
    return true;
}

// Sources that lie between each other are read as one: their shadows stay whole.
void Join(std::vector<Stretch> &found)
{
    std::sort(found.begin(), found.end(),
              [](const Stretch &a, const Stretch &b) { return a.low < b.low; });
    size_t last = 0;
    for (size_t i = 1; i < found.size(); ++i) {
        if (found[i].low <= found[last].high) {
            found[last].high = std::max(found[last].high, found[i].high);
        } else {
            found[++last] = found[i];
        }
    }
    found.resize(std::min(found.size(), last + 1));
}

}  // namespace

bool Touches(Instruction &instruction, const Vector &v, const std::vector<Run> &runs)
{
    const std::vector<Part> parts = PartsOf(v);
    for (const Part &part : parts) {
        if (part.operand->memory != Memory::UB) {
            Sim().Fail("operand-memory", instruction.where(), "vector operands lie in UB");
            return false;
        }
        if (!instruction.Legal(*part.operand, part.operand->at, part.operand->at, kBlockBytes)) {
            return false;
        }
    }
    std::vector<Stretch> read, written;
    for (size_t p = v.reads_dst ? 0 : 1; p < parts.size(); ++p) {
        if (!Stretches(instruction, parts[p], p, runs, read)) {
            return false;
        }
    }
    if (!Stretches(instruction, parts[0], 0, runs, written)) {
        return false;
    }
    Join(read);
    for (const Stretch &stretch : read) {
        instruction.Read(*parts.back().operand, stretch.low, stretch.high);
    }
    for (const Stretch &stretch : written) {
        instruction.Write(v.dst, stretch.low, stretch.high);
    }
    return true;
}

bool Reads(Instruction &instruction, const Operand &operand, uint64_t at, uint64_t bytes,
           uint64_t align)
{
    if (!instruction.Legal(operand, at, at + bytes, align)) {
        return false;
    }
    instruction.Read(operand, at, at + bytes);
    return true;
}

bool Writes(Instruction &instruction, const Operand &operand, uint64_t at, uint64_t bytes,
            uint64_t align)
{
    if (!instruction.Legal(operand, at, at + bytes, align)) {
        return false;
    }
    instruction.Write(operand, at, at + bytes);
    return true;
}

float LoadLane(Type type, const uint8_t *at)
{
    if (type == Type::F16) {
        _Float16 half;
        std::memcpy(&half, at, 2);
        return static_cast<float>(half);
    }
    float value;
    std::memcpy(&value, at, 4);
    return value;
}

void StoreLane(Type type, uint8_t *at, float value)
{
    if (type == Type::F16) {
        const _Float16 half = static_cast<_Float16>(value);
        std::memcpy(at, &half, 2);
        return;
    }
    std::memcpy(at, &value, 4);
}

void Price(Instruction &instruction, const Vector &v, uint32_t widest)
{
    const Chip &chip = Sim().chip;
    const double repeats = RepeatsOf(v, widest);
    const int op = static_cast<int>(v.op);
    const double cycles = repeats * chip.repeat[op] + BankConflicts(v, repeats) + chip.fixed[op];
    instruction.Run(cycles, chip.vector_start);
}

}  // namespace gafsim

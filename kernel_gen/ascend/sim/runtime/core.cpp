#include "core.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace gafsim
{

namespace
{

constexpr size_t kMaxFailures = 64;

}  // namespace

const char *NameOf(Pipe pipe)
{
    static const char *const names[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"};
    return names[static_cast<int>(pipe)];
}

const char *NameOf(Memory memory)
{
    static const char *const names[] = {"UB", "L1", "L0A", "L0B", "L0C", "BT", "FB", "GM"};
    return names[static_cast<int>(memory)];
}

const char *NameOf(Type type)
{
    static const char *const names[] = {"half",     "bfloat16_t", "float",    "int8_t",
                                        "uint8_t",  "int16_t",    "uint16_t", "int32_t",
                                        "uint32_t", "int64_t",    "uint64_t"};
    return names[static_cast<int>(type)];
}

uint32_t SizeOf(Type type)
{
    static const uint32_t sizes[] = {2, 2, 4, 1, 1, 2, 2, 4, 4, 8, 8};
    return sizes[static_cast<int>(type)];
}

uint8_t *BytesAt(Core &core, const Operand &operand)
{
    if (operand.memory == Memory::GM) {
        return reinterpret_cast<uint8_t *>(operand.at);
    }
    return core.bytes[static_cast<int>(operand.memory)].data() + operand.at;
}

std::string Format(const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return text;
}

void Clock::Join(const Clock &other)
{
    for (int i = 0; i < kPipes; ++i) {
        own[i] = std::max(own[i], other.own[i]);
    }
    if (other.others.empty()) {
        return;
    }
    others.resize(std::max(others.size(), other.others.size()));
    for (size_t i = 0; i < other.others.size(); ++i) {
        others[i] = std::max(others[i], other.others[i]);
    }
}

double Channel::Serve(double start, double cycles)
{
    double at = start;
    double left = cycles;
    auto next = busy_.upper_bound(at);
    if (next != busy_.begin() && std::prev(next)->second > at) {
        at = std::prev(next)->second;
    }
    double from = at;
    while (next != busy_.end() && next->first - at < left) {
        left -= next->first - at;
        at = next->second;
        next = busy_.erase(next);
    }
    const double end = at + left;
    auto before = busy_.upper_bound(from);
    if (before != busy_.begin() && std::prev(before)->second >= from) {
        std::prev(before)->second = end;
    } else {
        busy_.emplace(from, end);
    }
    return end;
}

double Core::End() const
{
    double end = now;
    for (const PipeState &pipe : pipes) {
        end = std::max(end, pipe.done);
    }
    return end;
}

void Simulation::Fail(const char *code, Where where, std::string message)
{
    for (Failure &failure : failures) {
        if (failure.where.line == where.line && failure.code == code) {
            ++failure.count;
            return;
        }
    }
    if (failures.size() < kMaxFailures) {
        failures.push_back({code, where, std::move(message), Running().block, 1});
    }
}

void Simulation::Kill()
{
    Core &core = Running();
    core.life = Life::Dead;
    swapcontext(&core.context, &scheduler);
    __builtin_unreachable();
}

void Simulation::Wait(std::function<bool()> can_go)
{
    if (can_go()) {
        return;
    }
    Core &core = Running();
    core.can_go = std::move(can_go);
    core.life = Life::Waiting;
    swapcontext(&core.context, &scheduler);
}

GlobalBuffer *Simulation::Find(uint64_t address)
{
    for (GlobalBuffer &buffer : buffers) {
        if (address >= buffer.low && address < buffer.low + buffer.bytes) {
            return &buffer;
        }
    }
    return nullptr;
}

Release ReleaseOf(Core &core, Pipe pipe)
{
    const int p = static_cast<int>(pipe);
    PipeState &state = core.pipes[p];
    Release release{state.known, pipe == Pipe::S ? core.now : std::max(state.done, state.ready)};
    if (pipe != Pipe::S) {
        // What the scalar unit waited for before it issued this also comes first.
        Clock scalar = core.pipes[0].known;
        scalar.own[0] = 0;
        release.clock.Join(scalar);
        release.time = std::max(release.time, core.now);
    }
    release.clock.own[p] = state.issued;
    return release;
}

void Acquire(Core &core, Pipe pipe, const Release &release)
{
    PipeState &state = core.pipes[static_cast<int>(pipe)];
    state.known.Join(release.clock);
    if (pipe == Pipe::S) {
        core.now = std::max(core.now, release.time);
    } else {
        state.ready = std::max(state.ready, release.time);
    }
}

Instruction::Instruction(Op op, Pipe pipe, Where where)
    : core_(Running()), op_(op), pipe_(pipe), where_(where),
      number_(++core_.pipes[static_cast<int>(pipe)].issued)
{
    ++Sim().instructions;
}

bool Instruction::Ordered(const Touch &touch) const
{
    const int p = static_cast<int>(touch.pipe);
    const Clock &known = core_.pipes[static_cast<int>(pipe_)].known;
    const Clock &scalar = core_.pipes[0].known;
    if (touch.core == core_.index) {
        if (touch.pipe == pipe_ && (touch.number == number_ || pipe_ == Pipe::S)) {
            return true;
        }
        if (known.own[p] >= touch.number) {
            return true;
        }
        return touch.pipe != Pipe::S && scalar.own[p] >= touch.number;
    }
    const size_t at = size_t{touch.core} * kPipes + p;
    return (at < known.others.size() && known.others[at] >= touch.number) ||
           (at < scalar.others.size() && scalar.others[at] >= touch.number);
}

void Instruction::Race(const char *kind, const Operand &operand, uint64_t low,
                       const Touch &other) const
{
    const bool apart = other.core != core_.index;
    const uint64_t base = operand.memory == Memory::GM ? Sim().Find(low)->low : 0;
    const char *fix = apart                 ? "no flag between the cores"
                      : other.pipe == pipe_ ? "no PipeBarrier between them"
                                            : "no event between the pipes";
    Sim().Fail(apart ? "race-cores" : "race", where_,
               Format("%s of %s byte %llu on pipe %s: unordered with line %d on pipe %s%s (%s), %s",
                      NameOf(op_), NameOf(operand.memory),
                      static_cast<unsigned long long>(low - base), NameOf(pipe_), other.where.line,
                      NameOf(other.pipe), apart ? " of another core" : "", kind, fix));
}

bool Instruction::Legal(const Operand &operand, uint64_t low, uint64_t high, uint64_t align) const
{
    Simulation &sim = Sim();
    const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
    if (operand.memory == Memory::GM) {
        const GlobalBuffer *buffer = sim.Find(operand.low);
        if (low % SizeOf(operand.type) != 0) {
            sim.Fail("gm-alignment", where_,
                     Format("%s: GM address is not a multiple of sizeof(%s)", NameOf(op_),
                            NameOf(operand.type)));
            return false;
        }
        if (buffer == nullptr || low < buffer->low || high > buffer->low + buffer->bytes) {
            sim.Fail("gm-out-of-bounds", where_,
                     buffer == nullptr
                         ? Format("%s: GM address outside of every argument", NameOf(op_))
                         : Format("%s: bytes %llu to %llu of an argument of %llu B", NameOf(op_),
                                  number(low - buffer->low), number(high - buffer->low),
                                  number(buffer->bytes)));
            return false;
        }
        return true;
    }
    if (low % align != 0) {
        sim.Fail("alignment", where_,
                 Format("%s: %s address %llu is not a multiple of %llu", NameOf(op_),
                        NameOf(operand.memory), number(low), number(align)));
        return false;
    }
    if (low < operand.low || high > operand.high) {
        sim.Fail("local-out-of-bounds", where_,
                 Format("%s: %s bytes %llu to %llu, the buffer is %llu to %llu", NameOf(op_),
                        NameOf(operand.memory), number(low), number(high), number(operand.low),
                        number(operand.high)));
        return false;
    }
    return true;
}

void Instruction::Read(const Operand &operand, uint64_t low, uint64_t high)
{
    if (!Sim().order || low >= high) {
        return;
    }
    if (operand.memory == Memory::GM) {
        ReadGlobal(operand, low, high);
        return;
    }
    const Touch own = Own();
    core_.shadows[static_cast<int>(operand.memory)].Each(low, high, [&](uint64_t at, Span &span) {
        if (!span.written) {
            Sim().Fail(
                "uninitialised", where_,
                Format("%s reads %s bytes %llu to %llu, which nothing has written", NameOf(op_),
                       NameOf(operand.memory), static_cast<unsigned long long>(at),
                       static_cast<unsigned long long>(span.end)));
        }
        if (span.writer.number != 0 && !Ordered(span.writer)) {
            Race("read after write", operand, at, span.writer);
        }
        span.ReadBy(own);
    });
}

void Instruction::Write(const Operand &operand, uint64_t low, uint64_t high)
{
    if (!Sim().order || low >= high) {
        return;
    }
    if (operand.memory == Memory::GM) {
        WriteGlobal(operand, low, high);
        return;
    }
    Shadow &shadow = core_.shadows[static_cast<int>(operand.memory)];
    shadow.Each(low, high, [&](uint64_t at, Span &span) {
        if (span.writer.number != 0 && !Ordered(span.writer)) {
            Race("write after write", operand, at, span.writer);
        }
        for (const Touch &reader : span.readers) {
            if (!Ordered(reader)) {
                Race("write after read", operand, at, reader);
            }
        }
    });
    shadow.Overwrite(low, high, Own());
}

void Instruction::ReadGlobal(const Operand &operand, uint64_t low, uint64_t high)
{
    GlobalBuffer *buffer = Sim().Find(low);
    if (buffer->role == Role::Input || buffer->role == Role::Tiling) {
        return;  // nobody may write there
    }
    const Touch own = Own();
    buffer->shadow.Each(low, high, [&](uint64_t at, Span &span) {
        if (!span.written) {
            Sim().Fail("gm-uninitialised", where_,
                       Format("%s reads GM bytes from %llu, which nothing has written", NameOf(op_),
                              static_cast<unsigned long long>(at - buffer->low)));
        }
        if (span.writer.number != 0 && !Ordered(span.writer)) {
            Race("read after write", operand, at, span.writer);
        }
        span.ReadBy(own);
    });
}

void Instruction::WriteGlobal(const Operand &operand, uint64_t low, uint64_t high)
{
    GlobalBuffer *buffer = Sim().Find(low);
    if (buffer->role == Role::Input || buffer->role == Role::Tiling) {
        Sim().Fail("gm-input-written", where_,
                   Format("%s writes to an input of the kernel", NameOf(op_)));
        return;
    }
    Touch own = Own();
    own.atomic = core_.atomic != 0;
    buffer->shadow.Each(low, high, [&](uint64_t at, Span &span) {
        if (own.atomic && !span.written) {
            Sim().Fail("gm-uninitialised", where_,
                       Format("atomic %s into GM bytes from %llu, which nothing has written",
                              NameOf(op_), static_cast<unsigned long long>(at - buffer->low)));
        }
        const bool commute = own.atomic && span.writer.atomic;
        if (span.writer.number != 0 && !commute && !Ordered(span.writer)) {
            Race("write after write", operand, at, span.writer);
        }
        for (const Touch &reader : span.readers) {
            if (!Ordered(reader)) {
                Race("write after read", operand, at, reader);
            }
        }
    });
    buffer->shadow.Overwrite(low, high, own);
}

void Instruction::Run(double occupancy, double latency)
{
    Simulation &sim = Sim();
    if (!sim.timing) {
        return;
    }
    PipeState &pipe = core_.pipes[static_cast<int>(pipe_)];
    if (pipe_ == Pipe::S) {
        const double start = core_.now;
        core_.now += occupancy + latency;
        pipe.busy += occupancy + latency;
        pipe.done = core_.now;
        if (sim.trace) {
            sim.events.push_back({core_.index, pipe_, op_, start, core_.now, where_.line});
        }
        return;
    }
    core_.now += sim.chip.issue;
    const double start = std::max({core_.now, pipe.free, pipe.ready});
    pipe.free = start + occupancy;
    pipe.done = std::max(pipe.done, pipe.free + latency);
    pipe.busy += occupancy;
    if (sim.trace) {
        sim.events.push_back({core_.index, pipe_, op_, start, pipe.free, where_.line});
    }
}

void Instruction::AfterPrevious()
{
    const int p = static_cast<int>(pipe_);
    core_.pipes[p].known.own[p] = number_ - 1;
}

void Instruction::RunCopy(GlobalBuffer *buffer, double bytes, double moved, bool writes,
                          double at_least)
{
    Simulation &sim = Sim();
    if (!sim.timing) {
        return;
    }
    const Chip &chip = sim.chip;
    PipeState &pipe = core_.pipes[static_cast<int>(pipe_)];
    core_.now += chip.issue;
    const double start = std::max({core_.now, pipe.free, pipe.ready});
    const double share = buffer->hbm_share;
    const double cycles = moved * sim.share * (share / chip.hbm + (1 - share) / chip.l2);
    const double rate = core_.cube ? chip.cube_rate : writes ? chip.write_rate : chip.read_rate;
    const double own = chip.copy_issue + std::max(at_least, moved / rate);
    const double served = sim.groups[core_.group].channel.Serve(start, cycles);
    pipe.free = std::max(start + own, served);
    pipe.done = std::max(pipe.done, pipe.free + (writes ? chip.write_start : chip.read_start));
    pipe.busy += pipe.free - start;
    buffer->requested += bytes;
    if (sim.trace) {
        sim.events.push_back({core_.index, pipe_, op_, start, pipe.free, where_.line});
    }
}

}  // namespace gafsim

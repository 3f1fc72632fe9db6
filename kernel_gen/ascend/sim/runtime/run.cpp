// Runs a kernel: cores as fibres, one after the other, switched where they wait for each other.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>
#include <utility>

#include "core.h"

namespace gafsim
{

namespace
{

constexpr size_t kStack = 256 * 1024;
constexpr int kMaxArguments = 64;
constexpr size_t kMaxTrace = 200000;

thread_local Simulation *current = nullptr;
thread_local Core *running = nullptr;

template <size_t... I>
void CallWith(void *entry, void *const *arguments, std::index_sequence<I...>)
{
    using Kernel = void (*)(decltype(static_cast<void>(I), static_cast<void *>(nullptr))...);
    reinterpret_cast<Kernel>(entry)(arguments[I]...);
}

template <size_t N>
void Call(void *entry, void *const *arguments)
{
    CallWith(entry, arguments, std::make_index_sequence<N>());
}

using Caller = void (*)(void *, void *const *);

template <size_t... N>
Caller CallerOf(size_t count, std::index_sequence<N...>)
{
    static const Caller callers[] = {Call<N>...};
    return callers[count];
}

void Fibre()
{
    Simulation &sim = Sim();
    const size_t count = sim.arguments.size();
    CallerOf(count, std::make_index_sequence<kMaxArguments + 1>())(sim.entry, sim.arguments.data());
    running->life = Life::Ended;
    swapcontext(&running->context, &sim.scheduler);
}

// A kernel that declares no type: vector cores, which may wait for each other.
constexpr int kUndeclared = 2;

bool Mixed(int task)
{
    return task >= 3;
}

int VectorsPerCube(int task)
{
    return task == 5 ? 2 : task == 4 ? 1 : 0;
}

// The first core may turn out to be a cube core after its memories are there: it gets all.
bool Has(const Core &core, Memory memory)
{
    return core.index == 0 || (memory == Memory::UB) != core.cube;
}

void Prepare(Core &core)
{
    const Simulation &sim = Sim();
    for (int m = 0; m < kLocalMemories; ++m) {
        if (!Has(core, static_cast<Memory>(m))) {
            continue;
        }
        const auto bytes = static_cast<size_t>(sim.chip.capacity[m]);
        core.bytes[m].assign(bytes, sim.function ? 0xff : 0);
        core.shadows[m].Reset(0, bytes, false);
    }
    core.stack.reset(new char[kStack]);
    getcontext(&core.context);
    core.context.uc_stack.ss_sp = core.stack.get();
    core.context.uc_stack.ss_size = kStack;
    core.context.uc_link = &Sim().scheduler;
    makecontext(&core.context, Fibre, 0);
    core.now = sim.chip.block_start;
}

std::unique_ptr<Core> NewCore(bool cube, int64_t block, int64_t sub, int group)
{
    auto core = std::make_unique<Core>();
    core->index = static_cast<uint32_t>(Sim().cores.size());
    core->cube = cube;
    core->block = block;
    core->sub = sub;
    core->group = group;
    return core;
}

void Resume(Core &core)
{
    if (core.stack == nullptr) {
        Prepare(core);
    }
    core.life = Life::Ready;
    running = &core;
    swapcontext(&Sim().scheduler, &core.context);
    if (core.life == Life::Ended || core.life == Life::Dead) {
        core.stack.reset();
        for (auto &bytes : core.bytes) {
            std::vector<uint8_t>().swap(bytes);
        }
        for (auto &shadow : core.shadows) {
            shadow = Shadow();
        }
    }
}

// Flags and tensors that nobody has waited for.
void CheckEnd(Core &core)
{
    running = &core;
    static const char *const kHint = "each one needs its counterpart";
    for (const auto &[key, event] : core.events) {
        if (event.set) {
            Sim().Fail("event-unmatched", event.where,
                       Format("SetFlag of event %d without a WaitFlag; %s", key % 8, kHint));
        }
    }
    for (const auto &[key, queue] : core.queues) {
        for (int index : queue.filled) {
            Sim().Fail("queue-unmatched", queue.buffers[index].where,
                       Format("EnQue without a DeQue; %s", kHint));
        }
    }
    for (const auto &[key, pending] : core.flags) {
        if (!pending.empty()) {
            Sim().Fail("core-flag-unmatched", {nullptr, 0},
                       Format("cross-core flag %d set and not waited for; %s", key / 4096, kHint));
        }
    }
}

// The first core alone knows the task type, once it has declared it.
void AddCores()
{
    Simulation &sim = Sim();
    const int task = sim.task;
    const int vectors = VectorsPerCube(task);
    Core &first = *sim.cores.front();
    const bool cube = task == 1 || Mixed(task);
    first.cube = cube;
    for (int64_t block = 0; block < sim.blocks; ++block) {
        if (block != 0) {
            sim.groups.emplace_back();
            sim.cores.push_back(NewCore(cube, block, 0, static_cast<int>(block)));
        }
        for (int v = 0; v < vectors; ++v) {
            sim.cores.push_back(NewCore(false, block * vectors + v, v, static_cast<int>(block)));
        }
    }
}

bool Runnable(const Core &core)
{
    return core.life == Life::Ready || (core.life == Life::Waiting && core.can_go());
}

void Schedule()
{
    Simulation &sim = Sim();
    bool progress = true;
    while (progress) {
        progress = false;
        for (size_t i = 0; i < sim.cores.size(); ++i) {  // may grow in the first step
            Core &core = *sim.cores[i];
            if (Runnable(core)) {
                Resume(core);
                progress = true;
            }
        }
    }
    for (auto &core : sim.cores) {
        if (core->life == Life::Waiting) {
            running = core.get();
            sim.Fail("core-hang", {nullptr, 0},
                     Format("%s core of block %lld waits for a flag that nobody sets",
                            core->cube ? "cube" : "vector", static_cast<long long>(core->block)));
        }
    }
    for (auto &core : sim.cores) {
        if (core->life == Life::Ended) {
            CheckEnd(*core);
        }
    }
}

double Units(const Simulation &sim)
{
    return sim.task == 1 || Mixed(sim.task) ? sim.chip.cube_cores : sim.chip.vector_cores;
}

void Pass()
{
    Simulation &sim = Sim();
    sim.cores.clear();
    sim.groups.assign(1, Group());
    sim.events.clear();
    sim.task = kUndeclared;
    sim.arrived = sim.rounds = 0;
    sim.meeting = sim.met = {};
    sim.cores.push_back(NewCore(false, 0, 0, 0));
    sim.started = false;
    // The first API call other than DeclareTask adds the other cores.
    sim.share = static_cast<double>(sim.blocks);
    Schedule();
}

// Blocks beyond the number of cores run after one another on the same core.
double Makespan(const Simulation &sim)
{
    const auto units = static_cast<size_t>(Units(sim));
    std::vector<double> group_end(sim.groups.size(), 0);
    for (const auto &core : sim.cores) {
        group_end[core->group] = std::max(group_end[core->group], core->End());
    }
    std::vector<double> slots(std::min(units, group_end.size()), 0);
    double end = 0;
    for (size_t g = 0; g < group_end.size(); ++g) {
        double &slot = *std::min_element(slots.begin(), slots.end());
        slot += group_end[g];
        end = std::max(end, slot);
    }
    return end;
}

void Escape(std::ostream &out, const std::string &text)
{
    out << '"';
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            out << '\\' << c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out << ' ';
        } else {
            out << c;
        }
    }
    out << '"';
}

void WriteFailures(std::ostream &out)
{
    bool first = true;
    out << "\"failures\":[";
    for (const Failure &f : Sim().failures) {
        out << (first ? "" : ",") << "{\"code\":\"" << f.code << "\",\"file\":";
        Escape(out, f.where.file == nullptr ? "" : f.where.file);
        out << ",\"line\":" << f.where.line << ",\"block\":" << f.block << ",\"count\":" << f.count
            << ",\"message\":";
        Escape(out, f.message);
        out << "}";
        first = false;
    }
    out << "]";
}

void WriteTrace(std::ostream &out)
{
    const Simulation &sim = Sim();
    out << ",\"trace\":[";
    const size_t count = std::min(sim.events.size(), kMaxTrace);
    for (size_t i = 0; i < count; ++i) {
        const TraceEvent &e = sim.events[i];
        const Core &core = *sim.cores[e.core];
        out << (i == 0 ? "" : ",") << "[\"" << NameOf(e.op) << "\",\"" << NameOf(e.pipe) << "\","
            << (core.cube ? "true" : "false") << "," << core.block << "," << e.start << ","
            << e.end - e.start << "," << e.line << "]";
    }
    out << "]";
}

std::string Report(double cycles)
{
    const Simulation &sim = Sim();
    std::ostringstream out;
    out.precision(12);
    out << "{\"cycles\":" << cycles << ",\"instructions\":" << sim.instructions
        << ",\"cores\":" << sim.cores.size() << ",\"task\":" << sim.task << ",\"busy\":{";
    for (int p = 0; p < kPipes; ++p) {
        double most = 0;
        for (const auto &core : sim.cores) {
            most = std::max(most, core->pipes[p].busy / std::max(1.0, core->End()));
        }
        out << (p == 0 ? "" : ",") << "\"" << NameOf(static_cast<Pipe>(p)) << "\":" << most;
    }
    double requested = 0, hbm = 0;
    for (const GlobalBuffer &buffer : sim.buffers) {
        requested += buffer.total;
        hbm += buffer.total * buffer.hbm_share;
    }
    out << "},\"gm_bytes\":" << requested << ",\"hbm_bytes\":" << hbm << ",";
    WriteFailures(out);
    if (sim.trace) {
        WriteTrace(out);
    }
    out << "}";
    return out.str();
}

// Bytes asked for more than once come out of L2 the second time.
bool ShareTraffic(Simulation &sim)
{
    bool changed = false;
    for (GlobalBuffer &buffer : sim.buffers) {
        const double size = static_cast<double>(buffer.bytes);
        const double share = buffer.requested > size ? size / buffer.requested : 1.0;
        changed = changed || share != buffer.hbm_share;
        buffer.hbm_share = share;
        buffer.total = buffer.requested;
        buffer.requested = 0;
    }
    return changed;
}

struct Wanted {
    bool check, timing, trace, order;
};

std::string Execute(Simulation &sim, const Wanted &wanted)
{
    double cycles = 0;
    if (wanted.check) {
        sim.function = true;
        sim.order = wanted.order;
        sim.timing = false;
        sim.trace = false;
        sim.scalars_look = false;
        for (GlobalBuffer &buffer : sim.buffers) {
            const bool given = buffer.role == Role::Input || buffer.role == Role::Tiling;
            buffer.shadow.Reset(buffer.low, buffer.low + buffer.bytes, given);
        }
        Pass();
    }
    if (wanted.timing && sim.failures.empty()) {
        sim.function = sim.order = false;
        sim.timing = true;
        sim.trace = wanted.trace;
        Pass();
        if (ShareTraffic(sim)) {
            Pass();
        }
        cycles = Makespan(sim);
    }
    return Report(cycles);
}

}  // namespace

Simulation &Sim()
{
    return *current;
}

Core &Running()
{
    if (!current->started) {
        current->started = true;
        AddCores();
    }
    return *running;
}

void DeclareTask(int kind)
{
    Sim().task = kind;
}
bool IsCubeCore()
{
    return Running().cube;
}
int64_t BlockIndex()
{
    return Running().block;
}
int64_t BlockCount()
{
    return Sim().blocks;
}
int64_t SubBlockIndex()
{
    return Running().sub;
}
int64_t SubBlockCount()
{
    return std::max(1, VectorsPerCube(Sim().task));
}
int64_t TaskRatio()
{
    return Running().cube ? 1 : std::max(1, VectorsPerCube(Sim().task));
}

}  // namespace gafsim

extern "C" {

struct GafSimBuffer {
    void *data;
    uint64_t bytes;
    int role;
};

// Runs `entry` with the buffers as arguments, in order. Returns a JSON text that lives until the
// next call on this thread; `flags` are 1 check, 2 timing, 4 trace, 8 order, where it checks.
const char *gafsim_run(void *entry, const GafSimBuffer *buffers, int count, int64_t blocks,
                       const char *chip, int flags)
{
    using namespace gafsim;
    static thread_local std::string text;
    Simulation sim;
    const std::string problem =
        count > kMaxArguments ? "more than 64 arguments" : ParseChip(chip, sim.chip);
    if (!problem.empty()) {
        text = "{\"error\":\"" + problem + "\"}";
        return text.c_str();
    }
    sim.entry = entry;
    sim.blocks = blocks;
    for (int i = 0; i < count; ++i) {
        sim.arguments.push_back(buffers[i].data);
        GlobalBuffer buffer;
        buffer.low = reinterpret_cast<uint64_t>(buffers[i].data);
        buffer.bytes = buffers[i].bytes;
        buffer.role = static_cast<Role>(buffers[i].role);
        sim.buffers.push_back(std::move(buffer));
    }
    current = &sim;
    text = Execute(sim, {(flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0});
    current = nullptr;
    return text.c_str();
}
}

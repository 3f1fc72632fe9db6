// Events between pipes, barriers, and what makes cores wait for each other.

#include <algorithm>

#include "core.h"

namespace gafsim
{

namespace
{

constexpr int kEvents = 8;
constexpr int kFreeEvents = 6;  // 6 and 7 are reserved
constexpr size_t kFlagCount = 15;

int KeyOf(Pipe from, Pipe to, int id)
{
    return (static_cast<int>(from) * kPipes + static_cast<int>(to)) * kEvents + id;
}

bool ValidId(Op op, int id, Where where)
{
    if (id >= 0 && id < kFreeEvents) {
        return true;
    }
    Sim().Fail("event-id", where,
               Format("%s: event %d, usable are 0 to %d", NameOf(op), id, kFreeEvents - 1));
    return false;
}

// A user's event that a queue holds at the moment: both would set the same flag.
bool HeldByQueue(const Event &event, Op op, Pipe from, Pipe to, int id, Where where)
{
    if (event.queued) {
        Sim().Fail("event-conflict", where,
                   Format("%s %s to %s, event %d: a queue uses it; take one from FetchEventID",
                          NameOf(op), NameOf(from), NameOf(to), id));
    }
    return event.queued;
}

// The release as other cores see it: the own pipes move to the core's place among all.
Release Globally(const Core &core, const Release &release)
{
    Release global;
    global.time = release.time;
    global.clock.others = release.clock.others;
    global.clock.others.resize(Sim().cores.size() * kPipes);
    for (int p = 0; p < kPipes; ++p) {
        uint32_t &place = global.clock.others[size_t{core.index} * kPipes + p];
        place = std::max(place, release.clock.own[p]);
    }
    return global;
}

void AcquireGlobally(Core &core, Pipe pipe, Release release)
{
    release.clock.others.resize(std::max(release.clock.others.size(), Sim().cores.size() * kPipes));
    for (int p = 0; p < kPipes; ++p) {
        release.clock.own[p] = release.clock.others[size_t{core.index} * kPipes + p];
    }
    Acquire(core, pipe, release);
}

}  // namespace

int TakeEvent(Core &core, Pipe from, Pipe to, Where where)
{
    for (int id = 0; id < kEvents; ++id) {
        Event &event = core.events[KeyOf(from, to, id)];
        if (!event.owned && !event.queued && !event.set) {
            event.queued = true;
            return id;
        }
    }
    Sim().Fail("event-exhausted", where,
               Format("a queue finds no free event from %s to %s", NameOf(from), NameOf(to)));
    return -1;
}

void GiveEvent(Core &core, Pipe from, Pipe to, int id)
{
    if (id >= 0) {
        core.events[KeyOf(from, to, id)].queued = false;
    }
}

void SetEvent(Pipe from, Pipe to, int id, Where where)
{
    if (!ValidId(Op::SetFlag, id, where)) {
        return;
    }
    Core &core = Running();
    Event &event = core.events[KeyOf(from, to, id)];
    if (HeldByQueue(event, Op::SetFlag, from, to, id, where)) {
        return;
    }
    if (event.set) {
        Sim().Fail("event-repeated", where,
                   Format("SetFlag %s to %s, event %d: already set on line %d and not waited for",
                          NameOf(from), NameOf(to), id, event.where.line));
    }
    core.now += Sim().chip.fixed[static_cast<int>(Op::SetFlag)];
    event.set = true;
    event.where = where;
    event.release = ReleaseOf(core, from);
    event.release.time += Sim().chip.event;
}

void WaitEvent(Pipe from, Pipe to, int id, Where where)
{
    if (!ValidId(Op::WaitFlag, id, where)) {
        return;
    }
    Core &core = Running();
    Event &event = core.events[KeyOf(from, to, id)];
    if (!event.set) {
        Sim().Fail("event-unset", where,
                   Format("WaitFlag %s to %s, event %d: nothing set it; the chip would hang",
                          NameOf(from), NameOf(to), id));
        Sim().Kill();
    }
    core.now += Sim().chip.fixed[static_cast<int>(Op::WaitFlag)];
    event.set = false;
    Acquire(core, to, event.release);
}

int AllocEvent(Pipe from, Pipe to, Where where)
{
    Core &core = Running();
    for (int id = 0; id < kFreeEvents; ++id) {
        Event &event = core.events[KeyOf(from, to, id)];
        if (!event.owned && !event.queued && !event.set) {
            event.owned = true;
            return id;
        }
    }
    Sim().Fail(
        "event-exhausted", where,
        Format("AllocEventID: all events from %s to %s are in use", NameOf(from), NameOf(to)));
    return 0;
}

int FetchEvent(Pipe from, Pipe to, Where where)
{
    Core &core = Running();
    for (int id = 0; id < kFreeEvents; ++id) {
        const Event &event = core.events[KeyOf(from, to, id)];
        if (!event.owned && !event.queued && !event.set) {
            return id;
        }
    }
    Sim().Fail(
        "event-exhausted", where,
        Format("FetchEventID: all events from %s to %s are in use", NameOf(from), NameOf(to)));
    return 0;
}

void ReleaseEvent(Pipe from, Pipe to, int id, Where where)
{
    if (!ValidId(Op::SetFlag, id, where)) {
        return;
    }
    Event &event = Running().events[KeyOf(from, to, id)];
    if (!event.owned) {
        Sim().Fail("event-unowned", where,
                   Format("ReleaseEventID: event %d was not allocated", id));
    }
    event.owned = false;
}

void Barrier(Pipe pipe, Where)
{
    Core &core = Running();
    core.now += Sim().chip.fixed[static_cast<int>(Op::PipeBarrier)];
    if (pipe != Pipe::ALL) {
        PipeState &state = core.pipes[static_cast<int>(pipe)];
        state.known.own[static_cast<int>(pipe)] = state.issued;
        state.ready = std::max(state.ready, state.done);
        return;
    }
    Release all;
    for (int p = 0; p < kPipes; ++p) {
        const Release one = ReleaseOf(core, static_cast<Pipe>(p));
        all.clock.Join(one.clock);
        all.time = std::max(all.time, one.time);
    }
    for (int p = 0; p < kPipes; ++p) {
        Acquire(core, static_cast<Pipe>(p), all);
    }
}

namespace
{

// Kernels of type AIV_ONLY and AIC_ONLY run without what lets cores wait for each other.
bool CanMeet(const char *call, Where where)
{
    Simulation &sim = Sim();
    if (sim.task > 1) {
        return true;
    }
    sim.Fail("sync-kind", where,
             Format("%s in a kernel of type %s, whose cores cannot wait for each other", call,
                    sim.task == 0 ? "AIV_ONLY" : "AIC_ONLY"));
    return false;
}

}  // namespace

void SyncCores(bool vector_only, Where where)
{
    Simulation &sim = Sim();
    Core &core = Running();
    Barrier(Pipe::ALL, where);
    if (!CanMeet("SyncAll", where)) {
        return;
    }
    if (vector_only && core.cube) {
        sim.Fail("sync-kind", where, "SyncAll<true> is for vector cores, this is a cube core");
        return;
    }
    const uint32_t members = static_cast<uint32_t>(
        std::count_if(sim.cores.begin(), sim.cores.end(),
                      [&](const auto &other) { return !vector_only || !other->cube; }));
    const Release mine = Globally(core, ReleaseOf(core, Pipe::S));
    sim.meeting.clock.Join(mine.clock);
    sim.meeting.time = std::max(sim.meeting.time, mine.time);
    const uint32_t round = sim.rounds;
    if (++sim.arrived == members) {
        sim.arrived = 0;
        ++sim.rounds;
        sim.met = sim.meeting;
        sim.met.time += sim.chip.sync_all;
        sim.meeting = {};
    }
    sim.Wait([&sim, round] { return sim.rounds > round; });
    for (int p = 0; p < kPipes; ++p) {
        AcquireGlobally(core, static_cast<Pipe>(p), sim.met);
    }
}

namespace
{

// Whom a flag of this mode reaches: 0 all cores of the kind, 1 the vector cores of the group, 2 the
// other kind within the group.
bool Reaches(const Core &from, const Core &to, int mode)
{
    switch (mode) {
        case 0: return from.cube == to.cube;
        case 1: return !from.cube && !to.cube && from.group == to.group;
        default: return from.cube != to.cube && from.group == to.group;
    }
}

// How many sets make one flag of `mode` at `core`.
size_t Senders(const Core &core, int mode)
{
    const auto &cores = Sim().cores;
    return static_cast<size_t>(std::count_if(cores.begin(), cores.end(), [&](const auto &other) {
        return Reaches(*other, core, mode);
    }));
}

int FlagKey(int mode, int id, uint32_t sender)
{
    return (id * 4 + mode) * 1024 + static_cast<int>(sender);
}

}  // namespace

void SetCoreFlag(int mode, Pipe pipe, int id, Where where)
{
    Simulation &sim = Sim();
    Core &core = Running();
    core.now += sim.chip.fixed[static_cast<int>(Op::CrossCoreSetFlag)];
    if (mode < 0 || mode > 2 || id < 0 || id > 10) {
        sim.Fail(
            "core-flag", where,
            Format("CrossCoreSetFlag: mode %d, flag %d; usable are 0 to 2 and 0 to 10", mode, id));
        return;
    }
    if (!CanMeet("CrossCoreSetFlag", where)) {
        return;
    }
    Release release = Globally(core, ReleaseOf(core, pipe));
    release.time += sim.chip.core_flag;
    bool reached = false;
    for (auto &other : sim.cores) {
        if (!Reaches(core, *other, mode)) {
            continue;
        }
        reached = true;
        auto &pending = other->flags[FlagKey(mode, id, core.index)];
        if (pending.size() >= kFlagCount) {
            sim.Fail("core-flag-overflow", where,
                     Format("CrossCoreSetFlag: flag %d set %zu times without a wait", id,
                            pending.size() + 1));
        }
        pending.push_back(release);
    }
    if (!reached) {
        sim.Fail("core-flag", where,
                 Format("CrossCoreSetFlag: no core for mode %d; is the task type declared?", mode));
    }
}

void WaitCoreFlag(Pipe pipe, int id, Where where)
{
    Simulation &sim = Sim();
    Core &core = Running();
    core.now += sim.chip.fixed[static_cast<int>(Op::CrossCoreWaitFlag)];
    const auto mode_ready = [&core, id](int mode) {
        size_t have = 0;
        for (const auto &other : Sim().cores) {
            const auto found = core.flags.find(FlagKey(mode, id, other->index));
            have += found != core.flags.end() && !found->second.empty() ? 1 : 0;
        }
        return have > 0 && have == Senders(core, mode);
    };
    const auto ready = [mode_ready] { return mode_ready(0) || mode_ready(1) || mode_ready(2); };
    sim.Wait([ready] { return ready(); });
    (void)where;
    for (int mode = 0; mode <= 2; ++mode) {
        if (!mode_ready(mode)) {
            continue;
        }
        for (const auto &other : sim.cores) {
            const auto found = core.flags.find(FlagKey(mode, id, other->index));
            if (found == core.flags.end() || found->second.empty()) {
                continue;
            }
            AcquireGlobally(core, pipe, found->second.front());
            found->second.pop_front();
        }
        return;
    }
}

}  // namespace gafsim

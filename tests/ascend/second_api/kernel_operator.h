// Functional host model of the part of Ascend C that kernels use, written from its public documentation only.
#pragma once
#include <stdint.h>
#include <algorithm>
#include <array>
#include <cfenv>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <type_traits>
#include <chrono>
#include <limits>
#include <vector>

#define __aicore__
#define __global__
#define __gm__
#define GM_ADDR uint8_t *
#define KERNEL_TASK_TYPE_DEFAULT(kind) static_assert(true, "")

// ---------------------------------------------------------------------------------- scalar types
struct half {
    _Float16 v;
    half() = default;
    half(float x) : v(static_cast<_Float16>(x)) {}
    half(double x) : v(static_cast<_Float16>(x)) {}
    half(int x) : v(static_cast<_Float16>(x)) {}
    operator float() const { return static_cast<float>(v); }
};
struct bfloat16_t {
    uint16_t bits;
};
static_assert(sizeof(half) == 2 && sizeof(bfloat16_t) == 2);

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_ALL, PIPE_MTE4, PIPE_MTE5, PIPE_V2, PIPE_FIX };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };
enum QuantMode_t { NoQuant = 0, F322F16 = 1, F322BF16 = 16, DEQF16 = 5, VDEQF16 = 4, QF322B8_PRE = 24, VQF322B8_PRE = 23, REQ8 = 3, VREQ8 = 2 };

// ---------------------------------------------------------------------------------- the machine
namespace asc_host {
struct Problem : std::runtime_error {
    using std::runtime_error::runtime_error;
};
template <typename... A>
[[noreturn]] inline void Fail(const char *text, A... a)
{
    char line[600];
    std::snprintf(line, sizeof(line), text, a...);
    throw Problem(line);
}
[[noreturn]] inline void Fail(const char *text) { throw Problem(text); }

constexpr uint32_t kUb = 192 * 1024 - 256, kL1 = 512 * 1024, kL0 = 64 * 1024, kL0c = 128 * 1024, kBt = 1024;
enum Memory { GM, UB, L1, L0A, L0B, L0C, BT, kMemories };
inline const char *Name(int m)
{
    const char *names[] = {"GM", "UB", "L1", "L0A", "L0B", "L0C", "BT"};
    return names[m];
}
inline uint32_t Size(int m)
{
    const uint32_t sizes[] = {0, kUb, kL1, kL0, kL0, kL0c, kBt};
    return sizes[m];
}

struct Launch {  // shared by all cores
    std::mutex lock;
    std::condition_variable changed;
    int blocks = 0, ratio = 1;
    bool mixed = false, schedules = false;  // whether the block scheduler for flags runs
    bool stop = false;
    std::string problem;
    // flag -> kind/core -> how often it was set; and counters of each core
    std::map<int, std::map<int, int>> set0[2];
    std::map<int, std::map<int, std::array<int, 2>>> set2;  // flag, group: by the vector cores
    std::map<int, std::map<int, int>> counter[2];            // flag, core
    std::map<int, int> barrier;
    int done0[2][64] = {};
    std::map<int, std::map<int, int>> done2;
};

struct Core {
    Launch *launch = nullptr;
    bool cube = false;
    int block = 0;  // as GetBlockIdx tells
    std::vector<uint8_t> memory[kMemories];
    uint32_t top[kMemories] = {};
    int buffers = 0;
    std::map<int, std::set<int>> held;    // event ids that queues hold, by event
    std::map<std::pair<int, int>, bool> flags;
    void *pipe = nullptr;
    std::map<std::string, long> calls;
};
inline thread_local Core *core = nullptr;

inline std::mutex callsLock;
inline std::map<std::string, long> allCalls;
inline void Called(const std::string &name) { core->calls[name]++; }

inline int TakeEvent(int event)
{
    for (int id = 0; id < 8; id++) {
        if (core->held[event].insert(id).second) {
            return id;
        }
    }
    Fail("no event id left for event %d: queues hold all eight", event);
}
}  // namespace asc_host

namespace AscendC {
using asc_host::Fail;

enum class TPosition : uint8_t { GM, A1, A2, B1, B2, C1, C2, CO1, CO2, VECIN, VECOUT, VECCALC, LCM = VECCALC, SPM, SHM = SPM, TSCM, MAX };
using QuePosition = TPosition;
using TEventID = int8_t;
enum class RoundMode { CAST_NONE = 0, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC, CAST_ODD };
enum class CMPMODE : uint8_t { LT = 0, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR = 0, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class ReduceOrder { ORDER_VALUE_INDEX = 0, ORDER_INDEX_VALUE, ORDER_ONLY_VALUE, ORDER_ONLY_INDEX };
enum class HardEvent : uint8_t {
    MTE2_MTE1, MTE1_MTE2, MTE1_M, M_MTE1, MTE2_V, V_MTE2, MTE3_V, V_MTE3, M_V, V_M, V_V, MTE3_MTE1, MTE1_MTE3, MTE1_V,
    MTE2_M, M_MTE2, V_MTE1, M_FIX, FIX_M, MTE3_MTE2, MTE2_MTE3, S_V, V_S, S_MTE2, MTE2_S, S_MTE3, MTE3_S, MTE2_FIX, FIX_MTE2,
    FIX_S, M_S, FIX_MTE3, MTE1_FIX, FIX_MTE1, FIX_FIX, MAX
};

inline asc_host::Memory MemoryOf(TPosition p)
{
    switch (p) {
        case TPosition::VECIN: case TPosition::VECOUT: case TPosition::VECCALC: return asc_host::UB;
        case TPosition::A1: case TPosition::B1: case TPosition::C1: return asc_host::L1;
        case TPosition::A2: return asc_host::L0A;
        case TPosition::B2: return asc_host::L0B;
        case TPosition::CO1: return asc_host::L0C;
        case TPosition::C2: return asc_host::BT;
        default: Fail("no memory for position %d", int(p));
    }
}

template <typename T>
class LocalTensor {
public:
    LocalTensor() = default;
    LocalTensor(TPosition at, uint8_t *start, uint32_t size) : position(at), data(start), bytes(size) {}
    LocalTensor operator[](uint32_t offset) const
    {
        if (offset * sizeof(T) > bytes) {
            Fail("tensor[%u] of %zu B elements: it has %u B", offset, sizeof(T), bytes);
        }
        return {position, data + offset * sizeof(T), static_cast<uint32_t>(bytes - offset * sizeof(T))};
    }
    template <typename U>
    LocalTensor<U> ReinterpretCast() const { return {position, data, bytes}; }
    T GetValue(uint32_t i) const
    {
        Inside(i, 1);
        T value;
        std::memcpy(&value, data + i * sizeof(T), sizeof(T));
        return value;
    }
    template <typename U>
    void SetValue(uint32_t i, U value) const
    {
        Inside(i, 1);
        const T held = value;
        std::memcpy(data + i * sizeof(T), &held, sizeof(T));
    }
    uint64_t GetPhyAddr() const { return reinterpret_cast<uint64_t>(data); }
    uint64_t GetPhyAddr(uint32_t offset) const { return reinterpret_cast<uint64_t>(data + offset * sizeof(T)); }
    uint32_t GetSize() const { return bytes / sizeof(T); }
    void Inside(uint64_t from, uint64_t count) const
    {
        if ((from + count) * sizeof(T) > bytes) {
            Fail("elements [%llu, +%llu) of %zu B: the tensor has %u B", (unsigned long long)from, (unsigned long long)count, sizeof(T), bytes);
        }
    }
    asc_host::Memory Where() const { return MemoryOf(position); }
    uint64_t Address() const { return data - asc_host::core->memory[Where()].data(); }
    void Aligned(uint32_t to, const char *who) const
    {
        if (data == nullptr) {
            Fail("%s: an empty tensor", who);
        }
        if (Address() % to != 0) {
            Fail("%s: address %llu of %s is no multiple of %u", who, (unsigned long long)Address(), asc_host::Name(Where()), to);
        }
    }
    void In(asc_host::Memory m, const char *who) const
    {
        if (Where() != m) {
            Fail("%s: operand in %s, not in %s", who, asc_host::Name(Where()), asc_host::Name(m));
        }
    }
    TPosition position = TPosition::VECCALC;
    uint8_t *data = nullptr;
    uint32_t bytes = 0;
};

template <typename T>
class GlobalTensor {
public:
    void SetGlobalBuffer(__gm__ T *buffer, uint64_t size) { data = buffer; (void)size; }
    void SetGlobalBuffer(__gm__ T *buffer) { data = buffer; }
    GlobalTensor operator[](uint64_t offset) const
    {
        GlobalTensor made;
        made.data = reinterpret_cast<T *>(reinterpret_cast<uint64_t>(data) + static_cast<int64_t>(offset) * sizeof(T));
        return made;
    }
    T GetValue(uint64_t i) const
    {
        T value;
        std::memcpy(&value, data + i, sizeof(T));
        return value;
    }
    void SetValue(uint64_t i, T value) { std::memcpy(data + i, &value, sizeof(T)); }
    const T *GetPhyAddr() const { return data; }
    T *data = nullptr;
};

// ---------------------------------------------------------------------------------- queues, buffers
struct BufferState {
    uint8_t *data;
    uint32_t bytes;
    bool busy = false;
    int freed = -1, entered = -1;  // event ids
};
class TPipe;

template <TPosition position, int32_t depth, auto mask = 0>
class TQue {
public:
    template <typename T>
    LocalTensor<T> AllocTensor()
    {
        asc_host::Called("TQue::AllocTensor");
        for (auto &b : pool) {
            if (!b.busy) {
                b.busy = true;
                if (b.freed >= 0) {
                    asc_host::core->held[FreeEvent()].erase(b.freed);
                    b.freed = -1;
                }
                return {position, b.data, b.bytes};
            }
        }
        Fail("AllocTensor hangs: all %zu buffers of the queue at position %d are in use", pool.size(), int(position));
    }
    template <typename T>
    bool EnQue(const LocalTensor<T> &t)
    {
        asc_host::Called("TQue::EnQue");
        auto &b = Find(t);
        b.entered = asc_host::TakeEvent(EnterEvent());
        order.push_back(&b);
        if (order.size() > size_t(depth)) {
            Fail("EnQue: %zu tensors in a queue of depth %d", order.size(), depth);
        }
        return true;
    }
    template <typename T>
    LocalTensor<T> DeQue()
    {
        asc_host::Called("TQue::DeQue");
        if (order.empty()) {
            Fail("DeQue hangs: nothing in the queue");
        }
        auto *b = order.front();
        order.pop_front();
        asc_host::core->held[EnterEvent()].erase(b->entered);
        b->entered = -1;
        return {position, b->data, b->bytes};
    }
    template <typename T>
    void FreeTensor(LocalTensor<T> &t)
    {
        asc_host::Called("TQue::FreeTensor");
        auto &b = Find(t);
        b.busy = false;
        b.freed = asc_host::TakeEvent(FreeEvent());
    }
    std::vector<BufferState> pool;

private:
    template <typename T>
    BufferState &Find(const LocalTensor<T> &t)
    {
        for (auto &b : pool) {
            if (b.data == t.data) {
                if (!b.busy) {
                    Fail("a tensor that its queue has not given out");
                }
                return b;
            }
        }
        Fail("a tensor of another queue");
    }
    static int EnterEvent()
    {
        switch (position) {
            case TPosition::VECIN: return int(HardEvent::MTE2_V);
            case TPosition::VECOUT: return int(HardEvent::V_MTE3);
            case TPosition::A1: case TPosition::B1: case TPosition::C1: return int(HardEvent::MTE2_MTE1);
            case TPosition::A2: case TPosition::B2: case TPosition::C2: return int(HardEvent::MTE1_M);
            case TPosition::CO1: return int(HardEvent::M_FIX);
            default: Fail("no queue at this position");
        }
    }
    static int FreeEvent()
    {
        switch (position) {
            case TPosition::VECIN: return int(HardEvent::V_MTE2);
            case TPosition::VECOUT: return int(HardEvent::MTE3_V);
            case TPosition::A1: case TPosition::B1: case TPosition::C1: return int(HardEvent::MTE1_MTE2);
            case TPosition::A2: case TPosition::B2: case TPosition::C2: return int(HardEvent::M_MTE1);
            case TPosition::CO1: return int(HardEvent::FIX_M);
            default: Fail("no queue at this position");
        }
    }
    std::deque<BufferState *> order;
};

template <TPosition position = TPosition::LCM>
class TBuf {
public:
    template <typename T>
    LocalTensor<T> Get()
    {
        asc_host::Called("TBuf::Get");
        return {position, data, bytes};
    }
    template <typename T>
    LocalTensor<T> Get(uint32_t count)
    {
        if (count * sizeof(T) > bytes) {
            Fail("TBuf::Get(%u) of %zu B: it has %u B", count, sizeof(T), bytes);
        }
        return {position, data, static_cast<uint32_t>(count * sizeof(T))};
    }
    uint8_t *data = nullptr;
    uint32_t bytes = 0;
};

class TPipe {
public:
    TPipe()
    {
        if (asc_host::core->pipe != nullptr) {
            Fail("a second TPipe");
        }
        asc_host::core->pipe = this;
    }
    ~TPipe() { asc_host::core->pipe = nullptr; }
    template <TPosition position, int32_t depth, auto mask>
    bool InitBuffer(TQue<position, depth, mask> &queue, uint8_t number, uint32_t bytes)
    {
        asc_host::Called("TPipe::InitBuffer");
        queuesAt[int(position)] += number;
        if (queuesAt[int(position)] > 8) {
            Fail("InitBuffer: %d buffers of queues at position %d; eight at most", queuesAt[int(position)], int(position));
        }
        for (int i = 0; i < number; i++) {
            uint8_t *at = Room(MemoryOf(position), bytes);
            queue.pool.push_back({at, (bytes + 31) / 32 * 32});
        }
        return true;
    }
    template <TPosition position>
    bool InitBuffer(TBuf<position> &buffer, uint32_t bytes)
    {
        asc_host::Called("TPipe::InitBuffer");
        buffer.data = Room(MemoryOf(position), bytes);
        buffer.bytes = (bytes + 31) / 32 * 32;
        return true;
    }
    TEventID FetchEventID(HardEvent event)
    {
        const int id = asc_host::TakeEvent(int(event));
        asc_host::core->held[int(event)].erase(id);
        return static_cast<TEventID>(id);
    }
    template <HardEvent event>
    TEventID FetchEventID() { return FetchEventID(event); }
    void Reset()
    {
        asc_host::Called("TPipe::Reset");
        std::fill_n(asc_host::core->top, int(asc_host::kMemories), 0);
        asc_host::core->buffers = 0;
        asc_host::core->held.clear();
        queuesAt.clear();
        for (int m = asc_host::UB; m < asc_host::kMemories; m++) {  // nothing may rely on what was there
            auto &memory = asc_host::core->memory[m];
            std::fill(memory.begin(), memory.end(), 0xff);
        }
    }
    void Destroy() {}

private:
    uint8_t *Room(asc_host::Memory m, uint32_t bytes)
    {
        auto &top = asc_host::core->top[m];
        bytes = (bytes + 31) / 32 * 32;
        const uint32_t reserved = m == asc_host::UB ? 8192 : 0;  // Select's modes 1 and 2
        if (top + bytes > asc_host::Size(m) - reserved) {
            Fail("InitBuffer: %u B more than %u B of %s", bytes, top, asc_host::Name(m));
        }
        if (++asc_host::core->buffers > 64) {
            Fail("InitBuffer: more than 64 buffers");
        }
        uint8_t *at = asc_host::core->memory[m].data() + top;
        top += bytes;
        return at;
    }
    std::map<int, int> queuesAt;
};
inline TPipe *GetTPipePtr() { return static_cast<TPipe *>(asc_host::core->pipe); }

// ---------------------------------------------------------------------------------- cores and flags
inline int64_t GetBlockIdx() { return asc_host::core->block; }
inline int64_t GetBlockNum() { return asc_host::core->launch->blocks; }
inline int64_t GetTaskRatio()
{
    const auto &l = *asc_host::core->launch;
    return l.mixed && !asc_host::core->cube ? l.ratio : 1;
}
#define ASCEND_IS_AIV (!asc_host::core->cube)
#define ASCEND_IS_AIC (asc_host::core->cube)

template <pipe_t pipe>
inline void PipeBarrier()
{
    static_assert(pipe != PIPE_S, "PipeBarrier knows no PIPE_S");
    asc_host::Called("PipeBarrier");
    if constexpr (pipe == PIPE_ALL) {
        for (auto &[key, set] : asc_host::core->flags) {
            if (set) {
                Fail("PipeBarrier<PIPE_ALL> with event %d id %d set", key.first, key.second);
            }
        }
    }
}
template <HardEvent event>
inline void SetFlag(int32_t id)
{
    asc_host::Called("SetFlag");
    if (id < 0 || id > 7) {
        Fail("event id %d", id);
    }
    auto &set = asc_host::core->flags[{int(event), id}];
    if (set) {
        Fail("SetFlag: event %d id %d is set already", int(event), id);
    }
    set = true;
}
template <HardEvent event>
inline void WaitFlag(int32_t id)
{
    asc_host::Called("WaitFlag");
    auto &set = asc_host::core->flags[{int(event), id}];
    if (!set) {
        Fail("WaitFlag hangs: event %d id %d is not set", int(event), id);
    }
    set = false;
}

inline void FlagSet(int mode, int flag)
{
    using namespace asc_host;
    auto &l = *core->launch;
    if (!l.schedules) {
        Fail("flags between cores in a kernel of type AIV_ONLY or AIC_ONLY");
    }
    if (flag < 0 || flag > 15) {
        Fail("flag %d", flag);
    }
    std::unique_lock<std::mutex> guard(l.lock);
    const int kind = core->cube;
    const int cores = kind ? l.blocks : l.blocks * (l.mixed ? l.ratio : 1);
    const auto raise = [&](int to, int index) {
        if (++l.counter[to][flag][index] > 15) {
            Fail("counter of flag %d beyond 15", flag);
        }
    };
    if (mode == 0) {
        auto &set = l.set0[kind][flag];
        set[core->block]++;
        int least = 1 << 30;
        for (int c = 0; c < cores; c++) {
            least = std::min(least, set[c]);
        }
        for (; l.done0[kind][flag] < least; l.done0[kind][flag]++) {
            for (int c = 0; c < cores; c++) {
                raise(kind, c);
            }
        }
    } else if (mode == 2) {
        if (!l.mixed) {
            Fail("mode 2 without cube and vector cores");
        }
        if (kind) {
            for (int v = 0; v < l.ratio; v++) {
                raise(0, core->block * l.ratio + v);
            }
        } else {
            const int group = core->block / l.ratio;
            auto &set = l.set2[flag][group];
            set[core->block % l.ratio]++;
            const int least = l.ratio == 2 ? std::min(set[0], set[1]) : set[0];
            for (; l.done2[flag][group] < least; l.done2[flag][group]++) {
                raise(1, group);
            }
        }
    } else {
        Fail("CrossCoreSetFlag of mode %d", mode);
    }
    l.changed.notify_all();
}
inline void FlagWait(int flag)
{
    using namespace asc_host;
    auto &l = *core->launch;
    if (!l.schedules) {
        Fail("flags between cores in a kernel of type AIV_ONLY or AIC_ONLY");
    }
    std::unique_lock<std::mutex> guard(l.lock);
    auto &mine = l.counter[core->cube][flag][core->block];
    if (!l.changed.wait_for(guard, std::chrono::seconds(300), [&] { return mine > 0 || l.stop; })) {
        Fail("CrossCoreWaitFlag(%d) hangs", flag);
    }
    if (l.stop) {
        throw Problem("");
    }
    mine--;
}
template <uint8_t mode, pipe_t pipe>
inline void CrossCoreSetFlag(uint16_t flag)
{
    static_assert(pipe != PIPE_S && pipe != PIPE_ALL && mode <= 2);
    asc_host::Called("CrossCoreSetFlag");
    FlagSet(mode, flag);
}
template <uint8_t mode = 0, pipe_t pipe = PIPE_S>
inline void CrossCoreWaitFlag(uint16_t flag)
{
    asc_host::Called("CrossCoreWaitFlag");
    FlagWait(flag);
}
template <bool isAIVOnly = true>
inline void SyncAll()
{
    static_assert(isAIVOnly, "only among vector cores here");
    asc_host::Called("SyncAll");
    if (asc_host::core->cube) {
        Fail("SyncAll<true> on a cube core");
    }
    FlagSet(0, 14);
    FlagWait(14);
}

#include "asc_vector.h"
#include "asc_copy.h"
#include "asc_cube.h"
}  // namespace AscendC

// ---------------------------------------------------------------------------------- launches
namespace asc_host {
struct Kind {
    bool cube = false, vector = true, schedules = false;
};
inline Kind kindOfNextLaunch;
inline std::string lastProblem;

inline void RunCore(Launch &launch, bool cube, int block, const std::function<void()> &kernel)
{
    Core mine;
    mine.launch = &launch;
    mine.cube = cube;
    mine.block = block;
    for (int m = UB; m < kMemories; m++) {
        mine.memory[m].assign(Size(m) + 512, 0xff);
    }
    core = &mine;
    std::string problem;
    try {
        kernel();
        for (auto &[key, set] : mine.flags) {
            if (set) {
                Fail("event %d id %d is set and never waited for", key.first, key.second);
            }
        }
    } catch (const Problem &p) {
        problem = p.what();
    }
    {
        std::lock_guard<std::mutex> guard(launch.lock);
        if (!problem.empty() && launch.problem.empty()) {
            launch.problem = std::string(cube ? "AIC " : "AIV ") + std::to_string(block) + ": " + problem;
        }
        launch.stop = launch.stop || !problem.empty();
        launch.changed.notify_all();
    }
    std::lock_guard<std::mutex> guard(callsLock);
    for (auto &[name, n] : mine.calls) {
        allCalls[name] += n;
    }
}

inline void RunKernel(uint32_t blocks, const std::function<void()> &kernel)
{
    Launch launch;
    launch.blocks = static_cast<int>(blocks);
    launch.mixed = kindOfNextLaunch.cube && kindOfNextLaunch.vector;
    launch.ratio = launch.mixed ? 2 : 1;
    launch.schedules = kindOfNextLaunch.schedules;
    std::vector<std::thread> cores;
    for (int b = 0; b < launch.blocks; b++) {
        if (kindOfNextLaunch.cube) {
            cores.emplace_back([&, b] { RunCore(launch, true, b, kernel); });
        }
        for (int v = 0; kindOfNextLaunch.vector && v < launch.ratio; v++) {
            const int index = b * launch.ratio + v;
            cores.emplace_back([&, index] { RunCore(launch, false, index, kernel); });
        }
    }
    for (auto &c : cores) {
        c.join();
    }
    for (int kind = 0; kind < 2 && launch.problem.empty(); kind++) {
        for (auto &[flag, counters] : launch.counter[kind]) {
            for (auto &[index, n] : counters) {
                if (n != 0) {
                    launch.problem = "flag " + std::to_string(flag) + " was set and never waited for";
                }
            }
        }
    }
    lastProblem = launch.problem;
}
}  // namespace asc_host

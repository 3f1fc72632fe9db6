// The simulated cores: their pipes, clocks, memories, queues and events.
#pragma once

#include <ucontext.h>

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "chip.h"
#include "shadow.h"

namespace gafsim
{

// Instructions known to be complete: per pipe of the own core, and (where cores have met) per pipe
// of all cores, `core * kPipes + pipe`.
struct Clock {
    std::array<uint32_t, kPipes> own{};
    std::vector<uint32_t> others;

    void Join(const Clock &other);
};

// What a flag hands from the pipe that sets it to the one that waits.
struct Release {
    Clock clock;
    double time = 0;
};

struct PipeState {
    uint32_t issued = 0;
    Clock known;
    double free = 0;   // the next instruction may enter
    double ready = 0;  // waits and barriers end
    double done = 0;   // all results are written
    double busy = 0;
};

struct Event {
    bool set = false;
    bool owned = false;   // handed out by AllocEventID
    bool queued = false;  // held by a queue's buffer
    Release release;
    Where where = {nullptr, 0};
};

enum class Slot : uint8_t { Free, Allocated, Queued, Taken };

struct QueueBuffer {
    uint32_t at = 0;
    Slot slot = Slot::Free;
    bool used = false;
    Release filled;
    Release freed;
    int filled_event = -1;  // of the pair that EnQue sets
    int freed_event = -1;   // of the pair that FreeTensor sets
    Where where = {nullptr, 0};
};

struct Queue {
    Memory memory = Memory::UB;
    int position = 0;
    Pipe producer = Pipe::S;
    Pipe consumer = Pipe::S;
    int depth = 1;
    uint32_t bytes = 0;
    std::vector<QueueBuffer> buffers;
    std::deque<int> filled;
    int next = 0;
};

struct Failure {
    std::string code;
    Where where;
    std::string message;
    int64_t block;
    int count;
};

struct TraceEvent {
    uint32_t core;
    Pipe pipe;
    Op op;
    double start, end;
    int line;
};

// Busy intervals of a core's share of the memory system; requests fill the gaps.
class Channel
{
public:
    // Serves `cycles` of work from `start` on, in gaps where there are some; returns the end.
    double Serve(double start, double cycles);

private:
    std::map<double, double> busy_;
};

struct Group {  // one cube core with its vector cores, or a vector core alone
    Channel channel;
};

enum class Life : uint8_t { Ready, Waiting, Ended, Dead };

struct Core {
    uint32_t index = 0;
    bool cube = false;
    int64_t block = 0;
    int64_t sub = 0;
    int group = 0;
    Life life = Life::Ready;
    ucontext_t context{};
    std::unique_ptr<char[]> stack;
    std::function<bool()> can_go;  // while Waiting

    void *pipe = nullptr;  // the kernel's TPipe
    double now = 0;        // of the scalar unit
    std::array<PipeState, kPipes> pipes;
    std::array<std::vector<uint8_t>, kLocalMemories> bytes;
    std::array<uint32_t, kLocalMemories> reserved{};
    std::array<Shadow, kLocalMemories> shadows;
    std::unordered_map<const void *, Queue> queues;
    std::map<int, int> queue_buffers;          // by position
    int buffers = 0;                           // of all positions
    std::map<int, Event> events;               // by (from, to, id)
    std::map<int, std::deque<Release>> flags;  // by cross-core flag
    uint64_t mask[2] = {~uint64_t{0}, ~uint64_t{0}};
    bool counter_mode = false;
    bool scaled = false;  // SetDeqScale was called
    float scale = 1;
    int atomic = 0;
    Type atomic_type = Type::F32;

    double End() const;
};

enum class Role : uint8_t { Input, Output, Workspace, Tiling };

struct GlobalBuffer {
    uint64_t low = 0;
    uint64_t bytes = 0;
    Role role = Role::Input;
    double requested = 0;    // bytes that all blocks ask for in this pass
    double total = 0;        // the same, of the last whole pass
    double hbm_share = 1.0;  // of a request, the rest comes out of L2
    Shadow shadow;
};

struct Simulation {
    Chip chip;
    bool function = true;  // data, and what each instruction may be given
    bool order = true;     // who touched which bytes before: races, and what nothing has written
    bool timing = true, trace = false;
    bool scalars_look = true;  // the scalar unit reads buffers: positions, for one
    bool started = false;  // the first core has told its task type
    int task = 0;  // KERNEL_TYPE_…
    int64_t blocks = 1;
    double share = 1;  // cores or groups that share the memory system
    void *entry = nullptr;
    std::vector<void *> arguments;
    std::vector<GlobalBuffer> buffers;
    std::vector<std::unique_ptr<Core>> cores;
    std::vector<Group> groups;
    std::vector<Failure> failures;
    std::vector<TraceEvent> events;
    ucontext_t scheduler{};
    uint64_t instructions = 0;
    uint32_t arrived = 0;  // SyncAll
    uint32_t rounds = 0;
    Release meeting;
    Release met;

    void Fail(const char *code, Where where, std::string message);
    [[noreturn]] void Kill();
    void Wait(std::function<bool()> can_go);
    GlobalBuffer *Find(uint64_t address);
};

Simulation &Sim();
Core &Running();

// One instruction on its way through the rules, the arithmetic and the clock.
class Instruction
{
public:
    Instruction(Op op, Pipe pipe, Where where);

    void Read(const Operand &operand, uint64_t low, uint64_t high);
    void Write(const Operand &operand, uint64_t low, uint64_t high);
    // Bounds and alignment of [low, high), given as for Operand::at; false where refused.
    bool Legal(const Operand &operand, uint64_t low, uint64_t high, uint64_t align) const;

    // Enters the pipe for `occupancy` cycles, with results `latency` cycles after that.
    void Run(double occupancy, double latency);
    // A copy of `bytes` from or to GM, in bursts that sum to `moved` bytes.
    // It takes `cycles` at least.
    void RunCopy(GlobalBuffer *buffer, double bytes, double moved, bool writes, double cycles = 0);
    // The pipe itself keeps this instruction behind the one before it.
    void AfterPrevious();

    Core &core() const { return core_; }
    Where where() const { return where_; }

private:
    bool Ordered(const Touch &touch) const;
    void Race(const char *kind, const Operand &operand, uint64_t low, const Touch &other) const;
    void ReadGlobal(const Operand &operand, uint64_t low, uint64_t high);
    void WriteGlobal(const Operand &operand, uint64_t low, uint64_t high);
    Touch Own() const { return {core_.index, pipe_, number_, false, where_}; }

    Core &core_;
    Op op_;
    Pipe pipe_;
    Where where_;
    uint32_t number_;
};

// What a flag set by `pipe` now would hand over.
Release ReleaseOf(Core &core, Pipe pipe);
// An event of a queue's own: taken when it is set, given back when it is waited for.
int TakeEvent(Core &core, Pipe from, Pipe to, Where where);
void GiveEvent(Core &core, Pipe from, Pipe to, int id);
void Acquire(Core &core, Pipe pipe, const Release &release);

const char *NameOf(Pipe pipe);
const char *NameOf(Memory memory);
const char *NameOf(Type type);
uint32_t SizeOf(Type type);
// Bytes of bandwidth that bursts of GM take: whole sectors, and a share for each burst itself. `at`
// is an offset in an argument; arguments themselves are aligned.
double MovedBytes(uint64_t at, uint64_t bytes);
double MovedBytes(uint64_t at, uint64_t bytes, uint64_t pitch, uint64_t bursts);
// Stores to GM under the core's atomic mode. False where the chip lacks it for the type.
bool AtomicStore(Core &core, Type type, uint8_t *dst, const uint8_t *src, uint64_t bytes,
                 Where where);
uint8_t *BytesAt(Core &core, const Operand &operand);
std::string Format(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace gafsim

// Buffers and queues: who may have which bytes of a local memory when.

#include <algorithm>

#include "core.h"

namespace gafsim
{

namespace
{

constexpr int kBuffersPerPosition = 8;  // events that a position's buffers can hold
constexpr int kBuffers = 64;  // of all kinds, until the pipe is reset

Queue &QueueOf(const void *key, Op op, Where where)
{
    Core &core = Running();
    const auto found = core.queues.find(key);
    if (found == core.queues.end()) {
        Sim().Fail("queue-uninitialised", where,
                   Format("%s on a queue without InitBuffer", NameOf(op)));
        Sim().Kill();
    }
    return found->second;
}

int IndexOf(Queue &queue, uint64_t at)
{
    for (size_t i = 0; i < queue.buffers.size(); ++i) {
        const uint64_t low = queue.buffers[i].at;
        if (at >= low && at < low + queue.bytes) {
            return static_cast<int>(i);
        }
    }
    return -1;
}

QueueBuffer &BufferOf(Queue &queue, uint64_t at, Op op, Where where)
{
    const int index = IndexOf(queue, at);
    if (index < 0) {
        Sim().Fail("queue-foreign", where,
                   Format("%s of a tensor that is not this queue's", NameOf(op)));
        Sim().Kill();
    }
    return queue.buffers[index];
}

void Tick(Op op)
{
    Running().now += Sim().chip.fixed[static_cast<int>(op)];
}

}  // namespace

uint32_t CapacityOf(Memory memory)
{
    const Core &core = Running();
    const bool has = (memory == Memory::UB) != core.cube;
    return has ? static_cast<uint32_t>(Sim().chip.capacity[static_cast<int>(memory)]) : 0;
}

void NewPipe(void *pipe)
{
    ResetPipe();
    Running().pipe = pipe;
}

void *CurrentPipe()
{
    return Running().pipe;
}

void ResetPipe()
{
    Core &core = Running();
    core.queues.clear();
    core.queue_buffers.clear();
    core.buffers = 0;
    core.reserved.fill(0);
    for (auto &[key, event] : core.events) {
        event.queued = false;
    }
}

Buffer Reserve(Memory memory, uint32_t bytes, int position, bool queued, Where where)
{
    Simulation &sim = Sim();
    Core &core = Running();
    const int m = static_cast<int>(memory);
    if ((memory == Memory::UB) == core.cube) {
        sim.Fail("core-kind", where,
                 Format("%s is not a memory of a %s core; is the task type declared?",
                        NameOf(memory), core.cube ? "cube" : "vector"));
        sim.Kill();
    }
    const uint32_t rounded = (bytes + 31) / 32 * 32;
    const double reserved = memory == Memory::UB ? sim.chip.ub_reserved : 0;
    const double usable = sim.chip.capacity[m] - reserved;
    if (core.reserved[m] + rounded > usable) {
        sim.Fail("capacity", where,
                 Format("%s: %u B wanted after %u B, %.0f B usable", NameOf(memory), rounded,
                        core.reserved[m], usable));
        sim.Kill();
    }
    const Buffer buffer{memory, core.reserved[m], rounded};
    core.reserved[m] += rounded;
    if (++core.buffers > kBuffers) {
        sim.Fail("queue-buffers", where,
                 Format("%d buffers, a kernel has %d at most", core.buffers, kBuffers));
    }
    if (queued && ++core.queue_buffers[position] > kBuffersPerPosition) {
        sim.Fail("queue-buffers", where,
                 Format("%d queue buffers at one position, %d have events",
                        core.queue_buffers[position], kBuffersPerPosition));
    }
    return buffer;
}

void QueueInit(void *key, Memory memory, int position, Pipe producer, Pipe consumer, int depth,
               int number, uint32_t bytes, Where where)
{
    Queue queue;
    queue.memory = memory;
    queue.position = position;
    queue.producer = producer;
    queue.consumer = consumer;
    queue.depth = depth;
    for (int i = 0; i < number; ++i) {
        const Buffer buffer = Reserve(memory, bytes, position, true, where);
        queue.bytes = buffer.bytes;
        queue.buffers.emplace_back();
        queue.buffers.back().at = buffer.at;
    }
    Running().queues[key] = std::move(queue);
}

Buffer QueueAlloc(void *key, Where where)
{
    Core &core = Running();
    Queue &queue = QueueOf(key, Op::AllocTensor, where);
    const int count = static_cast<int>(queue.buffers.size());
    for (int i = 0; i < count; ++i) {
        const int index = (queue.next + i) % count;
        QueueBuffer &buffer = queue.buffers[index];
        if (buffer.slot != Slot::Free) {
            continue;
        }
        queue.next = (index + 1) % count;
        buffer.slot = Slot::Allocated;
        buffer.where = where;
        if (buffer.used) {
            Acquire(core, queue.producer, buffer.freed);
            GiveEvent(core, queue.consumer, queue.producer, buffer.freed_event);
        }
        if (Sim().order) {
            core.shadows[static_cast<int>(queue.memory)].Poison(buffer.at, buffer.at + queue.bytes);
        }
        Tick(Op::AllocTensor);
        return {queue.memory, buffer.at, queue.bytes};
    }
    Sim().Fail("queue-exhausted", where,
               Format("AllocTensor: all %d buffers are in use; the chip would hang", count));
    Sim().Kill();
}

void QueueEnque(void *key, uint64_t at, Where where, const Pipe *between)
{
    Core &core = Running();
    Queue &queue = QueueOf(key, Op::EnQue, where);
    QueueBuffer &buffer = BufferOf(queue, at, Op::EnQue, where);
    if (buffer.slot == Slot::Free || buffer.slot == Slot::Queued) {
        Sim().Fail("queue-order", where,
                   buffer.slot == Slot::Free ? "EnQue of a tensor that was not allocated"
                                             : "EnQue of a tensor that is in the queue");
        return;
    }
    if (static_cast<int>(queue.filled.size()) >= queue.depth) {
        Sim().Fail("queue-depth", where,
                   Format("EnQue: %zu tensors in a queue of depth %d", queue.filled.size() + 1,
                          queue.depth));
    }
    buffer.slot = Slot::Queued;
    buffer.where = where;
    buffer.filled = ReleaseOf(core, between == nullptr ? queue.producer : *between);
    buffer.filled.time += Sim().chip.event;
    if (between == nullptr) {
        buffer.filled_event = TakeEvent(core, queue.producer, queue.consumer, where);
    }
    queue.filled.push_back(IndexOf(queue, at));
    Tick(Op::EnQue);
}

Buffer QueueDeque(void *key, Where where, const Pipe *between)
{
    Core &core = Running();
    Queue &queue = QueueOf(key, Op::DeQue, where);
    if (queue.filled.empty()) {
        Sim().Fail("queue-empty", where, "DeQue from an empty queue; the chip would hang");
        Sim().Kill();
    }
    QueueBuffer &buffer = queue.buffers[queue.filled.front()];
    queue.filled.pop_front();
    buffer.slot = Slot::Taken;
    GiveEvent(core, queue.producer, queue.consumer, buffer.filled_event);
    buffer.filled_event = -1;
    Acquire(core, between == nullptr ? queue.consumer : *between, buffer.filled);
    Tick(Op::DeQue);
    return {queue.memory, buffer.at, queue.bytes};
}

void QueueFree(void *key, uint64_t at, Where where)
{
    Core &core = Running();
    Queue &queue = QueueOf(key, Op::FreeTensor, where);
    QueueBuffer &buffer = BufferOf(queue, at, Op::FreeTensor, where);
    if (buffer.slot == Slot::Free || buffer.slot == Slot::Queued) {
        Sim().Fail("queue-order", where,
                   buffer.slot == Slot::Free ? "FreeTensor of a tensor that is free"
                                             : "FreeTensor of a tensor that is in the queue");
        return;
    }
    buffer.slot = Slot::Free;
    buffer.used = true;
    buffer.freed = ReleaseOf(core, queue.consumer);
    buffer.freed.time += Sim().chip.event;
    buffer.freed_event = TakeEvent(core, queue.consumer, queue.producer, where);
    Tick(Op::FreeTensor);
}

int QueueCount(const void *key)
{
    const auto &queues = Running().queues;
    const auto found = queues.find(key);
    return found == queues.end() ? 0 : static_cast<int>(found->second.filled.size());
}

bool QueueIdle(const void *key)
{
    const auto &queues = Running().queues;
    const auto found = queues.find(key);
    if (found == queues.end()) {
        return false;
    }
    return std::any_of(found->second.buffers.begin(), found->second.buffers.end(),
                       [](const QueueBuffer &buffer) { return buffer.slot == Slot::Free; });
}

}  // namespace gafsim

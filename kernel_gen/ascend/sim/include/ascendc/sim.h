// What the public header asks of the simulator's runtime (not part of the Ascend C API).
//
// Each API call describes its operands in bytes and hands them over; the runtime does the
// arithmetic, checks the rules and keeps the clocks. Nothing here pulls in a heavy header, because
// every kernel compiles it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gafsim {

enum class Memory : uint8_t { UB, L1, L0A, L0B, L0C, BT, FB, GM };
constexpr int kLocalMemories = 7;

enum class Pipe : uint8_t { S, V, M, MTE1, MTE2, MTE3, FIX, ALL };
constexpr int kPipes = 7;

enum class Type : uint8_t { F16, BF16, F32, I8, U8, I16, U16, I32, U32, I64, U64 };

// Place in the kernel's source that made a call.
struct Where {
    const char *file;
    int line;
    static constexpr Where Here(const char *file = __builtin_FILE(), int line = __builtin_LINE())
    {
        return Where{file, line};
    }
};

// Instructions, by the name that the chip file prices them under.
#define GAFSIM_OPS(X)                                                                             \
    X(Add) X(Sub) X(Mul) X(Div) X(Max) X(Min) X(And) X(Or) X(AddRelu) X(SubRelu) X(MulAddDst)     \
    X(FusedMulAdd) X(MulAddRelu) X(AbsSub) X(ExpSub) X(Prelu) X(Adds) X(Muls) X(Maxs) X(Mins)     \
    X(LeakyRelu) X(Axpy) X(ShiftLeft) X(ShiftRight) X(Exp) X(Ln) X(Sqrt) X(Rsqrt) X(Reciprocal)   \
    X(Abs) X(Relu) X(Not) X(Copy) X(Duplicate) X(CreateVecIndex) X(Cast) X(Compare)               \
    X(CompareScalar) X(Select) X(WholeReduceSum) X(WholeReduceMax) X(WholeReduceMin)              \
    X(BlockReduceSum) X(BlockReduceMax) X(BlockReduceMin) X(PairReduceSum) X(ReduceSum)           \
    X(ReduceMax) X(ReduceMin) X(Brcb) X(Broadcast) X(Transpose) X(TransDataTo5HD) X(Gather)       \
    X(Gatherb) X(GatherMask) X(Sort32) X(MrgSort) X(Concat) X(Extract) X(Tanh) X(Sigmoid) X(Erf)  \
    X(Erfc) X(Sin) X(Cos) X(Tan) X(Sinh) X(Cosh) X(Asin) X(Acos) X(Atan) X(Asinh) X(Acosh)        \
    X(Atanh) X(Log) X(Log2) X(Log10) X(Ceil) X(Floor) X(Round) X(Rint) X(Trunc) X(Frac) X(Sign)   \
    X(Power) X(Fmod) X(Hypot) X(Xor) X(Clamp) X(Silu) X(Swish) X(Gelu) X(FasterGelu) X(Lgamma)    \
    X(DataCopy) X(DataCopyPad) X(LoadData) X(Mmad) X(Fixpipe) X(InitConstValue) X(GetValue)       \
    X(SetValue) X(SetFlag) X(WaitFlag) X(PipeBarrier) X(EnQue) X(DeQue) X(AllocTensor)            \
    X(FreeTensor) X(InitBuffer) X(SyncAll) X(CrossCoreSetFlag) X(CrossCoreWaitFlag) X(SetMask)

enum class Op : uint8_t {
#define GAFSIM_NAME(name) name,
    GAFSIM_OPS(GAFSIM_NAME)
#undef GAFSIM_NAME
        Count,
};

// A tensor as an instruction sees it: start, and the bounds of the buffer that it lies in.
// `at` is an offset in a local memory, or an address in GM.
struct Operand {
    Memory memory;
    Type type;
    uint64_t at;
    uint64_t low;
    uint64_t high;
};

// Strides of one operand, in blocks of 32 B.
struct Stride {
    uint32_t block = 1;
    uint32_t repeat = 8;
};

// Lanes that take part: the first `count` elements, or per repeat of 256 B a mask.
struct Lanes {
    bool counted = true;
    uint64_t count = 0;
    uint32_t repeats = 1;
    uint64_t mask[2] = {0, 0};
    bool from_register = false;  // the mask set by SetVectorMask
};

// An instruction over up to three sources. `scalar` is used where the operation has one.
struct Vector {
    Op op;
    Operand dst;
    Operand src[3] = {};
    int sources = 0;
    Stride dst_stride = {};
    Stride src_stride[3] = {};
    Lanes lanes = {};
    bool reads_dst = false;
    double scalar = 0.0;
    int64_t integer = 0;
    int variant = 0;  // round mode, comparison or select mode
};

// Applies `op` to each lane. A pair of operation and type that the chip lacks is refused.
void Elementwise(const Vector &v, Where where);

void SetMask(uint64_t high, uint64_t low, Where where);
void SetMaskMode(bool counter);

// Blocks of `length` bytes. Gaps are between the end of one block and the start of the next.
struct Copy {
    Op op;
    Operand dst;
    Operand src;
    uint32_t blocks;
    uint32_t length;
    uint64_t dst_gap;
    uint64_t src_gap;
    bool pad = false;          // DataCopyPad: byte granularity in GM, blocks of 32 B in UB
    bool pad_value = false;    // fill with `value` instead of the block's first element
    uint32_t left = 0;         // elements
    uint32_t right = 0;
    uint64_t value = 0;        // bits of one element
};
void CopyBlocks(const Copy &c, Where where);

// Buffers, queues and events of the running core.
struct Buffer {
    Memory memory;
    uint32_t at;
    uint32_t bytes;
};
int NewPipe();
Buffer Reserve(Memory memory, uint32_t bytes, int position, bool queued, Where where);
void ResetPipe();

void QueueInit(void *queue, Memory memory, int position, Pipe source, Pipe consumer, int depth,
               int number, uint32_t bytes, Where where);
Buffer QueueAlloc(void *queue, Where where);
void QueueEnque(void *queue, uint64_t at, Where where);
Buffer QueueDeque(void *queue, Where where);
void QueueFree(void *queue, uint64_t at, Where where);
int QueueCount(const void *queue);
bool QueueIdle(const void *queue);

void SetEvent(Pipe from, Pipe to, int id, Where where);
void WaitEvent(Pipe from, Pipe to, int id, Where where);
int AllocEvent(Pipe from, Pipe to, Where where);
int FetchEvent(Pipe from, Pipe to, Where where);
void ReleaseEvent(Pipe from, Pipe to, int id, Where where);
void Barrier(Pipe pipe, Where where);

void SyncCores(bool vector_only, Where where);
void SetCoreFlag(int mode, Pipe pipe, int id, Where where);
void WaitCoreFlag(Pipe pipe, int id, Where where);

// Scalar access; returns false where it is refused.
bool ScalarRead(const Operand &from, void *value, Where where);
void ScalarWrite(const Operand &to, const void *value, Where where);

void SetAtomic(int kind, Type type);  // 0 none, 1 add, 2 max, 3 min
void DeclareTask(int kind);           // KERNEL_TYPE_*
bool IsCubeCore();
int64_t BlockIndex();
int64_t BlockCount();
int64_t SubBlockIndex();
int64_t SubBlockCount();
int64_t TaskRatio();

}  // namespace gafsim

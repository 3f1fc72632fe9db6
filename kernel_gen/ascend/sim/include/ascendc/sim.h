// What the public header asks of the simulator's runtime (not part of the Ascend C API).
//
// Each API call describes its operands in bytes and hands them over; the runtime does the
// arithmetic, checks the rules and keeps the clocks. Nothing here pulls in a heavy header, because
// every kernel compiles it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gafsim
{

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
#define GAFSIM_OPS(X)                                                                              \
    X(Add)                                                                                         \
    X(Sub)                                                                                         \
    X(Mul)                                                                                         \
    X(Div) X(Max) X(Min) X(And) X(Or) X(AddRelu) X(SubRelu) X(MulAddDst) X(FusedMulAdd)            \
        X(MulAddRelu) X(Adds) X(Muls) X(Maxs) X(Mins) X(LeakyRelu) X(Axpy) X(ShiftLeft) X(         \
            ShiftRight) X(Exp) X(Ln) X(Sqrt) X(Rsqrt) X(Reciprocal) X(Abs) X(Relu) X(Not) X(Copy)  \
            X(Duplicate) X(CreateVecIndex) X(Cast) X(Compare) X(CompareScalar) X(Select)           \
                X(WholeReduceSum) X(WholeReduceMax) X(WholeReduceMin) X(BlockReduceSum)            \
                    X(BlockReduceMax) X(BlockReduceMin) X(PairReduceSum) X(ReduceSum) X(ReduceMax) \
                        X(ReduceMin) X(Brcb) X(Broadcast) X(Transpose) X(TransDataTo5HD) X(Gather) \
                            X(Gatherb) X(Sort32) X(Tanh) X(Sigmoid) X(Erf) X(Erfc) X(Sin) X(Cos)   \
                                X(Tan) X(Sinh) X(Cosh) X(Asin) X(Acos) X(Atan) X(Asinh) X(Acosh)   \
                                    X(Atanh) X(Log) X(Log2) X(Log10) X(Ceil) X(Floor) X(Round)     \
                                        X(Rint) X(Trunc) X(Frac) X(Sign) X(Power) X(PowerScalar)   \
                                            X(Fmod) X(Hypot) X(Xor) X(Silu) X(Swish) X(Gelu)       \
                                                X(FasterGelu) X(Lgamma) X(DataCopy) X(DataCopyPad) \
                                                    X(LoadData) X(Mmad) X(Fill) X(Fixpipe)         \
                                                        X(GetValue) X(SetValue) X(SetFlag) X(      \
                                                            WaitFlag) X(PipeBarrier) X(EnQue)      \
                                                            X(DeQue) X(AllocTensor) X(FreeTensor)  \
                                                                X(InitBuffer) X(SyncAll)           \
                                                                    X(CrossCoreSetFlag)            \
                                                                        X(CrossCoreWaitFlag)       \
                                                                            X(SetMask)

enum class Op : uint8_t {
#define GAFSIM_NAME(name) name,
    GAFSIM_OPS(GAFSIM_NAME)
#undef GAFSIM_NAME
        Count,
};

// A tensor as an instruction sees it: start, and the bounds of the buffer that it lies in.
// `at` is an offset in a local memory, or an address in GM, where `low` is an address in the
// kernel's argument that the tensor belongs to.
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

// dst bits = src[0] `variant` (src[1] or `scalar`), eight lanes a byte; `variant` is a CMPMODE.
void CompareLanes(const Vector &v, Where where);
// dst = bit of `mask` ? src[0] : (src[1] or `scalar`); `variant` is a SELMODE.
void SelectLanes(const Vector &v, const Operand &mask, Where where);
// dst = first, first + 1, …
void FillIndex(const Vector &v, Where where);

enum class Fold : uint8_t { Sum, Max, Min };
enum class Scope : uint8_t { Repeat, Block, Pair };

// One result per repeat, per block or per pair of lanes. `dst_stride.repeat` counts results (pairs
// of value and index where both are wanted) of one repeat; `order` is a ReduceOrder.
void Reduce(Op op, Fold fold, Scope scope, const Vector &v, int order, Where where);
// All of the first n elements to one; the index goes behind the value where it is wanted.
void ReduceAll(Op op, Fold fold, const Vector &v, const Operand &scratch, bool with_index,
               Where where);

// Each of the 8 elements of a repeat fills one block.
void SpreadElements(const Operand &dst, const Operand &src, uint32_t repeats, Stride dst_stride,
                    Where where);
// dst[i] = src at byte base + offset[i].
void GatherElements(const Vector &v, const Operand &offset, uint32_t base, Where where);
// Blocks of 32 B at byte offset[i] of src.
void GatherBlocks(const Operand &dst, const Operand &src, const Operand &offset, uint32_t repeats,
                  Stride dst_stride, Where where);
// 16 blocks of 32 B as a matrix, transposed; addresses are offsets in UB.
struct BlockTranspose {
    Type type;
    bool dst_high, src_high;
    uint32_t repeats;
    uint32_t dst_stride, src_stride;  // blocks
};
void TransposeBlocks(Op op, const uint64_t dst[16], const uint64_t src[16], const BlockTranspose &t,
                     Where where);
// dst[rows][columns] from src[rows][1] (axis 1) or src[1][columns] (axis 0).
void BroadcastMatrix(const Operand &dst, const Operand &src, uint32_t rows, uint32_t columns,
                     int axis, Where where);
// Sorts runs of 32 by value, descending: (value, index) pairs of 8 B.
void SortRuns(const Operand &dst, const Operand &src, const Operand &index, uint32_t repeats,
              Where where);

// Factor of conversions from int32 to half.
void SetDequantScale(float scale);

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
    bool pad = false;        // DataCopyPad: byte granularity in GM, blocks of 32 B in UB
    bool pad_value = false;  // fill with `value` instead of the block's first element
    uint32_t left = 0;       // elements
    uint32_t right = 0;
    uint64_t value = 0;  // bits of one element
};
void CopyBlocks(const Copy &c, Where where);

// Blocks of L1 to the bias table, halves as floats: lengths in 64 B of the source, gaps of the
// table in 64 B, of L1 in 32 B.
struct TableCopy {
    uint32_t blocks, length, src_gap, dst_gap;
};
void CopyToTable(const Operand &dst, const Operand &src, const TableCopy &p, Where where);

// Matrices of GM as fractals in L1: rows of 32 B, `c0_stride` between columns of blocks,
// `row_stride` between rows, both in blocks of 32 B.
struct NdToNz {
    uint32_t matrices, rows, columns;
    uint64_t src_matrix, src_row;  // elements
    uint32_t c0_stride, row_stride;
    uint64_t dst_matrix;  // elements
};
void CopyToFractals(const Operand &dst, const Operand &src, const NdToNz &p, Where where);

// Fractals of 512 B from L1 or GM to L0, optionally each transposed. `square` fractals (1 or 2)
// make one matrix that is transposed as a whole.
struct FractalLoad {
    uint32_t start, repeats, src_stride, dst_gap,
        dst_inner_gap;  // fractals (squares at the source)
    bool transpose, descending, square;
};
void LoadFractals(const Operand &dst, const Operand &src, const FractalLoad &p, Where where);
void FillZero(const Operand &dst, uint32_t repeats, uint32_t blocks, uint32_t gap, uint64_t bits,
              Where where);

// C = [C or bias +] A · B on fractals in L0.
struct MatrixMultiply {
    uint32_t m, n, k;
    bool zero, from_bias, k_even;
    int unit_flag;
};
void Multiply(const Operand &c, const Operand &a, const Operand &b, const Operand *bias,
              const MatrixMultiply &p, Where where);

// L0C out to GM (or L1), row-major or in fractals, converted.
struct FixOut {
    uint32_t n, m, src_stride;
    uint64_t dst_stride;
    int quant;
    uint64_t scale;
    uint32_t matrices, src_matrix;
    uint64_t dst_matrix;
    bool relu, rows;
    int unit_flag;
};
void FixpipeOut(const Operand &dst, const Operand &src, const FixOut &p, Where where);

// Buffers, queues and events of the running core.
struct Buffer {
    Memory memory;
    uint32_t at;
    uint32_t bytes;
};
uint32_t CapacityOf(Memory memory);
void NewPipe(void *pipe);
void *CurrentPipe();
Buffer Reserve(Memory memory, uint32_t bytes, int position, bool queued, Where where);
void ResetPipe();

void QueueInit(void *queue, Memory memory, int position, Pipe source, Pipe consumer, int depth,
               int number, uint32_t bytes, Where where);
Buffer QueueAlloc(void *queue, Where where);
// `between`: other pipes than the queue's own, for buffers that serve as input and as output.
void QueueEnque(void *queue, uint64_t at, Where where, const Pipe *between = nullptr);
Buffer QueueDeque(void *queue, Where where, const Pipe *between = nullptr);
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

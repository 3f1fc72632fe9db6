"""Text of the device functions that generated kernels share, written for the public Ascend C API.

A kernel holds those that it calls, in the order of `FUNCTIONS`. Shapes: a *tile* has `rows` rows of
`pitch` lanes; `n` is its number of lanes, rounded up to whole comparisons. A *row vector* has one
element per row, a *column vector* one per column. `blocks` hold one 32 B block per row.
"""

from __future__ import annotations

import re

PRELUDE = """\
template <typename T>
constexpr int32_t kLanes = 256 / static_cast<int32_t>(sizeof(T));  // lanes of one repeat
template <typename T>
constexpr int32_t kBlock = 32 / static_cast<int32_t>(sizeof(T));  // lanes of one block
constexpr int32_t kRepeats = 248;  // repeats of one instruction: at most 255, a multiple of 8

__aicore__ inline int32_t UpTo(int64_t value, int32_t step)
{
    return static_cast<int32_t>((value + step - 1) / step * step);
}

__aicore__ inline int32_t AtMost(int64_t a, int64_t b)
{
    return static_cast<int32_t>(a < b ? a : b);
}
"""

_OPERATION = """\
struct {name}Op {{
    static constexpr bool kBlocks = {has};  // whether an instruction folds blocks of lanes
    template <typename T>
    __aicore__ static inline void Run(const LocalTensor<T> &d, const LocalTensor<T> &a,
                                      const LocalTensor<T> &b, int32_t count)
    {{
        {name}(d, a, b, count);
    }}
    template <typename T>
    __aicore__ static inline void Run(const LocalTensor<T> &d, const LocalTensor<T> &a,
                                      const LocalTensor<T> &b, int32_t mask, int32_t repeats,
                                      const BinaryRepeatParams &strides)
    {{
        {name}(d, a, b, static_cast<uint64_t>(mask), static_cast<uint8_t>(repeats), strides);
    }}
    template <typename T>
    __aicore__ static inline T Scalar(T a, T b)
    {{
        return {scalar};
    }}{blocks}
}};"""

_BLOCKS = """
    // Each block of 8 lanes to one, for `repeats` times 64 lanes.
    __aicore__ static inline void Blocks(const LocalTensor<float> &d, const LocalTensor<float> &a,
                                         int32_t repeats)
    {{
        for (int32_t r = 0; r < repeats; r += kRepeats) {{
            BlockReduce{reduce}(d[r * 8], a[r * 64], AtMost(kRepeats, repeats - r), 64, 1, 1, 8);
        }}
    }}"""
_REDUCES = {"Add": "Sum", "Max": "Max", "Min": "Min"}

_SCALAR = {"Add": "a + b", "Sub": "a - b", "Mul": "a * b", "Div": "a / b",
           "Max": "a > b ? a : b", "Min": "a < b ? a : b"}  # fmt: skip


def _operation(name: str) -> str:
    """One struct per instruction, so that shapes of access are written once for all of them."""
    blocks = _BLOCKS.format(reduce=_REDUCES[name]) if name in _REDUCES else ""
    has = "true" if blocks else "false"
    return _OPERATION.format(name=name, scalar=_SCALAR[name], blocks=blocks, has=has)


FUNCTIONS: dict[str, str] = {
    "WaitFor": """\
// The second pipe of `event` goes on when the first one has done what it was told so far.
template <HardEvent event>
__aicore__ inline void WaitFor()
{
    const event_t id = static_cast<event_t>(GetTPipePtr()->FetchEventID(event));
    SetFlag<event>(id);
    WaitFlag<event>(id);
}""",
    "FromBits": """\
__aicore__ inline float FromBits(uint32_t word)
{
    union {
        uint32_t word;
        float value;
    } both;
    both.word = word;
    return both.value;
}""",
    "FloorDivide": """\
__aicore__ inline int64_t FloorDivide(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}""",
    **{f"{name}Op": _operation(name) for name in ("Add", "Sub", "Mul", "Div", "Max", "Min")},
    "PadLanes": """\
// Lanes from `first` on (a multiple of a block) get a value: comparisons read whole repeats.
template <typename T>
__aicore__ inline void PadLanes(const LocalTensor<T> &d, int32_t first, int32_t n)
{
    if (first < n) {
        Duplicate(d[first], static_cast<T>(0), n - first);
    }
}""",
    "ColWise": """\
// d[r][c] = a[r][c] op v[c], or v[c] op a[r][c].
template <typename Op, bool swapped, typename T>
__aicore__ inline void ColWise(const LocalTensor<T> &d, const LocalTensor<T> &a,
                               const LocalTensor<T> &v, int32_t rows, int32_t pitch, int32_t n)
{
    if (rows == 1) {
        Op::Run(d, swapped ? v : a, swapped ? a : v, n);
        return;
    }
    const int32_t blocks = pitch / kBlock<T>;
    if (blocks > 255 || rows * kLanes<T> < pitch) {
        for (int32_t r = 0; r < rows; r++) {
            const auto line = a[r * pitch];
            Op::Run(d[r * pitch], swapped ? v : line, swapped ? line : v, pitch);
        }
    } else {
        const uint8_t step = static_cast<uint8_t>(blocks);
        const BinaryRepeatParams strides(1, 1, 1, step, swapped ? 0 : step, swapped ? step : 0);
        for (int32_t c = 0; c < pitch; c += kLanes<T>) {
            const int32_t mask = AtMost(kLanes<T>, pitch - c);
            for (int32_t r = 0; r < rows; r += kRepeats) {
                const auto part = a[r * pitch + c];
                Op::Run(d[r * pitch + c], swapped ? v[c] : part, swapped ? part : v[c], mask,
                        AtMost(kRepeats, rows - r), strides);
            }
        }
    }
    PadLanes(d, rows * pitch, n);
}""",
    "FusedColWise": """\
// d = d * b + c; b and c are tiles, or column vectors for all rows.
template <bool fullB, bool fullC, typename T>
__aicore__ inline void FusedColWise(const LocalTensor<T> &d, const LocalTensor<T> &b,
                                    const LocalTensor<T> &c, int32_t rows, int32_t pitch, int32_t n)
{
    if (rows == 1) {
        FusedMulAdd(d, b, c, n);
        return;
    }
    const int32_t blocks = pitch / kBlock<T>;
    if (blocks > 255 || rows * kLanes<T> < pitch) {
        for (int32_t r = 0; r < rows; r++) {
            const int32_t at = r * pitch;
            FusedMulAdd(d[at], b[fullB ? at : 0], c[fullC ? at : 0], pitch);
        }
        return;
    }
    const uint8_t step = static_cast<uint8_t>(blocks);
    const BinaryRepeatParams strides(1, 1, 1, step, fullB ? step : 0, fullC ? step : 0);
    for (int32_t i = 0; i < pitch; i += kLanes<T>) {
        const uint64_t mask = static_cast<uint64_t>(AtMost(kLanes<T>, pitch - i));
        for (int32_t r = 0; r < rows; r += kRepeats) {
            const int32_t at = r * pitch + i;
            FusedMulAdd(d[at], b[fullB ? at : i], c[fullC ? at : i], mask,
                        static_cast<uint8_t>(AtMost(kRepeats, rows - r)), strides);
        }
    }
}""",
    "RowWise": """\
// d[r][c] = a[r][c] op v[r], or v[r] op a[r][c]; v as one block per row.
template <typename Op, bool swapped, typename T>
__aicore__ inline void RowWise(const LocalTensor<T> &d, const LocalTensor<T> &a,
                               const LocalTensor<T> &v, int32_t rows, int32_t pitch, int32_t n)
{
    const int32_t blocks = pitch / kBlock<T>;
    if (blocks > 255 || rows * kLanes<T> < pitch) {
        const int32_t width = rows == 1 ? n : pitch;
        const BinaryRepeatParams strides(1, swapped ? 0 : 1, swapped ? 1 : 0, 8, swapped ? 0 : 8,
                                         swapped ? 8 : 0);
        for (int32_t r = 0; r < rows; r++) {
            const auto one = v[r * kBlock<T>];
            for (int32_t c = 0; c < width;) {
                const int32_t left = width - c;
                const int32_t mask = AtMost(kLanes<T>, left);
                const int32_t repeats = left < kLanes<T> ? 1 : AtMost(kRepeats, left / kLanes<T>);
                const auto part = a[r * pitch + c];
                Op::Run(d[r * pitch + c], swapped ? one : part, swapped ? part : one, mask,
                        repeats, strides);
                c += mask * repeats;
            }
        }
        PadLanes(d, rows == 1 ? n : rows * pitch, n);
    } else {
        const uint8_t step = static_cast<uint8_t>(blocks);
        const BinaryRepeatParams strides(1, swapped ? 0 : 1, swapped ? 1 : 0, step,
                                         swapped ? 1 : step, swapped ? step : 1);
        for (int32_t c = 0; c < pitch; c += kLanes<T>) {
            const int32_t mask = AtMost(kLanes<T>, pitch - c);
            for (int32_t r = 0; r < rows; r += kRepeats) {
                const auto part = a[r * pitch + c];
                const auto one = v[r * kBlock<T>];
                Op::Run(d[r * pitch + c], swapped ? one : part, swapped ? part : one, mask,
                        AtMost(kRepeats, rows - r), strides);
            }
        }
        PadLanes(d, rows * pitch, n);
    }
}""",
    "OneWise": """\
// d[i] = a[i] op v, or v op a[i]; v as a block.
template <typename Op, bool swapped, typename T>
__aicore__ inline void OneWise(const LocalTensor<T> &d, const LocalTensor<T> &a,
                               const LocalTensor<T> &v, int32_t n)
{
    const BinaryRepeatParams strides(1, swapped ? 0 : 1, swapped ? 1 : 0, 8, swapped ? 0 : 8,
                                     swapped ? 8 : 0);
    for (int32_t c = 0; c < n;) {
        const int32_t mask = AtMost(kLanes<T>, n - c);
        const int32_t repeats = mask < kLanes<T> ? 1 : AtMost(kRepeats, (n - c) / kLanes<T>);
        const auto part = a[c];
        Op::Run(d[c], swapped ? v : part, swapped ? part : v, mask, repeats, strides);
        c += mask * repeats;
    }
}""",
    "RowBlocks": """\
// One block of equal lanes per element of a row vector.
template <typename T>
__aicore__ inline void RowBlocks(const LocalTensor<T> &d, const LocalTensor<T> &v, int32_t rows)
{
    Brcb(d, v, static_cast<uint8_t>((rows + 7) / 8), BrcbRepeatParams(1, 8));
}""",
    "SpreadCol": """\
// Every row of the tile becomes v.
template <typename T>
__aicore__ inline void SpreadCol(const LocalTensor<T> &d, const LocalTensor<T> &v, int32_t rows,
                                 int32_t pitch, int32_t n)
{
    if (rows == 1) {
        Muls(d, v, static_cast<T>(1), n);
        return;
    }
    for (int32_t r = 0; r < rows; r++) {
        Muls(d[r * pitch], v, static_cast<T>(1), pitch);
    }
    PadLanes(d, rows * pitch, n);
}""",
    "SpreadRow": """\
// Row r of the tile becomes v[r]; v as one block per row.
template <typename T>
__aicore__ inline void SpreadRow(const LocalTensor<T> &d, const LocalTensor<T> &v, int32_t rows,
                                 int32_t pitch, int32_t n)
{
    const int32_t width = rows == 1 ? n : pitch;
    for (int32_t r = 0; r < rows; r++) {
        for (int32_t c = 0; c < width;) {
            const int32_t mask = AtMost(kLanes<T>, width - c);
            const int32_t repeats =
                mask < kLanes<T> ? 1 : AtMost(kRepeats, (width - c) / kLanes<T>);
            Muls(d[r * pitch + c], v[r * kBlock<T>], static_cast<T>(1),
                 static_cast<uint64_t>(mask), static_cast<uint8_t>(repeats),
                 UnaryRepeatParams(1, 0, 8, 0));
            c += mask * repeats;
        }
    }
    PadLanes(d, rows == 1 ? n : rows * pitch, n);
}""",
    "AccumulateTile": """\
// a[r][c] = a[r][c] op v[r][c] where the tile has elements; other lanes of a stay neutral.
template <typename Op, typename T>
__aicore__ inline void AccumulateTile(const LocalTensor<T> &a, const LocalTensor<T> &v,
                                      int32_t rows, int32_t cols, int32_t pitch)
{
    if (rows == 1 || cols == pitch) {
        Op::Run(a, a, v, rows == 1 ? cols : rows * pitch);
        return;
    }
    for (int32_t r = 0; r < rows; r++) {
        Op::Run(a[r * pitch], a[r * pitch], v[r * pitch], cols);
    }
}""",
    "FoldBlocks": """\
template <typename T>
constexpr bool kReal = false;
template <>
constexpr bool kReal<float> = true;

// As FoldCols for floats, rows of whole 512 lanes: blocks to lanes, twice where that leaves 64 or
// more. Three rows at a time, as `s` has half a row.
template <typename Op>
__aicore__ inline void FoldBlocks(const LocalTensor<float> &w, const LocalTensor<float> &a,
                                  const LocalTensor<float> &s, int32_t rows, int32_t cols)
{
    constexpr int32_t lanes = kLanes<float>;
    for (int32_t r = 0; r < rows; r += 3) {
        const int32_t many = AtMost(3, rows - r);
        const bool twice = cols / 64 >= lanes;
        const auto once = many * cols / 8;
        const auto from = twice ? s[once] : s;
        const int32_t left = twice ? cols / 64 : cols / 8;
        Op::Blocks(s, a[r * cols], many * cols / lanes);
        PipeBarrier<PIPE_V>();
        if (twice) {
            Op::Blocks(from, s, once / lanes);
            PipeBarrier<PIPE_V>();
        }
        const uint8_t step = static_cast<uint8_t>(left / 8);
        Muls(w[r * lanes], from, 1.0f, static_cast<uint64_t>(lanes), static_cast<uint8_t>(many),
             UnaryRepeatParams(1, 1, 8, step));
        for (int32_t c = lanes; c < left; c += lanes) {
            PipeBarrier<PIPE_V>();
            Op::Run(w[r * lanes], w[r * lanes], from[c], AtMost(lanes, left - c), many,
                    BinaryRepeatParams(1, 1, 1, 8, 8, step));
        }
        PipeBarrier<PIPE_V>();
    }
}""",
    "FoldCols": """\
// Sums each row to at most 64 lanes: w[r][0..63]. `s` is a scratch row.
template <typename Op, typename T>
__aicore__ inline void FoldCols(const LocalTensor<T> &w, const LocalTensor<T> &a,
                                const LocalTensor<T> &s, int32_t rows, int32_t cols, int32_t pitch)
{
    constexpr int32_t lanes = kLanes<T>;
    const int32_t blocks = pitch / kBlock<T>;
    if (blocks <= 255 && (cols <= 4 * lanes || cols / lanes < 6 * rows)) {
        const uint8_t step = static_cast<uint8_t>(blocks);
        for (int32_t r = 0; r < rows; r += kRepeats) {
            const int32_t repeats = AtMost(kRepeats, rows - r);
            Muls(w[r * lanes], a[r * pitch], static_cast<T>(1),
                 static_cast<uint64_t>(AtMost(lanes, cols)), static_cast<uint8_t>(repeats),
                 UnaryRepeatParams(1, 1, 8, step));
            for (int32_t c = lanes; c < cols; c += lanes) {
                PipeBarrier<PIPE_V>();
                Op::Run(w[r * lanes], w[r * lanes], a[r * pitch + c], AtMost(lanes, cols - c),
                        repeats, BinaryRepeatParams(1, 1, 1, 8, 8, step));
            }
        }
        return;
    }
    if constexpr (Op::kBlocks && kReal<T>) {
        if (cols == pitch && cols % 512 == 0 && cols < 16384) {
            FoldBlocks<Op>(w, a, s, rows, cols);
            return;
        }
    }
    int32_t main = lanes;
    while (main * 2 <= cols) {
        main *= 2;
    }
    for (int32_t r = 0; r < rows; r++) {
        const auto line = a[r * pitch];
        int32_t half = main / 2;
        Op::Run(s, line, line[half], half);
        const int32_t rest = cols - main;
        if (rest > 0) {
            PipeBarrier<PIPE_V>();
            Op::Run(s, s, line[main], AtMost(rest, half));
        }
        if (rest > half) {
            PipeBarrier<PIPE_V>();
            Op::Run(s, s, line[main + half], rest - half);
        }
        for (half /= 2; half > lanes; half /= 2) {
            PipeBarrier<PIPE_V>();
            Op::Run(s, s, s[half], half);
        }
        PipeBarrier<PIPE_V>();
        Op::Run(w[r * lanes], s, s[lanes], lanes);
        PipeBarrier<PIPE_V>();
    }
}""",
    "SumLanes": """\
// d[r] = sum of the first `lanes` of w[r].
__aicore__ inline void SumLanes(const LocalTensor<float> &d, const LocalTensor<float> &w,
                                int32_t rows, int32_t lanes)
{
    for (int32_t r = 0; r < rows; r += kRepeats) {
        WholeReduceSum(d[r], w[r * 64], lanes, AtMost(kRepeats, rows - r), 1, 1, 8);
    }
}""",
    "MaxLanes": """\
// d[r] = largest of the first `lanes` of w[r].
__aicore__ inline void MaxLanes(const LocalTensor<float> &d, const LocalTensor<float> &w,
                                int32_t rows, int32_t lanes)
{
    for (int32_t r = 0; r < rows; r += kRepeats) {
        WholeReduceMax(d[r], w[r * 64], lanes, AtMost(kRepeats, rows - r), 1, 1, 8,
                       ReduceOrder::ORDER_ONLY_VALUE);
    }
}""",
    "MinLanes": """\
// d[r] = smallest of the first `lanes` of w[r].
__aicore__ inline void MinLanes(const LocalTensor<float> &d, const LocalTensor<float> &w,
                                int32_t rows, int32_t lanes)
{
    for (int32_t r = 0; r < rows; r += kRepeats) {
        WholeReduceMin(d[r], w[r * 64], lanes, AtMost(kRepeats, rows - r), 1, 1, 8,
                       ReduceOrder::ORDER_ONLY_VALUE);
    }
}""",
    "ScalarLanes": """\
// d[r] = the first `lanes` of w[r] folded one by one: there is no instruction for it.
template <typename Op, typename T>
__aicore__ inline void ScalarLanes(const LocalTensor<T> &d, const LocalTensor<T> &w, int32_t rows,
                                   int32_t lanes)
{
    WaitFor<HardEvent::V_S>();
    for (int32_t r = 0; r < rows; r++) {
        T total = w.GetValue(r * kLanes<T>);
        for (int32_t c = 1; c < lanes; c++) {
            total = Op::Scalar(total, w.GetValue(r * kLanes<T> + c));
        }
        d.SetValue(r, total);
    }
    WaitFor<HardEvent::S_V>();
}""",
    "FoldRows": """\
// d[c] = all rows of a folded; `s` is a scratch tile.
template <typename Op, typename T>
__aicore__ inline void FoldRows(const LocalTensor<T> &d, const LocalTensor<T> &a,
                                const LocalTensor<T> &s, int32_t rows, int32_t pitch, int32_t n)
{
    if (rows == 1) {
        Muls(d, a, static_cast<T>(1), n);
        return;
    }
    int32_t half = rows / 2;
    Op::Run(half == 1 ? d : s, a, a[half * pitch], half * pitch);
    if (rows % 2 != 0) {
        PipeBarrier<PIPE_V>();
        const auto &to = half == 1 ? d : s;
        Op::Run(to, to, a[(rows - 1) * pitch], pitch);
    }
    while (half > 1) {
        PipeBarrier<PIPE_V>();
        const int32_t odd = half % 2;
        const int32_t left = half;
        half /= 2;
        Op::Run(half == 1 ? d : s, s, s[half * pitch], half * pitch);
        if (odd != 0) {
            PipeBarrier<PIPE_V>();
            const auto &to = half == 1 ? d : s;
            Op::Run(to, to, s[(left - 1) * pitch], pitch);
        }
    }
    PadLanes(d, pitch, n);
}""",
}
"""Text by name; a function comes after those that it calls."""


def needed(text: str) -> list[str]:
    """The functions that `text` calls, and those they call, in the order of `FUNCTIONS`."""
    found: set[str] = set()
    todo = [text]
    while todo:
        words = set(re.findall(r"\b[A-Z]\w+\b", todo.pop()))
        for name in words & FUNCTIONS.keys() - found:
            found.add(name)
            todo.append(FUNCTIONS[name])
    return [name for name in FUNCTIONS if name in found]

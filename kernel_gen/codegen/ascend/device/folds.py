"""Sums and their kin of a tile's rows and columns."""

from __future__ import annotations

FOLDS: dict[str, str] = {
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
    "FoldPairs": """\
// As FoldCols, rows of whole repeats: neighbouring ones two by two, of all rows at once, while
// their number is even; what is left one after another. `s` has half of what `a` has, or is `a`.
template <typename Op, typename T>
__aicore__ inline void FoldPairs(const LocalTensor<T> &w, const LocalTensor<T> &a,
                                 const LocalTensor<T> &s, int32_t rows, int32_t cols)
{
    constexpr int32_t lanes = kLanes<T>;
    int32_t left = cols / lanes;
    LocalTensor<T> from = a;
    while (left % 2 == 0) {
        left /= 2;
        const LocalTensor<T> to = left == 1 ? w : s;
        for (int32_t r = 0; r < rows * left; r += kRepeats) {
            if (r > 0) {
                PipeBarrier<PIPE_V>();
            }
            Op::Run(to[r * lanes], from[2 * r * lanes], from[(2 * r + 1) * lanes], lanes,
                    AtMost(kRepeats, rows * left - r), BinaryRepeatParams(1, 1, 1, 8, 16, 16));
        }
        PipeBarrier<PIPE_V>();
        from = s;
    }
    const uint8_t step = static_cast<uint8_t>(left * 8);
    for (int32_t r = 0; left > 1 && r < rows; r += kRepeats) {
        const int32_t many = AtMost(kRepeats, rows - r);
        const auto part = from[r * left * lanes];
        Op::Run(w[r * lanes], part, part[lanes], lanes, many,
                BinaryRepeatParams(1, 1, 1, 8, step, step));
        for (int32_t c = 2; c < left; c++) {
            PipeBarrier<PIPE_V>();
            Op::Run(w[r * lanes], w[r * lanes], part[c * lanes], lanes, many,
                    BinaryRepeatParams(1, 1, 1, 8, 8, step));
        }
    }
}""",
    "FoldBeyond": """\
// As FoldCols, rows of less than two repeats.
template <typename Op, typename T>
__aicore__ inline void FoldBeyond(const LocalTensor<T> &w, const LocalTensor<T> &a, int32_t rows,
                                  int32_t cols, uint8_t blocks)
{
    constexpr int32_t lanes = kLanes<T>;
    for (int32_t r = 0; r < rows; r += kRepeats) {
        const int32_t repeats = AtMost(kRepeats, rows - r);
        const auto part = a[r * blocks * kBlock<T>];
        Muls(w[r * lanes], part, static_cast<T>(1), static_cast<uint64_t>(AtMost(lanes, cols)),
             static_cast<uint8_t>(repeats), UnaryRepeatParams(1, 1, 8, blocks));
        if (cols > lanes) {
            PipeBarrier<PIPE_V>();
            Op::Run(w[r * lanes], w[r * lanes], part[lanes], cols - lanes, repeats,
                    BinaryRepeatParams(1, 1, 1, 8, 8, blocks));
        }
    }
}""",
    "FoldGroups": """\
// As FoldCols, rows `blocks` apart: neighbouring repeats of all rows two by two, then what that
// leaves, pair after pair, in halves.
template <typename Op, typename T>
__aicore__ inline void FoldGroups(const LocalTensor<T> &w, const LocalTensor<T> &a,
                                  const LocalTensor<T> &s, int32_t rows, int32_t cols,
                                  uint8_t blocks)
{
    constexpr int32_t lanes = kLanes<T>;
    const int32_t all = rows * lanes, pitch = blocks * kBlock<T>;
    int32_t left = cols / lanes / 2;
    const auto to = left == 1 ? w : s;
    for (int32_t r = 0; r < rows; r += kRepeats) {
        const int32_t repeats = AtMost(kRepeats, rows - r);
        const auto part = a[r * pitch];
        for (int32_t c = 0; c < left; c++) {
            Op::Run(to[c * all + r * lanes], part[2 * c * lanes], part[(2 * c + 1) * lanes], lanes,
                    repeats, BinaryRepeatParams(1, 1, 1, 8, blocks, blocks));
        }
        for (int32_t c = 2 * left * lanes; c < cols; c += lanes) {
            PipeBarrier<PIPE_V>();
            Op::Run(to[r * lanes], to[r * lanes], part[c], AtMost(lanes, cols - c), repeats,
                    BinaryRepeatParams(1, 1, 1, 8, 8, blocks));
        }
    }
    while (left > 1) {
        PipeBarrier<PIPE_V>();
        if (left % 2 != 0) {
            Op::Run(s, s, s[(left - 1) * all], all);
            PipeBarrier<PIPE_V>();
        }
        left /= 2;
        Op::Run(left == 1 ? w : s, s, s[left * all], left * all);
    }
}""",
    "FoldInPlace": """\
// As FoldGroups, in the folded tile itself: what is beyond whole repeats of a row onto its first
// one, then the row's repeats in halves.
template <typename Op, typename T>
__aicore__ inline void FoldInPlace(const LocalTensor<T> &w, const LocalTensor<T> &a, int32_t rows,
                                   int32_t cols, uint8_t blocks)
{
    constexpr int32_t lanes = kLanes<T>;
    const BinaryRepeatParams strides(1, 1, 1, blocks, blocks, blocks);
    for (int32_t r = 0; r < rows; r += kRepeats) {
        const int32_t repeats = AtMost(kRepeats, rows - r);
        const auto part = a[r * blocks * kBlock<T>];
        int32_t left = cols / lanes;
        if (cols % lanes != 0) {
            Op::Run(part, part, part[left * lanes], cols % lanes, repeats, strides);
            PipeBarrier<PIPE_V>();
        }
        while (left > 1) {
            const int32_t half = (left + 1) / 2;
            for (int32_t c = 0; c < left - half; c++) {
                Op::Run(part[c * lanes], part[c * lanes], part[(c + half) * lanes], lanes, repeats,
                        strides);
            }
            PipeBarrier<PIPE_V>();
            left = half;
        }
        Muls(w[r * lanes], part, static_cast<T>(1), static_cast<uint64_t>(lanes),
             static_cast<uint8_t>(repeats), UnaryRepeatParams(1, 1, 8, blocks));
    }
}""",
    "FoldCols": """\
// Folds each row to at most 64 lanes: w[r][0..63]. `s` has half of what `a` has, or is `a`, which
// nothing reads afterwards.
template <typename Op, typename T>
__aicore__ inline void FoldCols(const LocalTensor<T> &w, const LocalTensor<T> &a,
                                const LocalTensor<T> &s, int32_t rows, int32_t cols, int32_t pitch)
{
    constexpr int32_t lanes = kLanes<T>;
    int32_t odd = cols / lanes;  // repeats of a row, then the factor of it that is odd
    while (odd > 0 && odd % 2 == 0) {
        odd /= 2;
    }
    if (cols == pitch && cols % lanes == 0 && cols > lanes && odd < 32) {
        FoldPairs<Op>(w, a, s, rows, cols);
        return;
    }
    const int32_t blocks = pitch / kBlock<T>;
    if (blocks <= 255 && cols < 2 * lanes) {
        FoldBeyond<Op>(w, a, rows, cols, static_cast<uint8_t>(blocks));
        return;
    }
    if (blocks <= 255 && (cols <= 4 * lanes || cols / lanes < 6 * rows)) {
        if (s.GetPhyAddr() == a.GetPhyAddr()) {
            FoldInPlace<Op>(w, a, rows, cols, static_cast<uint8_t>(blocks));
        } else {
            FoldGroups<Op>(w, a, s, rows, cols, static_cast<uint8_t>(blocks));
        }
        return;
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

"""The start of each kernel's namespace, waits between pipes, and instructions as types, so that
shapes of access are written once for all of them."""

from __future__ import annotations

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
    }}
}};"""

_SCALAR = {"Add": "a + b", "Sub": "a - b", "Mul": "a * b", "Div": "a / b",
           "Max": "a > b ? a : b", "Min": "a < b ? a : b"}  # fmt: skip


def _operation(name: str) -> str:
    """An instruction as a type."""
    return _OPERATION.format(name=name, scalar=_SCALAR[name])


BASICS: dict[str, str] = {
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
}

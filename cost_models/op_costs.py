"""Cost of the ops of a nest on a CPU core, in cycles per vector of fp32 (reciprocal throughput)."""

from __future__ import annotations

from kernel_gen.ir.dtype import DType

# Add, multiply, compare, select, bitwise: two vector pipes (Agner Fog, Instruction tables, Zen 4).
_SIMPLE = 0.5
# vdivps takes 10 cycles at 512 bits (same tables), but a row's divisor is often inverted once.
_TABLE = {
    "const": 0.0,
    "div": 6.0,
    "sqrt": 14.0,  # same tables
    "rsqrt": 6.0,  # estimate: 14-bit seed and one Newton step
    "reciprocal": 10.0,
    # exp and erf: what is left of measured softmax (0.32 ms for 3.1 M elements on two cores) and
    # LayerNorm + GELU (0.65 ms) after their simple ops. The others: estimates in proportion.
    "exp": 6.0,
    "exp2": 6.0,
    "expm1": 10.0,
    "log": 13.0,
    "log2": 13.0,
    "log10": 13.0,
    "log1p": 16.0,
    "sigmoid": 12.0,
    "tanh": 13.0,
    "erf": 14.0,
    "erfc": 20.0,
    "sin": 16.0,
    "cos": 16.0,
    "tan": 30.0,
    "asin": 25.0,
    "acos": 25.0,
    "atan": 25.0,
    "atan2": 35.0,
    "sinh": 25.0,
    "cosh": 25.0,
    "pow": 35.0,
    "floor_div": 12.0,
    "remainder": 14.0,
    "fmod": 25.0,
    "round": 1.0,
    "floor": 1.0,
    "ceil": 1.0,
    "trunc": 1.0,
    "cast": 1.0,
}
# Integer division has no vector form: about 10 cycles an element (same tables).
_INTEGER_DIVISION_CYCLES = 10.0
CONTIGUOUS_LOAD = 0.5  # two loads a cycle from L1
BROADCAST_LOAD = 0.0  # stays in a register
GATHER_LOAD_PER_ELEMENT = 1.0  # gathers and strided reads go element by element


def vector_cycles(op: str, dtype: DType, lanes: int) -> float:
    """Cycles of `op` on one vector of `lanes` elements."""
    if not dtype.is_float and op in ("floor_div", "remainder", "fmod"):
        return _INTEGER_DIVISION_CYCLES * lanes
    return _TABLE.get(op, _SIMPLE)

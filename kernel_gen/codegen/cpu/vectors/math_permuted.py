"""fp32 vector math for 16 lanes, by tables that one instruction looks up for all lanes (AVX-512).

A table of 16 entries is one register, one of 32 entries two; looking the rounded argument up costs
no multiply-add, of which Zen 4 and 5 finish one register a cycle or two, and saves several.

    e^x     = 2^(row / 16) · e^r, |r| < ln 2 / 32: a cubic in r        (Tang 1989)
    erf(a)  = a · P(a - row / 4): a polynomial of degree 5 for each row; tanh(a) alike

As accurate as the texts of `math_f32`, which every other target uses; placeholders are theirs.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

from kernel_gen.codegen.cpu.vectors.math_f32 import LN2_HI, LN2_LO, MAGIC
from kernel_gen.codegen.cpu.vectors.tables_f32 import ERF, ROOTS, ROOTS_REST, TANH

PERMUTED_LANES = 16
_MAGIC_16 = "786432.0f"  # 1.5·2^19: adding it rounds to sixteenths
_STEP = 1 << 19  # an integer's low 4 bits, moved to where the next ones are an exponent


def _floats(values: Sequence[float]) -> str:
    return f"(F){{{', '.join(f'{value!r}f' for value in values)}}}"


def _powers(shift: int) -> str:
    """Bits of 2^(shift + row/16), less the row: with `t << 19` added those of 2^(shift + t/16)."""
    bits = struct.unpack("16i", struct.pack("16f", *ROOTS))
    numbers = [b - row * _STEP + (shift << 23) for row, b in enumerate(bits)]
    return f"(I){{{', '.join(map(str, numbers))}}}"


# x = (16 k + row) · ln 2 / 16 + r: t holds 16 k + row. Constants as in `math_f32`, over 16.
_REDUCE = f"""\
  const F t = x * 23.083120654223414f + {MAGIC}, k = t - {MAGIC};
  const F r = (x - k * 0.0433349609375f) - k * -1.32621525e-5f;"""
_CUBIC = "(0.16666929423809052f * r + 0.5000162720680237f) * (r * r) + {r}"


def _rows(columns: Sequence[Sequence[float]], width: float, top: float) -> str:
    """An odd function that is 1 from `top` on: its quotient by the argument, row by row."""

    def row(column: Sequence[float]) -> str:
        halves = [
            _floats(column[at : at + PERMUTED_LANES])
            for at in range(0, len(column), PERMUTED_LANES)
        ]
        return f"__builtin_shuffle({', '.join(halves)}, i)"

    lines = [f"  F q = {row(columns[-1])};"]
    lines += [f"  q = q * d + {row(column)};" for column in reversed(columns[1:-1])]
    body = "\n".join(lines)
    return f"""\
static inline F NAME(F v) {{
  const F top = {top}f + (F){{}}, x = @min(top, @max(-top, v)), a = @abs(x); /* a NaN stays */
{_place(width)}
  const I i = (I)t;
{body}
  return x * {row(columns[0])} + (x * d) * q;
}}"""


def _place(width: float) -> str:
    """t with the nearest row's number in its low bits, and how far a lies from that row: by sums
    alone where a float's last bit can be a row, which leaves the multipliers to the polynomial."""
    if math.log2(width).is_integer():
        magic = f"{1.5 * 2**23 * width!r}f"
        return f"  const F t = a + {magic}, d = a - (t - {magic});"
    return f"  const F t = a * {1 / width!r}f + {MAGIC}, d = a - (t - {MAGIC}) * {width!r}f;"


PERMUTED_TEXT: dict[str, str] = {
    # t holds row / 16 in its last four bits; what vanishes is not scaled
    "exp": f"""\
static inline F NAME(F x) {{
  const F low = -104.0f + (F){{}}, high = 89.0f + (F){{}};
  const unsigned short there = __builtin_ia32_cmpps512_mask(x, low, 5, -1, 4);
  x = @min(high, x); /* a NaN stays */
  const F t = x * 1.44269504088896341f + {_MAGIC_16}, k = t - {_MAGIC_16};
  const F r = (x - k * {LN2_HI}) - k * {LN2_LO};
  const F p = {_CUBIC.format(r="r")}, w = __builtin_shuffle({_floats(ROOTS)}, (I)t);
  return __builtin_ia32_scalefps512_mask(p * w + w, k, (F){{}}, there, 4);
}}""",
    # x <= 0, as in a softmax; what would be below the smallest normal number is 0
    "exp_falling": f"""\
static inline F NAME(F x) {{
{_REDUCE}
  const F p = {_CUBIC.format(r="r")};
  const F s = (F)(((I)t << 19) + __builtin_shuffle({_powers(0)}, (I)t));
  return x < -87.3365f ? (F){{}} : p * s + s; /* a NaN stays */
}}""",
    # 1 / (1 + e^-v) as c / (c + e) with c = 2^-64, so that nothing overflows down to the least
    # subnormal number. One step of Newton's takes the residual from c and e, not from their sum,
    # whose rounding so does not count; a division of 16 lanes takes 16 cycles on Intel.
    "sigmoid": f"""\
static inline F NAME(F v) {{
  const F low = -104.0f + (F){{}}, high = 20.0f + (F){{}};
  const F x = -@max(low, @min(high, v)); /* a NaN stays */
{_REDUCE}
  const F p = {_CUBIC.format(r=f"(r + __builtin_shuffle({_floats(ROOTS_REST)}, (I)t))")};
  const F w = (F)(((I)t << 19) + __builtin_shuffle({_powers(-64)}, (I)t));
  const F e = p * w + w, s = e + 0x1p-64f;
  const F q = __builtin_ia32_rcp14ps512_mask(s, s, -1), y = q * 0x1p-64f;
  return y + y * ((1.0f - y) - e * q);
}}""",
    "tanh": _rows(TANH, 19 / 64, 9.2),
    "erf": _rows(ERF, 1 / 4, 3.874),
}
"""Text by name."""

PERMUTED_DEPENDS: dict[str, tuple[str, ...]] = {
    "exp": ("min",),
    "sigmoid": ("max", "min"),
    "tanh": ("abs", "max", "min"),
    "erf": ("abs", "max", "min"),
}
"""Functions that must stand before one."""

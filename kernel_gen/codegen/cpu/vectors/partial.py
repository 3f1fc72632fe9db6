"""Vector loads that read some of the elements they pass: a window of lanes, every second element.

window          p[0] p[1] p[2] p[3], lanes [1, 3)   ->  fill p[1] p[2] fill
every second    p[0] p[1] … p[6]                    ->  p[0] p[2] p[4] p[6]
"""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.masked import masked_load
from kernel_gen.codegen.cpu.vectors.names import SCALAR_C, vector_type
from kernel_gen.codegen.cpu.vectors.stored import widened
from kernel_gen.codegen.cpu.vectors.types import INTEGER, Lanes, tag, value_type
from kernel_gen.ir.dtype import DType


def window_load(unit: Unit, dtype: DType, lanes: Lanes) -> str:
    """`value f(const stored *p, gaf_i64 from, gaf_i64 to, value fill)`: lanes [from, to) of those
    at p, `fill` in the others, whose elements are not touched."""
    value = value_type(unit, dtype, lanes)
    kind = lanes.mask if dtype is DType.BOOL else INTEGER[dtype.compute.bytes]
    mask, lane = vector_type(unit, kind, lanes.count), SCALAR_C[kind]
    name = f"gaf_ldw_{tag(dtype, lanes)}"
    places = ", ".join(map(str, range(lanes.count)))
    return unit.helper(
        name,
        f"static inline {value} {name}(const {SCALAR_C[dtype]} *p, gaf_i64 from, gaf_i64 to, "
        f"{value} fill) {{\n"
        f"  const {lane} first = ({lane})(from < 0 ? 0 : from < {lanes.count} ? from :"
        f" {lanes.count});\n"
        f"  const {lane} end = ({lane})(to < 0 ? 0 : to < {lanes.count} ? to : {lanes.count});\n"
        f"  const {mask} at = {{{places}}}, live = (at >= first) & (at < end);\n"
        f"{masked_load(unit, dtype, lanes.count, 'first', 'end')}"
        f"  return live ? {widened(unit, dtype, lanes, 'r')} : fill;\n}}",
    )


def every_second(unit: Unit, dtype: DType, lanes: Lanes) -> str:
    """`value f(const stored *p)`: p[0], p[2], …; nothing behind the last of them is touched."""
    count = lanes.count
    raw, value = vector_type(unit, dtype, count), value_type(unit, dtype, lanes)
    name = f"gaf_ld2_{tag(dtype, lanes)}"
    half = count // 2
    places = ", ".join(str(2 * i if i < half else count + 2 * (i - half) + 1) for i in range(count))
    picked = f"__builtin_shufflevector(a, b, {places})"
    return unit.helper(
        name,
        f"static inline {value} {name}(const {SCALAR_C[dtype]} *p) {{\n"
        f"  const {raw} a = *(const {raw}u *)p, b = *(const {raw}u *)(p + {count - 1});\n"
        f"  return {widened(unit, dtype, lanes, picked)};\n}}",
    )

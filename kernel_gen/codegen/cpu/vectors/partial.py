"""Vector loads that read some of the elements they pass: a window of lanes, every second element.

window          p[0] p[1] p[2] p[3], lanes [1, 3)   ->  fill p[1] p[2] fill
every second    p[0] p[1] … p[6]                    ->  p[0] p[2] p[4] p[6]
"""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.masked import HAS_MASKS, is_masked, masked_load
from kernel_gen.codegen.cpu.vectors.moves import load_function
from kernel_gen.codegen.cpu.vectors.names import SCALAR_C, vector_type
from kernel_gen.codegen.cpu.vectors.stored import widened
from kernel_gen.codegen.cpu.vectors.types import INTEGER, Lanes, tag, value_type
from kernel_gen.ir.dtype import DType


def window_load(unit: Unit, dtype: DType, lanes: Lanes, *, filled: bool) -> str:
    """`value f(const stored *p, gaf_i64 from, gaf_i64 to[, value fill])`: lanes [from, to) of those
    at p; in the others, whose elements are not touched, zeros or `fill`.

    Where a mask costs nothing (AVX-512) there is no branch for whole vectors, and the mask leaves
    the loops that do not change it.
    """
    value, stored, count = value_type(unit, dtype, lanes), SCALAR_C[dtype], lanes.count
    name = f"gaf_ldw{'f' if filled else ''}_{tag(dtype, lanes)}"
    plain = load_function(unit, dtype, lanes, partial=False)
    held = widened(unit, dtype, lanes, "r")
    whole = f"  if (from <= 0 && to >= {count}) return {plain}(p);\n"
    if is_masked(dtype, count):
        whole = f"#if !({HAS_MASKS})\n{whole}#endif\n"
    text = (
        f"static inline {value} {name}(const {stored} *p, gaf_i64 from, gaf_i64 to"
        f"{f', {value} fill' if filled else ''}) {{\n"
        f"{whole}"
        f"  const int first = (int)(from < 0 ? 0 : from < {count} ? from : {count});\n"
        f"  const int end = (int)(to < 0 ? 0 : to < {count} ? to : {count});\n"
        f"{masked_load(unit, dtype, count, 'first', 'end')}"
    )
    if not filled:
        return unit.helper(name, f"{text}  return {held};\n}}")
    kind = lanes.mask if dtype is DType.BOOL else INTEGER[dtype.compute.bytes]
    mask, lane = vector_type(unit, kind, count), SCALAR_C[kind]
    places = ", ".join(map(str, range(count)))
    live = f"(at >= ({lane})first) & (at < ({lane})end)"
    return unit.helper(
        name, f"{text}  const {mask} at = {{{places}}};\n  return {live} ? {held} : fill;\n}}"
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

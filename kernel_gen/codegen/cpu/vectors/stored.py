"""Values as they are stored and as they are computed: narrow floats in fp32, bools as masks."""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.halves import narrow_f16, widen_f16
from kernel_gen.codegen.cpu.vectors.names import SCALAR_C, vector_type
from kernel_gen.codegen.cpu.vectors.types import Lanes, tag, value_type
from kernel_gen.codegen.cpu.vectors.widths import from_i32, to_i32
from kernel_gen.ir.dtype import DType


def widened(unit: Unit, dtype: DType, lanes: Lanes, text: str) -> str:
    """Expression of stored lanes `text` in the type they are computed in."""
    if dtype not in (DType.BF16, DType.F16, DType.BOOL):
        return text
    n = lanes.count
    raw, value = vector_type(unit, dtype, n), value_type(unit, dtype, lanes)
    name = f"gaf_widen_{tag(dtype, lanes)}"
    if dtype is DType.BF16:
        f32 = vector_type(unit, DType.F32, n)
        body = f"  return ({f32})({to_i32(unit, dtype, n, 'x')} << 16);\n"
    elif dtype is DType.F16:
        body = widen_f16(unit, n)
    elif lanes.mask_bytes == 4:
        body = f"  return {to_i32(unit, dtype, n, 'x')} != 0;\n"
    else:
        body = f"  return __builtin_convertvector(x, {value}) != 0;\n"
    unit.helper(name, f"static inline {value} {name}({raw} x) {{\n{body}}}")
    return f"{name}({text})"


def narrowed(unit: Unit, dtype: DType, lanes: Lanes, text: str) -> str:
    """Expression of computed lanes `text` in the stored type, floats rounded to nearest even."""
    if dtype not in (DType.BF16, DType.F16, DType.BOOL):
        return text
    n = lanes.count
    raw, value = vector_type(unit, dtype, n), value_type(unit, dtype, lanes)
    name = f"gaf_narrow_{tag(dtype, lanes)}"
    if dtype is DType.BF16:
        i32 = vector_type(unit, DType.I32, n)
        body = (
            f"  const {i32} b = ({i32})x, r = (b + 0x7fff + ((b >> 16) & 1)) >> 16;\n"
            f"  return {from_i32(unit, dtype, n, f'x == x ? r : 0x7fc0 - ({i32}){{}}')};\n"
        )
    elif dtype is DType.F16:
        body = narrow_f16(unit, n)
    elif lanes.mask_bytes == 4:
        body = f"  return {from_i32(unit, dtype, n, '-x')};\n"
    else:
        body = f"  return __builtin_convertvector(-x, {raw});\n"
    unit.helper(name, f"static inline {raw} {name}({value} x) {{\n{body}}}")
    return f"{name}({text})"


def scalar_load(unit: Unit, dtype: DType, text: str) -> str:
    """Expression of the computed value of one stored element `text` (an lvalue)."""
    if dtype is DType.BOOL:
        return f"({text} != 0)"
    if dtype is DType.BF16:
        name = unit.helper(
            "gaf_bf16_f32",
            "static inline float gaf_bf16_f32(unsigned short h) "
            "{ return __builtin_bit_cast(float, (unsigned)h << 16); }",
        )
        return f"{name}({text})"
    if dtype is DType.F16:
        return f"{_scalar_by_vector(unit, dtype, widen=True)}({text})"
    return text


def scalar_store(unit: Unit, dtype: DType, text: str) -> str:
    """Expression of the stored element for the computed scalar `text`."""
    if dtype in (DType.BF16, DType.F16):
        return f"{_scalar_by_vector(unit, dtype, widen=False)}({text})"
    return f"({SCALAR_C[dtype]})({text})"


def _scalar_by_vector(unit: Unit, dtype: DType, *, widen: bool) -> str:
    """One element through the four-lane conversion, so that scalars and vectors agree."""
    four = Lanes(4)
    if widen:
        name, raw = f"gaf_{dtype}_to_f32", vector_type(unit, dtype, 4)
        inner = widened(unit, dtype, four, f"{raw}{{x, x, x, x}}")
        text = f"float {name}(unsigned short x) {{ return {inner}[0]; }}"
    else:
        name, raw = f"gaf_f32_to_{dtype}", vector_type(unit, DType.F32, 4)
        inner = narrowed(unit, dtype, four, f"{raw}{{x, x, x, x}}")
        text = f"unsigned short {name}(float x) {{ return {inner}[0]; }}"
    return unit.helper(name, "static inline " + text)

"""Vectors of bytes to 32-bit lanes and back: compilers go through memory, lane by lane, where the
processor has an instruction or two."""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.names import vector_type
from kernel_gen.ir.dtype import DType

_WIDEN = {4: ("__SSE4_1__", "128"), 8: ("__AVX2__", "256"), 16: ("__AVX512F__", "512")}


def bytes_to_i32(unit: Unit, dtype: DType, lanes: int, text: str) -> str:
    """Expression of the i8 or u8 (also bool) lanes `text` as i32 lanes."""
    raw, wide = vector_type(unit, dtype, lanes), vector_type(unit, DType.I32, lanes)
    name = f"gaf_widen_{raw.removeprefix('gaf_')}_i32"
    plain = f"  return __builtin_convertvector(x, {wide});\n"
    body = plain
    if lanes in _WIDEN:
        macro, size = _WIDEN[lanes]
        full = "gaf_charx16"
        unit.helper(full, f"typedef char {full} __attribute__((vector_size(16)));")
        places = ", ".join(str(i % lanes) for i in range(16))
        sign = "s" if dtype is DType.I8 else "z"
        call = f"__builtin_ia32_pmov{sign}xbd{size}"
        given = f"({full})__builtin_shufflevector(x, x, {places})"
        call = f"{call}_mask({given}, ({wide}){{}}, -1)" if size == "512" else f"{call}({given})"
        body = (
            f"#if defined({macro}) && !defined(__clang__)\n  return ({wide}){call};\n"
            f"#else\n{plain}#endif\n"
        )
    unit.helper(name, f"static inline {wide} {name}({raw} x) {{\n{body}}}")
    return f"{name}({text})"


def i32_to_bytes(unit: Unit, dtype: DType, lanes: int, text: str) -> str:
    """Expression of the low bytes of the i32 lanes `text` as lanes of i8 or u8 (also bool)."""
    raw, wide = vector_type(unit, dtype, lanes), vector_type(unit, DType.I32, lanes)
    name = f"gaf_narrow_i32_{raw.removeprefix('gaf_')}"
    apart = vector_type(unit, DType.U8 if dtype is DType.BOOL else dtype, 4 * lanes)
    places = ", ".join(str(4 * i) for i in range(lanes))
    return (
        unit.helper(
            name,
            f"static inline {raw} {name}({wide} x) {{\n"
            "#if defined(__SSSE3__) && !defined(__AVX512F__)\n"
            f"  const {apart} b = ({apart})x;\n"
            f"  return ({raw})__builtin_shufflevector(b, b, {places});\n"
            f"#else\n  return __builtin_convertvector(x, {raw});\n#endif\n}}",
        )
        + f"({text})"
    )

"""Vectors of 8- and 16-bit integers to 32-bit lanes and back: compilers go through memory lane by
lane, or by halves and permutations, where the processor has an instruction or two."""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.names import vector_type
from kernel_gen.ir.dtype import DType

_WIDEN = {4: ("__SSE4_1__", "128"), 8: ("__AVX2__", "256"), 16: ("__AVX512F__", "512")}
_LETTER = {1: "b", 2: "w"}
_SIGNED = {1: DType.I8, 2: DType.I16}


def to_i32(unit: Unit, dtype: DType, lanes: int, text: str) -> str:
    """Expression of the lanes `text` of 8 or 16 bits as i32 lanes: i8 and i16 by their sign, u8,
    bool and the bits of narrow floats by zeros."""
    raw, wide = vector_type(unit, dtype, lanes), vector_type(unit, DType.I32, lanes)
    name = f"gaf_widen_{raw.removeprefix('gaf_')}_i32"
    plain = f"  return __builtin_convertvector(x, {wide});\n"
    body = plain
    if lanes in _WIDEN:
        macro, size = _WIDEN[lanes]
        full, count = _register(unit, dtype.bytes, lanes)
        places = ", ".join(str(i % lanes) for i in range(count))
        given = "x" if count == lanes else f"__builtin_shufflevector(x, x, {places})"
        sign = "s" if dtype in _SIGNED.values() else "z"
        call = f"__builtin_ia32_pmov{sign}x{_LETTER[dtype.bytes]}d{size}"
        more = f", ({wide}){{}}, -1" if size == "512" else ""
        call = f"{call}{'_mask' if more else ''}(({full}){given}{more})"
        body = _either(f"defined({macro})", f"  return ({wide}){call};\n", plain)
    unit.helper(name, f"static inline {wide} {name}({raw} x) {{\n{body}}}")
    return f"{name}({text})"


def from_i32(unit: Unit, dtype: DType, lanes: int, text: str) -> str:
    """Expression of the low 8 or 16 bits of the i32 lanes `text` as lanes of `dtype`."""
    raw, wide = vector_type(unit, dtype, lanes), vector_type(unit, DType.I32, lanes)
    name = f"gaf_narrow_i32_{raw.removeprefix('gaf_')}"
    plain = f"  return __builtin_convertvector(x, {raw});\n"
    if lanes == 16:
        full, _ = _register(unit, dtype.bytes, lanes)
        call = f"__builtin_ia32_pmovd{_LETTER[dtype.bytes]}512_mask(x, ({full}){{}}, -1)"
        body = _either("defined(__AVX512F__)", f"  return ({raw}){call};\n", plain)
    else:
        step = 4 // dtype.bytes
        parts = vector_type(unit, _SIGNED[dtype.bytes], step * lanes)
        places = ", ".join(str(step * i) for i in range(lanes))
        picked = f"  const {parts} b = ({parts})x;\n"
        picked += f"  return ({raw})__builtin_shufflevector(b, b, {places});\n"
        body = f"#ifdef __SSSE3__\n{picked}#else\n{plain}#endif\n"
    return unit.helper(name, f"static inline {raw} {name}({wide} x) {{\n{body}}}") + f"({text})"


def _register(unit: Unit, size: int, lanes: int) -> tuple[str, int]:
    """The vector type of integers of `size` bytes that instructions take for `lanes` of them, and
    its number of lanes: whole registers of 16 bytes and more."""
    count = max(lanes, 16 // size)
    if size > 1:
        return vector_type(unit, _SIGNED[size], count), count
    full = f"gaf_charx{count}"
    return unit.helper(full, f"typedef char {full} __attribute__((vector_size({count})));"), count


def _either(condition: str, text: str, plain: str) -> str:
    """`text` where the condition holds and the compiler knows GCC's names, else `plain`."""
    return f"#if {condition} && !defined(__clang__)\n{text}#else\n{plain}#endif\n"

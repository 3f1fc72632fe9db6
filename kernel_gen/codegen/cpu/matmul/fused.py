"""Multiply-adds of the register tiles, and pairs of bf16 for those that multiply them as they are.

A pair holds steps k and k + 1 of the sum, the first in its low half: what AVX512_BF16 multiplies in
one instruction. Other targets take the pair apart in registers and read half the memory.
"""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.stored import widened
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C, Lanes, vector_type
from kernel_gen.codegen.cpu.vectors.widths import from_i32, to_i32
from kernel_gen.ir.dtype import DType

_X86 = {"float": ("vfmadd231ps", 4), "double": ("vfmadd231pd", 8)}


def multiply_add(unit: Unit, scalar: str, vector: str, lanes: int) -> str:
    """`void f(vector &c, vector a, vector b)`: c += a · b, in one rounding where there is FMA.

    x86 has forms that overwrite a factor instead of the sum. A compiler that picks them in an
    unrolled loop must copy sums between registers: GCC 12 lost a tenth of a 4×3 tile's rate that
    way, hence the instruction by name.
    """
    plain = "  c += a * b;"
    if scalar in _X86:
        name, size = _X86[scalar]
        has = "__AVX512F__" if size * lanes == 64 else "__FMA__"
        fused = f'  asm("{name} %1, %2, %0" : "+v"(c) : "v"(a), "v"(b));'
        plain = f"#ifdef {has}\n{fused}\n#else\n{plain}\n#endif"
    name = f"gaf_fma_{vector}"
    head = f"static inline __attribute__((always_inline)) void {name}"
    return unit.helper(name, f"{head}({vector} &c, {vector} a, {vector} b) {{\n{plain}\n}}")


def high_halves(unit: Unit, vector: str, lanes: int) -> tuple[str, str]:
    """`u16 vector f(vector)`: values that are bf16 already, as bf16; and the result's type."""
    whole, half = vector_type(unit, DType.I32, lanes), vector_type(unit, DType.BF16, lanes)
    name = f"gaf_high_halves_{vector}"
    body = f"return {from_i32(unit, DType.BF16, lanes, f'({whole})x >> 16')};"
    return unit.helper(name, f"static inline {half} {name}({vector} x) {{ {body} }}"), half


def join_halves(unit: Unit, vector: str, lanes: int) -> str:
    """`vector f(vector x, vector y)`: pairs of two vectors whose values are bf16 already."""
    whole = vector_type(unit, DType.I32, lanes)
    name = f"gaf_join_halves_{vector}"
    first = f"(({whole})x >> 16) & 0xffff"
    body = f"return ({vector})(({first}) | (({whole})y & -65536));"
    return unit.helper(name, f"static inline {vector} {name}({vector} x, {vector} y) {{ {body} }}")


def widened_name(stored: DType, lanes: int) -> str:
    """Name of the function that `read_widened` defines."""
    return f"gaf_read_{stored}x{lanes}"


def read_widened(unit: Unit, stored: DType, lanes: int) -> str:
    """`vector f(const stored *p)`: narrow floats, or integers of 8 bits, as fp32."""
    kept, result = vector_type(unit, stored, lanes), vector_type(unit, DType.F32, lanes)
    name = widened_name(stored, lanes)
    value = f"*(const {kept}u *)p"
    if stored.is_float:
        value = widened(unit, stored, Lanes(lanes), value)
    else:
        value = f"__builtin_convertvector({to_i32(unit, stored, lanes, value)}, {result})"
    head = f"static inline __attribute__((always_inline)) {result} {name}"
    return unit.helper(name, f"{head}(const {SCALAR_C[stored]} *p) {{ return {value}; }}")

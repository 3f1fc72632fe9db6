"""Multiply-adds of the register tiles."""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit

_X86 = {"float": "vfmadd231ps", "double": "vfmadd231pd"}


def multiply_add(unit: Unit, scalar: str, vector: str) -> str:
    """`void f(vector &c, vector a, vector b)`: c += a · b, in one rounding where there is FMA.

    x86 has forms that overwrite a factor instead of the sum. A compiler that picks them in an
    unrolled loop must copy sums between registers: GCC 12 lost a tenth of a 4×3 tile's rate that
    way, hence the instruction by name.
    """
    plain = "  c += a * b;"
    if scalar in _X86:
        fused = f'  asm("{_X86[scalar]} %1, %2, %0" : "+v"(c) : "v"(a), "v"(b));'
        plain = f"#ifdef __FMA__\n{fused}\n#else\n{plain}\n#endif"
    name = f"gaf_fma_{vector}"
    head = f"static inline __attribute__((always_inline)) void {name}"
    return unit.helper(name, f"{head}({vector} &c, {vector} a, {vector} b) {{\n{plain}\n}}")

"""Names of C types: scalars and vectors of them."""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.ir.dtype import DType

SCALAR_C = {
    DType.F64: "double",
    DType.F32: "float",
    DType.F16: "unsigned short",
    DType.BF16: "unsigned short",
    DType.I64: "gaf_i64",
    DType.I32: "int",
    DType.I16: "short",
    DType.I8: "signed char",
    DType.U8: "unsigned char",
    DType.BOOL: "unsigned char",
}
"""C type of one stored element; f16 and bf16 are held as their bits."""


def vector_type(unit: Unit, dtype: DType, lanes: int) -> str:
    """Name of the vector type with `lanes` elements of a *storage* dtype, defined in `unit`."""
    tag = {DType.BOOL: "u8", DType.BF16: "u16", DType.F16: "u16"}.get(dtype, str(dtype))
    name = f"gaf_{tag}x{lanes}"
    size = dtype.bytes * lanes
    return unit.helper(
        name,
        f"typedef {SCALAR_C[dtype]} {name} __attribute__((vector_size({size})));\n"
        f"typedef {SCALAR_C[dtype]} {name}u "
        f"__attribute__((vector_size({size}), aligned({dtype.bytes}), may_alias));",
    )

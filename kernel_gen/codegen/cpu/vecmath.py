"""Math functions of kernels: own vector code where there is some, libm by lane elsewhere."""

from __future__ import annotations

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectypes import SCALAR_C, vector_type
from kernel_gen.errors import InternalError
from kernel_gen.ir.dtype import DType

LIBM = {
    "asin": 1, "acos": 1, "atan": 1, "sinh": 1, "cosh": 1, "tan": 1, "sin": 1, "cos": 1,
    "exp": 1, "exp2": 1, "expm1": 1, "log": 1, "log2": 1, "log10": 1, "log1p": 1,
    "tanh": 1, "erf": 1, "erfc": 1, "fmod": 2, "pow": 2, "atan2": 2,
}  # fmt: skip
"""Functions that the C library has under the same name, and their arity."""


def by_lane(unit: Unit, scalar: str, dtype: DType, lanes: int, arity: int) -> str:
    """A vector function that calls the scalar function for each lane."""
    kind = vector_type(unit, dtype, lanes)
    name = f"{scalar}_x{lanes}"
    names = "ab"[:arity]
    parameters = ", ".join(f"{kind} {n}" for n in names)
    call = ", ".join(f"{n}[l]" for n in names)
    return unit.helper(
        name,
        f"static inline {kind} {name}({parameters}) {{\n  {kind} r;\n"
        f"  for (int l = 0; l < {lanes}; l++) r[l] = {scalar}({call});\n  return r;\n}}",
    )


def libm_function(unit: Unit, op: str, dtype: DType) -> str:
    """Declares the C library's function for a scalar."""
    if op not in LIBM:
        raise InternalError(f"no math function for {op}")
    c = SCALAR_C[dtype]
    name = f"{op}f" if dtype is DType.F32 else op
    parameters = ", ".join([c] * LIBM[op])
    return unit.helper(name, f'extern "C" {c} {name}({parameters}) noexcept;')


def scalar_function(unit: Unit, op: str, dtype: DType) -> str:
    return libm_function(unit, op, dtype)


def vector_function(unit: Unit, op: str, dtype: DType, lanes: int) -> str:
    return by_lane(unit, libm_function(unit, op, dtype), dtype, lanes, LIBM[op])

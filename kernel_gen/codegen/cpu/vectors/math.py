"""Math functions of kernels, on vectors and scalars of f32 and f64.

f32: own vector code (`math_f32`). Rounding, sqrt, abs: instructions, through loops over lanes
that compilers turn into one. Everything else: the C library's function for each lane.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.math_f32 import DEPENDS, F32_TEXT
from kernel_gen.codegen.cpu.vectors.math_permuted import (
    PERMUTED_DEPENDS,
    PERMUTED_LANES,
    PERMUTED_TEXT,
)
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C, vector_type
from kernel_gen.errors import InternalError
from kernel_gen.ir.dtype import DType

_LIBM = {
    "asin": 1, "acos": 1, "atan": 1, "sinh": 1, "cosh": 1, "tan": 1, "sin": 1, "cos": 1,
    "exp": 1, "exp2": 1, "expm1": 1, "log": 1, "log2": 1, "log10": 1, "log1p": 1,
    "tanh": 1, "erf": 1, "erfc": 1, "fmod": 2, "pow": 2, "atan2": 2,
}  # fmt: skip
"""Functions that the C library has under the same name, and their arity."""

_BUILTIN = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "round": "nearbyint",
            "trunc": "trunc"}  # fmt: skip
"""Ops that are one instruction from SSE4.1 on; `round` is half to even, the default mode."""

_BITS = {
    "abs": "static inline F NAME(F x) { return (F)((I)x & MAX); }",
    "copysign": "static inline F NAME(F x, F y) { return (F)(((I)x & MAX) | ((I)y & ~MAX)); }",
}

# Python's rules (and torch's): the remainder has the divisor's sign, the quotient is floored.
_SCALAR_TEXT = {
    "remainder": """\
static inline C NAME(C a, C b) {
  const C r = @fmod(a, b);
  return r != 0 && (b < 0) != (r < 0) ? r + b : r;
}""",
    "floor_div": """\
static inline C NAME(C a, C b) {
  if (b == 0) return a / b;
  const C r = @fmod(a, b);
  C q = (a - r) / b;
  if (r != 0 && (b < 0) != (r < 0)) q -= 1;
  if (q == 0) return COPYSIGN(0, a / b);
  const C down = FLOOR(q);
  return q - down > (C)0.5 ? down + 1 : down;
}""",
    "rsqrt": "static inline C NAME(C x) { return 1 / SQRT(x); }",
    "sigmoid": """\
static inline C NAME(C x) {
  const C e = @exp(x < 0 ? x : -x);
  return (x < 0 ? e : 1) / (1 + e);
}""",
    "abs": "static inline C NAME(C x) { return FABS(x); }",
    "copysign": "static inline C NAME(C x, C y) { return COPYSIGN(x, y); }",
}
_ARITY = {**_LIBM, **dict.fromkeys(_BUILTIN, 1), "remainder": 2, "floor_div": 2, "rsqrt": 1,
          "sigmoid": 1, "abs": 1, "copysign": 2}  # fmt: skip


def extreme_function(unit: Unit, op: str, dtype: DType, lanes: int) -> str:
    """`V f(V a, V b)`: a > b ? a : b (`op` "max") or a < b ? a : b; b where one is NaN.

    That is what x86's instruction does, but compilers do not always see it.
    """
    kind, sign = vector_type(unit, dtype, lanes), ">" if op == "max" else "<"
    name = f"gaf_{op}_{dtype}x{lanes}"
    suffix = "ps" if dtype is DType.F32 else "pd"
    builtin = f"__builtin_ia32_{op}{suffix}"
    form = {
        16: ("__SSE2__", f"{builtin}(a, b)"),
        32: ("__AVX__", f"{builtin}256(a, b)"),
        64: ("__AVX512F__", f"{builtin}512_mask(a, b, b, -1, 4)"),
    }.get(dtype.bytes * lanes)
    plain = f"  return a {sign} b ? a : b;\n"
    body = plain
    if form is not None:
        body = (
            f"#if defined({form[0]}) && !defined(__clang__)\n  return {form[1]};\n"
            f"#else\n{plain}#endif\n"
        )
    return unit.helper(name, f"static inline {kind} {name}({kind} a, {kind} b) {{\n{body}}}")


def any_function(unit: Unit, lanes: int) -> str:
    """`int f(I x)`: whether some lane is not 0. Halves are joined: compilers take lanes out one by
    one, sixteen of them for a register of AVX-512."""
    kind, step = vector_type(unit, DType.I32, lanes), lanes // 2
    name = f"gaf_any_{kind.removeprefix('gaf_')}"
    lines = [f"static inline int {name}({kind} x) {{"]
    while step:
        order = ", ".join(str((lane + step) % lanes) for lane in range(lanes))
        lines.append(f"  x |= __builtin_shufflevector(x, x, {order});")
        step //= 2
    return unit.helper(name, "\n".join([*lines, "  return x[0] != 0;", "}"]))


def vector_function(unit: Unit, op: str, dtype: DType, lanes: int) -> str:
    """Name of `V f(V…)` for `lanes` elements of f32 or f64."""
    if dtype is DType.F32 and op in F32_TEXT:
        return _f32_function(unit, op, lanes)
    if op in _BITS:
        return _bits_function(unit, op, dtype, lanes)
    if op == "rsqrt":
        return _rsqrt_function(unit, dtype, lanes)
    return by_lane(unit, scalar_function(unit, op, dtype), dtype, lanes, _ARITY[op])


def scalar_function(unit: Unit, op: str, dtype: DType) -> str:
    """Name of the scalar function; the same values as the vector function gives."""
    if dtype is DType.F32 and op in F32_TEXT:
        return _through_vector(unit, op)
    if op in _BUILTIN:
        return f"__builtin_{_BUILTIN[op]}{_suffix(dtype)}"
    if op in _SCALAR_TEXT:
        return _scalar_text(unit, op, dtype)
    return _libm_function(unit, op, dtype)


def by_lane(unit: Unit, scalar: str, dtype: DType, lanes: int, arity: int) -> str:
    """A vector function that calls the scalar function for each lane."""
    kind = vector_type(unit, dtype, lanes)
    name = f"gaf_{scalar.removeprefix('gaf_').removeprefix('__builtin_')}_{dtype}x{lanes}"
    names = "ab"[:arity]
    parameters = ", ".join(f"{kind} {n}" for n in names)
    call = ", ".join(f"{n}[l]" for n in names)
    return unit.helper(
        name,
        f"static inline {kind} {name}({parameters}) {{\n  {kind} r;\n"
        f"  for (int l = 0; l < {lanes}; l++) r[l] = {scalar}({call});\n  return r;\n}}",
    )


def _suffix(dtype: DType) -> str:
    return "f" if dtype is DType.F32 else ""


def _libm_function(unit: Unit, op: str, dtype: DType) -> str:
    """Declares the C library's function for a scalar."""
    if op not in _LIBM:
        raise InternalError(f"no math function for {op}")
    c = SCALAR_C[dtype]
    name = f"{op}{_suffix(dtype)}"
    parameters = ", ".join([c] * _LIBM[op])
    return unit.helper(name, f'extern "C" {c} {name}({parameters}) noexcept;')


def _scalar_text(unit: Unit, op: str, dtype: DType) -> str:
    name, suffix = f"gaf_{op}_{dtype}", _suffix(dtype)
    text = _SCALAR_TEXT[op]
    for needed in re.findall(r"@(\w+)", text):
        text = text.replace(f"@{needed}", scalar_function(unit, needed, dtype))
    for builtin in ("copysign", "floor", "sqrt", "fabs"):
        text = text.replace(builtin.upper(), f"__builtin_{builtin}{suffix}")
    text = re.sub(r"\bC\b", SCALAR_C[dtype], text)
    return unit.helper(name, text.replace("NAME", name))


def _through_vector(unit: Unit, op: str) -> str:
    """A scalar by the four-lane vector code, so that scalars and vectors agree."""
    inner, kind = _f32_function(unit, op, 4), vector_type(unit, DType.F32, 4)
    name = f"gaf_{op}_f32"
    return unit.helper(
        name,
        f"static inline float {name}(float x) {{ return {inner}({kind}{{x, x, x, x}})[0]; }}",
    )


def _f32_function(unit: Unit, op: str, lanes: int) -> str:
    """The function's text; for 16 lanes the one by tables, where the target permutes so many."""
    name = f"gaf_{op}_f32x{lanes}"
    if op in ("sin", "cos"):
        _libm_function(unit, op, DType.F32)
    text = _with_needed(unit, F32_TEXT[op], DEPENDS.get(op, ()), lanes)
    if lanes == PERMUTED_LANES and op in PERMUTED_TEXT:
        other = _with_needed(unit, PERMUTED_TEXT[op], PERMUTED_DEPENDS.get(op, ()), lanes)
        text = f"#if defined(__AVX512F__) && !defined(__clang__)\n{other}\n#else\n{text}\n#endif"
    return unit.helper(name, _typed(unit, text, DType.F32, lanes).replace("NAME", name))


def _with_needed(unit: Unit, text: str, names: Iterable[str], lanes: int) -> str:
    """The text with the names of the functions that it calls."""
    for needed in names:
        text = text.replace(f"@{needed}(", _needed(unit, needed, lanes) + "(")
    return text


def _needed(unit: Unit, name: str, lanes: int) -> str:
    """Name of a function that the text of another one calls."""
    if name == "any":
        return any_function(unit, lanes)
    if name in ("max", "min"):
        return extreme_function(unit, name, DType.F32, lanes)
    return vector_function(unit, name, DType.F32, lanes)


def _bits_function(unit: Unit, op: str, dtype: DType, lanes: int) -> str:
    name = f"gaf_{op}_{dtype}x{lanes}"
    largest = "0x7fffffff" if dtype is DType.F32 else "0x7fffffffffffffffLL"
    text = _BITS[op].replace("MAX", largest)
    return unit.helper(name, _typed(unit, text, dtype, lanes).replace("NAME", name))


def _rsqrt_function(unit: Unit, dtype: DType, lanes: int) -> str:
    name, kind = f"gaf_rsqrt_{dtype}x{lanes}", vector_type(unit, dtype, lanes)
    root = vector_function(unit, "sqrt", dtype, lanes)
    return unit.helper(name, f"static inline {kind} {name}({kind} x) {{ return 1 / {root}(x); }}")


def _typed(unit: Unit, text: str, dtype: DType, lanes: int) -> str:
    """The text with `F`, `I`, `D`, `L` and `LANES` replaced."""
    same = DType.I32 if dtype is DType.F32 else DType.I64
    text = re.sub(r"\bF\b", vector_type(unit, dtype, lanes), text)
    text = re.sub(r"\bI\b", vector_type(unit, same, lanes), text)
    if re.search(r"\bD\b", text):
        text = re.sub(r"\bD\b", vector_type(unit, DType.F64, lanes), text)
        text = re.sub(r"\bL\b", vector_type(unit, DType.I64, lanes), text)
    return text.replace("LANES", str(lanes))

"""C expressions of ops on integers, which wrap; floor_div and remainder follow the sign of the
divisor.

A division by zero sets `status` and goes on with a result of 0, so that the process survives and
the kernel returns an error.
"""

from __future__ import annotations

from kernel_gen.codegen.cpu.statements.conversions import Conversions
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C
from kernel_gen.errors import InternalError
from kernel_gen.ir.dtype import DType

_UNSIGNED_C = {
    DType.I64: "gaf_u64",
    DType.I32: "unsigned",
    DType.I16: "unsigned short",
    DType.I8: "unsigned char",
    DType.U8: "unsigned char",
}


def integer_text(
    w: Conversions, op: str, dtype: DType, texts: list[str], vector: bool, live: str
) -> str:
    """`op` on operands of `dtype`; `live`: lanes that count in a tail, all where it is empty."""
    a = texts[0]
    b = texts[1] if len(texts) > 1 else ""
    zero = f"({w.c_type(dtype, vector)}){{}}"
    match op:
        case "neg":
            return f"-{a}"
        case "bitwise_not":
            return f"~{a}"
        case "abs":
            return f"({a} < {zero} ? -{a} : {a})"
        case "relu":
            return f"({a} < {zero} ? {zero} : {a})"
        case "sign":
            one = f"({zero} + 1)"
            return f"({a} > {zero} ? {one} : ({a} < {zero} ? -{one} : {zero}))"
        case "maximum":
            return f"({a} > {b} ? {a} : {b})"
        case "minimum":
            return f"({a} < {b} ? {a} : {b})"
        case "floor" | "ceil" | "round" | "trunc":
            return a
        case "floor_div" | "remainder" | "fmod":
            name = _division(w, op, dtype, vector)
            return f"{name}({a}, {b}, {live or '-1'}, &status)"
        case "shift_left" | "shift_right":
            return f"{_shift(w, op, dtype, vector)}({a}, {b})"
        case _:
            raise InternalError(f"no kernel text for {op} on {dtype}")


def _division(w: Conversions, op: str, dtype: DType, vector: bool) -> str:
    """Lane-wise division that neither traps on 0 nor on INT_MIN / -1."""
    base = _scalar_division(w, op, dtype)
    if not vector:
        return base
    kind = w.c_type(dtype, vector=True)
    name = f"{base}x{w.lanes.count}"
    return w.unit.helper(
        name,
        f"static inline {kind} {name}({kind} a, {kind} b, int live, int *status) {{\n"
        f"  {kind} r = {{}};\n"
        f"  for (int l = 0; l < {w.lanes.count}; l++)\n"
        f"    if (live < 0 || l < live) r[l] = {base}(a[l], b[l], -1, status);\n"
        "  return r;\n}",
    )


def _scalar_division(w: Conversions, op: str, dtype: DType) -> str:
    """By magnitudes: nothing overflows at the least integer, and GCC cannot take (-x) / b for
    -(x / b), which it does even where integers wrap (false at the least integer)."""
    c, name = SCALAR_C[dtype], f"gaf_{op}_{dtype}"
    u = _UNSIGNED_C[dtype]
    differ, rest = "(a < 0) != (b < 0)", f"({c})(a < 0 ? -r : r)"
    result = {
        "floor_div": f"{differ} ? -({u})(q + (r != 0)) : q",
        "remainder": f"r != 0 && {differ} ? {rest} + b : {rest}",
        "fmod": rest,
    }[op]
    return w.unit.helper(
        name,
        f"static inline {c} {name}({c} a, {c} b, int, int *status) {{\n"
        "  if (b == 0) { *status = 1; return 0; }\n"
        f"  const {u} m = a < 0 ? -({u})a : ({u})a, n = b < 0 ? -({u})b : ({u})b;\n"
        f"  const {u} q = m / n, r = m - q * n;\n"
        f"  return ({c})({result});\n}}",
    )


def _shift(w: Conversions, op: str, dtype: DType, vector: bool) -> str:
    """Shifts by the width or more give 0 (of signed numbers to the right: the sign), negative
    counts likewise."""
    kind, bits = w.c_type(dtype, vector), dtype.bytes * 8
    suffix = f"x{w.lanes.count}" if vector else ""
    name = f"gaf_{op}_{dtype}{suffix}"
    inside = f"b >= 0 & b < {bits}" if vector else f"b >= 0 && b < {bits}"
    zero = f"({kind}){{}}"
    if op == "shift_right" and dtype is not DType.U8:
        body = f"({kind})(a >> (({inside}) ? b : {zero} + {bits - 1}))"
    else:
        shift = "<<" if op == "shift_left" else ">>"
        body = f"(({inside}) ? ({kind})(a {shift} (({inside}) ? b : {zero})) : {zero})"
    return w.unit.helper(
        name, f"static inline {kind} {name}({kind} a, {kind} b) {{ return {body}; }}"
    )

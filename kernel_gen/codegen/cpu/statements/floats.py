"""C expressions of ops on floats. NaN propagates through maximum, minimum and relu."""

from __future__ import annotations

from kernel_gen.codegen.cpu.statements.conversions import Conversions
from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.codegen.cpu.vectors import math as vecmath
from kernel_gen.codegen.cpu.vectors.types import compute_c
from kernel_gen.ir.dtype import DType


def float_text(w: Conversions, op: str, dtype: DType, texts: list[str], vector: bool) -> str:
    """`op` on operands of `dtype`, f32 or f64."""
    one = "1.0f" if dtype is DType.F32 else "1.0"
    a = texts[0]
    b = texts[1] if len(texts) > 1 else ""
    zero = f"({w.c_type(dtype, vector)}){{}}"
    match op:
        case "neg":
            return f"-{a}"
        case "div":
            return f"{a} / {b}"
        case "reciprocal":
            return f"{one} / {a}"
        case "relu":
            return _extreme(w, "max", dtype, zero, a, vector)
        case "sign":
            positive = f"({a} > {zero} ? {one} - {zero} : {zero})"
            return f"({a} < {zero} ? {zero} - {one} : {positive})"
        case _:
            return f"{math_function(w, op, dtype, vector)}({', '.join(texts)})"


def divided_by_scalar(w: Conversions, dtype: DType, a: str, b: str) -> str:
    """One division per row, not per element, where the reciprocal is a normal number."""
    kind, c = w.c_type(dtype, vector=True), compute_c(dtype)
    limit = "100" if dtype.compute is DType.F32 else "1000"
    f = "f" if dtype.compute is DType.F32 else ""
    name = w.unit.helper(
        f"gaf_div_by_{kind}",
        f"static inline {kind} gaf_div_by_{kind}({kind} a, {c} b) {{\n"
        f"  const {c} r = 1 / b, size = __builtin_fabs{f}(b);\n"
        f"  return size > 0x1p-{limit}{f} && size < 0x1p{limit}{f} ? a * r : a / b;\n}}",
    )
    text = f"{name}({a}, {b})"
    return w.rounded(text, dtype, True) if dtype is not dtype.compute else text


def power(w: Conversions, base: Value, exponent: float, vector: bool) -> str | None:
    """Small constant powers as products and roots."""
    x = base.text
    if exponent == 2:
        return f"{x} * {x}"
    if exponent == 3:
        return f"{x} * {x} * {x}"
    if exponent == 1:
        return x
    if exponent == -1 and base.dtype.is_float:
        return float_text(w, "reciprocal", base.dtype.compute, [x], vector)
    return None


def extreme_or_nan(w: Conversions, op: str, dtype: DType, args: list[Value], vector: bool) -> str:
    """The larger or smaller one, NaN where one is; a number that is none needs no test."""
    a, b = args
    if b.const is not None and b.const == b.const:
        a, b = b, a
    larger = _extreme(w, op, dtype, a.text, b.text, vector)
    if a.const is not None and a.const == a.const:
        return larger
    return f"({a.text} != {a.text} ? {a.text} : {larger})"


def _extreme(w: Conversions, op: str, dtype: DType, a: str, b: str, vector: bool) -> str:
    """The larger or smaller one; `b` where one is NaN."""
    if vector:
        return f"{vecmath.extreme_function(w.unit, op, dtype, w.lanes.count)}({a}, {b})"
    return f"({a} {'>' if op == 'max' else '<'} {b} ? {a} : {b})"


def math_function(w: Conversions, op: str, dtype: DType, vector: bool) -> str:
    """Name of the math function of `op` on f32 or f64."""
    if vector:
        return vecmath.vector_function(w.unit, op, dtype, w.lanes.count)
    return vecmath.scalar_function(w.unit, op, dtype)

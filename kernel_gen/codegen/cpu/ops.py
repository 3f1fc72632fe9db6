"""C expressions of the scalar ops of a nest, for vectors and for scalars.

Semantics are torch's: integers wrap, floor_div and remainder follow the sign of the divisor, NaN
propagates through maximum, minimum and relu. An integer division by zero sets `status` and goes on
with a divisor of one, so that the process survives and the kernel returns an error.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu import vecmath
from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vecbytes import bytes_to_i32, i32_to_bytes
from kernel_gen.codegen.cpu.vectypes import (
    SCALAR_C,
    Lanes,
    compute_c,
    narrowed,
    scalar_load,
    scalar_store,
    value_type,
    vector_type,
    widened,
)
from kernel_gen.errors import InternalError
from kernel_gen.ir.dtype import DType

COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_MASK_COMPARE = {
    "eq": "~({a} ^ {b})",
    "ne": "({a} ^ {b})",
    "lt": "(~{a} & {b})",
    "le": "(~{a} | {b})",
    "gt": "({a} & ~{b})",
    "ge": "({a} | ~{b})",
}
LOGICAL = {
    "logical_and": "&",
    "logical_or": "|",
    "logical_xor": "^",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}
_ON_BOOL = {"add": "|", "mul": "&", "maximum": "|", "minimum": "&", **LOGICAL}
_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*"}
_ROUNDING = ("floor", "ceil", "round", "trunc")
_BYTES = (DType.I8, DType.U8)
_UNSIGNED_C = {
    DType.I64: "gaf_u64",
    DType.I32: "unsigned",
    DType.I16: "unsigned short",
    DType.I8: "unsigned char",
    DType.U8: "unsigned char",
}


@dataclass(frozen=True, slots=True)
class Value:
    """A computed statement: C text (a name or literal), its dtype, one or all lanes.

    `const` is the number if the value is a literal.
    """

    text: str
    dtype: DType
    vector: bool
    const: float | int | bool | None = None


@dataclass(frozen=True, slots=True)
class OpWriter:
    """Writes expressions into `unit` for vectors of `lanes`."""

    unit: Unit
    lanes: Lanes

    def c_type(self, dtype: DType, vector: bool) -> str:
        """C type in which a value is held."""
        return value_type(self.unit, dtype, self.lanes) if vector else compute_c(dtype)

    def literal(self, value: float | int | bool, dtype: DType) -> Value:
        """A scalar constant of `dtype`."""
        return Value(literal_text(value, dtype), dtype, vector=False, const=value)

    def broadcast(self, value: Value) -> Value:
        """The scalar in all lanes."""
        if value.vector:
            return value
        kind = self.c_type(value.dtype, vector=True)
        held = self.lanes.mask if value.dtype is DType.BOOL else value.dtype.compute
        name = self.unit.helper(
            f"gaf_bc_{kind}",
            # s - 0 keeps the sign of zero, which 0 + s would not
            f"static inline {kind} gaf_bc_{kind}({SCALAR_C[held]} s) "
            f"{{ return s - ({kind}){{}}; }}",
        )
        scalar = f"-(int)({value.text})" if value.dtype is DType.BOOL else value.text
        return Value(f"{name}({scalar})", value.dtype, vector=True, const=value.const)

    def compute(self, op: str, dtype: DType, args: list[Value], live: str = "") -> str:
        """Expression of `op`, a vector if an operand is. `live`: lanes that count in a tail."""
        vector = any(a.vector for a in args)
        if op == "div" and args[0].vector and not args[1].vector and args[1].const is None:
            return self._divided_by_scalar(dtype, args[0].text, args[1].text)
        if vector:
            args = [self.broadcast(a) for a in args]
        if op == "cast":
            return self.cast(args[0], dtype)
        if op in COMPARE:
            if vector and args[0].dtype is DType.BOOL:  # true is -1 there
                return _MASK_COMPARE[op].format(a=args[0].text, b=args[1].text)
            return self._mask(f"{args[0].text} {COMPARE[op]} {args[1].text}", args[0], vector)
        if op in ("isnan", "isinf", "isfinite"):
            return self._predicate(op, args[0])
        if op == "where":
            return self.select(*args)
        text = self._arithmetic(op, dtype, args, vector, live)
        if dtype in (DType.BF16, DType.F16):
            return self._rounded(text, dtype, vector)
        if not vector and dtype in (DType.I8, DType.I16, DType.U8):
            return f"({SCALAR_C[dtype]})({text})"  # C promotes to int; the value wraps
        return text

    def _arithmetic(self, op: str, dtype: DType, args: list[Value], vector: bool, live: str) -> str:
        texts = [a.text for a in args]
        if dtype is DType.BOOL:
            return self._on_bool(op, texts, vector)
        if op in _ARITHMETIC:
            return f"{texts[0]} {_ARITHMETIC[op]} {texts[1]}"
        if op in LOGICAL:
            return f"{texts[0]} {LOGICAL[op]} {texts[1]}"
        if op == "pow" and args[1].const is not None:
            known = self._power(args[0], args[1].const, vector)
            if known:
                return known
        if dtype.is_float and op in ("maximum", "minimum"):
            return self._extreme_or_nan(op[:3], dtype.compute, args, vector)
        if dtype.is_float:
            return self._float(op, dtype.compute, texts, vector)
        return self._integer(op, dtype, texts, vector, live)

    def _divided_by_scalar(self, dtype: DType, a: str, b: str) -> str:
        """One division per row, not per element, where the reciprocal is a normal number."""
        kind, c = self.c_type(dtype, vector=True), compute_c(dtype)
        limit = "100" if dtype.compute is DType.F32 else "1000"
        f = "f" if dtype.compute is DType.F32 else ""
        name = self.unit.helper(
            f"gaf_div_by_{kind}",
            f"static inline {kind} gaf_div_by_{kind}({kind} a, {c} b) {{\n"
            f"  const {c} r = 1 / b, size = __builtin_fabs{f}(b);\n"
            f"  return size > 0x1p-{limit}{f} && size < 0x1p{limit}{f} ? a * r : a / b;\n}}",
        )
        text = f"{name}({a}, {b})"
        return self._rounded(text, dtype, True) if dtype is not dtype.compute else text

    def _on_bool(self, op: str, texts: list[str], vector: bool) -> str:
        if op in _ON_BOOL:
            return f"{texts[0]} {_ON_BOOL[op]} {texts[1]}"
        if op in ("logical_not", "bitwise_not"):
            return f"~{texts[0]}" if vector else f"!{texts[0]}"
        if op in ("abs", "relu", "sign"):
            return texts[0]
        raise InternalError(f"no kernel text for {op} on bool")

    def _power(self, base: Value, exponent: float, vector: bool) -> str | None:
        """Small constant powers as products and roots."""
        x = base.text
        if exponent == 2:
            return f"{x} * {x}"
        if exponent == 3:
            return f"{x} * {x} * {x}"
        if exponent == 1:
            return x
        if exponent == -1 and base.dtype.is_float:
            return self._float("reciprocal", base.dtype.compute, [x], vector)
        return None

    def _float(self, op: str, dtype: DType, texts: list[str], vector: bool) -> str:
        one = "1.0f" if dtype is DType.F32 else "1.0"
        a = texts[0]
        b = texts[1] if len(texts) > 1 else ""
        zero = f"({self.c_type(dtype, vector)}){{}}"
        match op:
            case "neg":
                return f"-{a}"
            case "div":
                return f"{a} / {b}"
            case "reciprocal":
                return f"{one} / {a}"
            case "relu":
                return self._extreme("max", dtype, zero, a, vector)
            case "sign":
                positive = f"({a} > {zero} ? {one} - {zero} : {zero})"
                return f"({a} < {zero} ? {zero} - {one} : {positive})"
            case _:
                return f"{self.function(op, dtype, vector)}({', '.join(texts)})"

    def _extreme_or_nan(self, op: str, dtype: DType, args: list[Value], vector: bool) -> str:
        """The larger or smaller one, NaN where one is; a number that is none needs no test."""
        a, b = args
        if b.const is not None and b.const == b.const:
            a, b = b, a
        larger = self._extreme(op, dtype, a.text, b.text, vector)
        if a.const is not None and a.const == a.const:
            return larger
        return f"({a.text} != {a.text} ? {a.text} : {larger})"

    def _extreme(self, op: str, dtype: DType, a: str, b: str, vector: bool) -> str:
        """The larger or smaller one; `b` where one is NaN."""
        if vector:
            return f"{vecmath.extreme_function(self.unit, op, dtype, self.lanes.count)}({a}, {b})"
        return f"({a} {'>' if op == 'max' else '<'} {b} ? {a} : {b})"

    def function(self, op: str, dtype: DType, vector: bool) -> str:
        """Name of the math function of `op` on f32 or f64."""
        if vector:
            return vecmath.vector_function(self.unit, op, dtype, self.lanes.count)
        return vecmath.scalar_function(self.unit, op, dtype)

    def _integer(self, op: str, dtype: DType, texts: list[str], vector: bool, live: str) -> str:
        a = texts[0]
        b = texts[1] if len(texts) > 1 else ""
        zero = f"({self.c_type(dtype, vector)}){{}}"
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
                name = self._division(op, dtype, vector)
                return f"{name}({a}, {b}, {live or '-1'}, &status)"
            case "shift_left" | "shift_right":
                return f"{self._shift(op, dtype, vector)}({a}, {b})"
            case _:
                raise InternalError(f"no kernel text for {op} on {dtype}")

    def _division(self, op: str, dtype: DType, vector: bool) -> str:
        """Lane-wise division that neither traps on 0 nor on INT_MIN / -1."""
        base = self._scalar_division(op, dtype)
        if not vector:
            return base
        kind = self.c_type(dtype, vector=True)
        name = f"{base}x{self.lanes.count}"
        return self.unit.helper(
            name,
            f"static inline {kind} {name}({kind} a, {kind} b, int live, int *status) {{\n"
            f"  {kind} r = {{}};\n"
            f"  for (int l = 0; l < {self.lanes.count}; l++)\n"
            f"    if (live < 0 || l < live) r[l] = {base}(a[l], b[l], -1, status);\n"
            "  return r;\n}",
        )

    def _scalar_division(self, op: str, dtype: DType) -> str:
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
        return self.unit.helper(
            name,
            f"static inline {c} {name}({c} a, {c} b, int, int *status) {{\n"
            "  if (b == 0) { *status = 1; return 0; }\n"
            f"  const {u} m = a < 0 ? -({u})a : ({u})a, n = b < 0 ? -({u})b : ({u})b;\n"
            f"  const {u} q = m / n, r = m - q * n;\n"
            f"  return ({c})({result});\n}}",
        )

    def _shift(self, op: str, dtype: DType, vector: bool) -> str:
        """Shifts by the width or more give 0 (of signed numbers to the right: the sign), negative
        counts likewise."""
        kind, bits = self.c_type(dtype, vector), dtype.bytes * 8
        suffix = f"x{self.lanes.count}" if vector else ""
        name = f"gaf_{op}_{dtype}{suffix}"
        inside = f"b >= 0 & b < {bits}" if vector else f"b >= 0 && b < {bits}"
        zero = f"({kind}){{}}"
        if op == "shift_right" and dtype is not DType.U8:
            body = f"({kind})(a >> (({inside}) ? b : {zero} + {bits - 1}))"
        else:
            shift = "<<" if op == "shift_left" else ">>"
            body = f"(({inside}) ? ({kind})(a {shift} (({inside}) ? b : {zero})) : {zero})"
        return self.unit.helper(
            name, f"static inline {kind} {name}({kind} a, {kind} b) {{ return {body}; }}"
        )

    def _predicate(self, op: str, arg: Value) -> str:
        a = arg.text
        if not arg.dtype.is_float:
            return self._mask(f"{a} {'==' if op == 'isfinite' else '!='} {a}", arg, arg.vector)
        if op == "isnan":
            return self._mask(f"{a} != {a}", arg, arg.vector)
        size = self.function("abs", arg.dtype.compute, arg.vector)
        inf = "__builtin_inff()" if arg.dtype.compute is DType.F32 else "__builtin_inf()"
        relation = "==" if op == "isinf" else "<"
        return self._mask(f"{size}({a}) {relation} {inf}", arg, arg.vector)

    def _mask(self, comparison: str, operand: Value, vector: bool) -> str:
        """A comparison as a bool value: masks of the kernel's width, or 0/1."""
        if not vector:
            return f"({comparison})"
        if operand.dtype in _BYTES and self.lanes.mask_bytes == 4:
            signed = vector_type(self.unit, DType.I8, self.lanes.count)
            return bytes_to_i32(self.unit, DType.I8, self.lanes.count, f"({signed})({comparison})")
        kind = self.c_type(DType.BOOL, vector=True)
        return f"__builtin_convertvector({comparison}, {kind})"

    def mask_for(self, mask: str, dtype: DType) -> str:
        """A mask converted to the lane width of `dtype`, as a selection needs it."""
        size = dtype.compute.bytes
        if size == self.lanes.mask_bytes:
            return mask
        if size == 1 and self.lanes.mask_bytes == 4:
            return i32_to_bytes(self.unit, DType.I8, self.lanes.count, mask)
        same = {1: DType.I8, 2: DType.I16, 4: DType.I32, 8: DType.I64}[size]
        kind = vector_type(self.unit, same, self.lanes.count)
        return f"__builtin_convertvector({mask}, {kind})"

    def select(self, condition: Value, a: Value, b: Value) -> str:
        """`condition ? a : b` by lane."""
        if not condition.vector:
            return f"({condition.text} ? {a.text} : {b.text})"
        if a.dtype is DType.BOOL:
            m = condition.text
            return f"(({m} & {a.text}) | (~{m} & {b.text}))"
        return f"({self.mask_for(condition.text, a.dtype)} ? {a.text} : {b.text})"

    def cast(self, arg: Value, dtype: DType) -> str:
        """The value converted: floats to integers truncate, to bool `!= 0`, narrow floats round."""
        if arg.dtype is dtype:
            return arg.text
        if dtype is DType.BOOL:
            zero = "0" if arg.vector or not arg.dtype.is_float else "0.0f"
            return self._mask(f"{arg.text} != {zero}", arg, arg.vector)
        text = self._vector_cast(arg, dtype) if arg.vector else f"({compute_c(dtype)})({arg.text})"
        if dtype in (DType.BF16, DType.F16):
            return self._rounded(text, dtype, arg.vector)
        return text

    def _vector_cast(self, arg: Value, dtype: DType) -> str:
        kind, count = self.c_type(dtype, vector=True), self.lanes.count
        if arg.dtype.compute is dtype.compute:
            return arg.text
        text, held = arg.text, arg.dtype
        if held is DType.BOOL:
            text, held = f"(-{text})", self.lanes.mask
        to_bytes, wide = dtype in _BYTES, vector_type(self.unit, DType.I32, count)
        if held in _BYTES and not to_bytes and dtype is not DType.I16:
            text, held = bytes_to_i32(self.unit, held, count, text), DType.I32
        if to_bytes and held not in _BYTES:
            text = text if held is DType.I32 else f"__builtin_convertvector({text}, {wide})"
            return i32_to_bytes(self.unit, dtype, count, text)
        if held.is_float and dtype is DType.I16:
            text = f"__builtin_convertvector({text}, {wide})"
        return text if held is dtype else f"__builtin_convertvector({text}, {kind})"

    def _rounded(self, text: str, dtype: DType, vector: bool) -> str:
        """An fp32 value rounded to a narrow float and back."""
        if not vector:
            return scalar_load(self.unit, dtype, scalar_store(self.unit, dtype, text))
        return widened(self.unit, dtype, self.lanes, narrowed(self.unit, dtype, self.lanes, text))


def literal_text(value: float | int | bool, dtype: DType) -> str:
    """A C literal of the compute type of `dtype`; infinities and NaN by builtins."""
    if dtype is DType.BOOL:
        return "1" if value else "0"
    if not dtype.is_float:
        return _integer_literal(int(value), dtype)
    suffix = "f" if dtype.compute is DType.F32 else ""
    number = float(value)
    if number != number:
        return f'__builtin_nan{suffix}("")'
    if number in (float("inf"), float("-inf")):
        return f"({'-' if number < 0 else ''}__builtin_inf{suffix}())"
    text = repr(_as_f32(number)) if suffix else repr(number)
    return f"{text}{suffix}" if number >= 0 and not text.startswith("-") else f"({text}{suffix})"


def _as_f32(number: float) -> float:
    import numpy as np

    with np.errstate(over="ignore"):
        return float(np.float32(number))


def _integer_literal(value: int, dtype: DType) -> str:
    bits = dtype.bytes * 8
    value &= (1 << bits) - 1
    if dtype is not DType.U8 and value >> (bits - 1):
        value -= 1 << bits
    if dtype is DType.I64:
        return "(-9223372036854775807LL - 1)" if value == -(1 << 63) else f"({value}LL)"
    return f"({SCALAR_C[dtype]})({value})"

"""C expressions of the scalar ops of a nest, for vectors and for scalars; semantics are torch's."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.statements.conversions import Conversions
from kernel_gen.codegen.cpu.statements.floats import (
    divided_by_scalar,
    extreme_or_nan,
    float_text,
    math_function,
    power,
)
from kernel_gen.codegen.cpu.statements.integers import integer_text
from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C
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


@dataclass(frozen=True, slots=True)
class OpWriter(Conversions):
    """Writes ops into `unit` for vectors of `lanes`."""

    def compute(self, op: str, dtype: DType, args: list[Value], live: str = "") -> str:
        """Expression of `op`, a vector if an operand is. `live`: lanes that count in a tail."""
        vector = any(a.vector for a in args)
        if op == "div" and args[0].vector and not args[1].vector and args[1].const is None:
            return divided_by_scalar(self, dtype, args[0].text, args[1].text)
        if vector:
            args = [self.broadcast(a) for a in args]
        if op == "cast":
            return self.cast(args[0], dtype)
        if op in COMPARE:
            if vector and args[0].dtype is DType.BOOL:  # true is -1 there
                return _MASK_COMPARE[op].format(a=args[0].text, b=args[1].text)
            return self.mask(f"{args[0].text} {COMPARE[op]} {args[1].text}", args[0], vector)
        if op in ("isnan", "isinf", "isfinite"):
            return self._predicate(op, args[0])
        if op == "where":
            return self.select(*args)
        text = self._arithmetic(op, dtype, args, vector, live)
        if dtype in (DType.BF16, DType.F16):
            return self.rounded(text, dtype, vector)
        if not vector and dtype in (DType.I8, DType.I16, DType.U8):
            return f"({SCALAR_C[dtype]})({text})"  # C promotes to int; the value wraps
        return text

    def _arithmetic(self, op: str, dtype: DType, args: list[Value], vector: bool, live: str) -> str:
        texts = [a.text for a in args]
        if dtype is DType.BOOL:
            return _on_bool(op, texts, vector)
        if op in _ARITHMETIC:
            return f"{texts[0]} {_ARITHMETIC[op]} {texts[1]}"
        if op in LOGICAL:
            return f"{texts[0]} {LOGICAL[op]} {texts[1]}"
        if op == "pow" and args[1].const is not None:
            known = power(self, args[0], args[1].const, vector)
            if known:
                return known
        if dtype.is_float and op in ("maximum", "minimum"):
            return extreme_or_nan(self, op[:3], dtype.compute, args, vector)
        if dtype.is_float:
            return float_text(self, op, dtype.compute, texts, vector)
        return integer_text(self, op, dtype, texts, vector, live)

    def _predicate(self, op: str, arg: Value) -> str:
        a = arg.text
        if not arg.dtype.is_float:
            return self.mask(f"{a} {'==' if op == 'isfinite' else '!='} {a}", arg, arg.vector)
        if op == "isnan":
            return self.mask(f"{a} != {a}", arg, arg.vector)
        size = math_function(self, "abs", arg.dtype.compute, arg.vector)
        inf = "__builtin_inff()" if arg.dtype.compute is DType.F32 else "__builtin_inf()"
        relation = "==" if op == "isinf" else "<"
        return self.mask(f"{size}({a}) {relation} {inf}", arg, arg.vector)


def _on_bool(op: str, texts: list[str], vector: bool) -> str:
    if op in _ON_BOOL:
        return f"{texts[0]} {_ON_BOOL[op]} {texts[1]}"
    if op in ("logical_not", "bitwise_not"):
        return f"~{texts[0]}" if vector else f"!{texts[0]}"
    if op in ("abs", "relu", "sign"):
        return texts[0]
    raise InternalError(f"no kernel text for {op} on bool")

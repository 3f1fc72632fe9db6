"""Elementwise operators of one operand: functions, signs, rounding, negation, predicates."""

from __future__ import annotations

from functools import partial

from kernel_gen.frontend.lower.core import (
    Args,
    Lowering,
    Result,
    Val,
    lowers,
)
from kernel_gen.ir.dtype import DType

_FLOAT_UNARY = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan "
    "sinh cosh tanh erf erfc sigmoid"
)
_KEEPING_UNARY = "neg relu"
_ROUNDING = "floor ceil trunc"


def _float_unary(op: str, c: Lowering, a: Args) -> Result:
    return c.op(op, c.cast(a["self"], c.out_type.dtype))


for _name in _FLOAT_UNARY.split():
    lowers(_name)(partial(_float_unary, _name))
lowers("special_expit")(partial(_float_unary, "sigmoid"))
lowers("special_erf")(partial(_float_unary, "erf"))
lowers("special_exp2")(partial(_float_unary, "exp2"))
lowers("special_expm1")(partial(_float_unary, "expm1"))
lowers("special_log1p")(partial(_float_unary, "log1p"))
for _alias, _op in {"arcsin": "asin", "arccos": "acos", "arctan": "atan"}.items():
    lowers(_alias)(partial(_float_unary, _op))


def _keeping_unary(op: str, c: Lowering, a: Args) -> Result:
    return c.op(op, a["self"])


for _name in _KEEPING_UNARY.split():
    lowers(_name)(partial(_keeping_unary, _name))
lowers("negative")(partial(_keeping_unary, "neg"))


def _abs_or_sign(op: str, c: Lowering, a: Args) -> Result:
    # Bools are their own absolute value and sign.
    return a["self"] if a["self"].dtype is DType.BOOL else c.op(op, a["self"])


lowers("abs absolute")(partial(_abs_or_sign, "abs"))
lowers("sign sgn")(partial(_abs_or_sign, "sign"))


def _rounding(op: str, c: Lowering, a: Args) -> Result:
    return c.op(op, a["self"]) if a["self"].dtype.is_float else a["self"]


for _name in _ROUNDING.split():
    lowers(_name)(partial(_rounding, _name))
lowers("fix")(partial(_rounding, "trunc"))
lowers("round.default")(partial(_rounding, "round"))


@lowers("bitwise_not")
def bitwise_not(c: Lowering, a: Args) -> Result:
    return c.op("logical_not" if a["self"].dtype is DType.BOOL else "bitwise_not", a["self"])


@lowers("logical_not")
def logical_not(c: Lowering, a: Args) -> Result:
    return c.op("logical_not", c.cast(a["self"], DType.BOOL))


def _predicate(op: str, c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    # Integers and bools are finite and never NaN, in fp32 too.
    return c.op(op, value if value.dtype.is_float else c.cast(value, DType.F32))


for _name in ("isnan", "isinf", "isfinite"):
    lowers(_name)(partial(_predicate, _name))

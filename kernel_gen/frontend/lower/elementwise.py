"""Elementwise operators of several operands: arithmetic, comparisons, powers, selection."""

from __future__ import annotations

from functools import partial

from kernel_gen.frontend.dtypes import rounded
from kernel_gen.frontend.lower.core import (
    Args,
    Lowering,
    NotLowered,
    Number,
    Result,
    Val,
    joint_dtype,
    lowers,
)
from kernel_gen.ir.dtype import DType

_COMPARE = "eq ne lt le gt ge"
_BOOL_TWIN = {"add": "logical_or", "mul": "logical_and", "maximum": "logical_or"} | {
    "minimum": "logical_and",
    "bitwise_and": "logical_and",
    "bitwise_or": "logical_or",
    "bitwise_xor": "logical_xor",
}


def binary(c: Lowering, op: str, left: Val | Number, right: Val | Number, dtype: DType) -> Val:
    """A binary primitive with both operands cast to `dtype`; bool arithmetic becomes logic."""
    name = _BOOL_TWIN.get(op, op) if dtype is DType.BOOL else op
    if dtype is DType.BOOL and name == op and not op.startswith("logical"):
        raise NotLowered(f"{c.name}: {op} has no meaning for bool")
    if op in ("mul", "div") and dtype.compute is not dtype:
        return _narrow_product(c, op, left, right, dtype)
    return c.op(name, c.operand(left, dtype), c.operand(right, dtype))


def _narrow_product(
    c: Lowering, op: str, left: Val | Number, right: Val | Number, dtype: DType
) -> Val:
    """Products and quotients of narrow floats by a number or a wider 0-d tensor.

    torch rounds such a right operand to fp32 only; summands and left operands are rounded to the
    narrow type.
    """
    if op == "mul" and not isinstance(left, Val):
        left, right = right, left
    if not _is_wide_scalar(right, dtype):
        return c.op(op, c.operand(left, dtype), c.operand(right, dtype))
    known = c.known_number(right)
    if known is not None:
        return c.op(op, c.operand(left, dtype), c.exact_number(known, dtype))
    assert isinstance(right, Val)
    wide = dtype.compute
    widened = c.cast(c.operand(left, dtype), wide)
    return c.cast(c.op(op, widened, c.cast(right, wide)), dtype)


def _is_wide_scalar(value: Val | Number, dtype: DType) -> bool:
    return not isinstance(value, Val) or (value.rank == 0 and value.dtype is not dtype)


def scaled(c: Lowering, value: Val | Number, alpha: Number, dtype: DType) -> Val | Number:
    """`alpha · value` in `dtype`; numbers stay numbers."""
    if alpha == 1:
        return value
    if not isinstance(value, Val):
        return value * alpha
    return binary(c, "mul", value, alpha, dtype)


def _sum_or_difference(op: str, c: Lowering, a: Args) -> Result:
    left, right, alpha = a["self"], a["other"], a.get("alpha", 1)
    return add_scaled(c, op, left, right, alpha, joint_dtype(left, right))


def add_scaled(
    c: Lowering, op: str, left: Val | Number, right: Val | Number, alpha: Number, dtype: DType
) -> Val:
    """`left ± alpha · right`; the product of narrow floats is kept in fp32, as torch does."""
    if dtype.is_integer and isinstance(left, Val) and c.known_number(right) == 0:
        return _unchanged(c, left, dtype)
    if alpha == 1 or dtype.compute is dtype:
        return binary(c, op, left, scaled(c, right, alpha, dtype), dtype)
    wide, alpha = dtype.compute, rounded(alpha, dtype)
    left, right = _round_then_widen(c, left, dtype), _round_then_widen(c, right, dtype)
    return c.cast(binary(c, op, left, scaled(c, right, alpha, wide), wide), dtype)


def _unchanged(c: Lowering, value: Val, dtype: DType) -> Val:
    """`value + 0` for integers; a float zero would change -0.0."""
    return c.cast(value, dtype)


def _round_then_widen(c: Lowering, value: Val | Number, dtype: DType) -> Val:
    return c.cast(c.operand(value, dtype), dtype.compute)


for _name in ("add", "sub"):
    lowers(_name)(partial(_sum_or_difference, _name))
lowers("subtract")(partial(_sum_or_difference, "sub"))


@lowers("lerp.Scalar")
def lerp(c: Lowering, a: Args) -> Result:
    """Steps from the nearer end, as torch does: `w` of a number is known to be near or far."""
    start, end, weight = a["self"], a["end"], a["weight"]
    wide = start.dtype.compute
    start, end = c.cast(start, wide), c.cast(end, wide)
    step = c.op("sub", end, start)
    if abs(weight) < 0.5:
        moved = c.op("add", start, binary(c, "mul", step, weight, wide))
    else:
        moved = c.op("sub", end, binary(c, "mul", step, 1 - weight, wide))
    return c.cast(moved, a["self"].dtype)


@lowers("rsub")
def rsub(c: Lowering, a: Args) -> Result:
    left, right = a["other"], a["self"]
    return add_scaled(c, "sub", left, right, a.get("alpha", 1), joint_dtype(left, right))


def _arithmetic(op: str, c: Lowering, a: Args) -> Result:
    left, right = a["self"], a["other"]
    return binary(c, op, left, right, joint_dtype(left, right))


for _names, _op in {
    "mul multiply": "mul",
    "maximum": "maximum",
    "max.other": "maximum",
    "minimum": "minimum",
    "min.other": "minimum",
    "fmod": "fmod",
    "remainder": "remainder",
    "floor_divide": "floor_div",
    "bitwise_and __and__": "bitwise_and",
    "bitwise_or __or__": "bitwise_or",
    "bitwise_xor __xor__": "bitwise_xor",
    "bitwise_left_shift __lshift__": "shift_left",
    "bitwise_right_shift __rshift__": "shift_right",
}.items():
    lowers(_names)(partial(_arithmetic, _op))


def _float_arithmetic(op: str, c: Lowering, a: Args) -> Result:
    return binary(c, op, a["self"], a["other"], c.out_type.dtype)


lowers("atan2 arctan2")(partial(_float_arithmetic, "atan2"))
lowers("copysign")(partial(_float_arithmetic, "copysign"))


@lowers("div divide true_divide")
def div(c: Lowering, a: Args) -> Result:
    left, right, mode = a["self"], a["other"], a.get("rounding_mode")
    if mode is None:
        return binary(c, "div", left, right, c.out_type.dtype)
    dtype = joint_dtype(left, right)
    if mode == "floor":
        return binary(c, "floor_div", left, right, dtype)
    if dtype.is_float:
        return _truncated_quotient(c, left, right, dtype)
    # Truncating integer division: what is left after taking off C's remainder divides exactly.
    exact = binary(c, "sub", left, binary(c, "fmod", left, right, dtype), dtype)
    return binary(c, "floor_div", exact, right, dtype)


def _truncated_quotient(c: Lowering, left: Val | Number, right: Val | Number, dtype: DType) -> Val:
    """The quotient of narrow floats is truncated in fp32, before it is rounded."""
    wide = dtype.compute
    if wide is dtype:
        return c.op("trunc", binary(c, "div", left, right, dtype))
    right = c.cast(right, wide) if isinstance(right, Val) else right
    quotient = binary(c, "div", _round_then_widen(c, left, dtype), right, wide)
    return c.cast(c.op("trunc", quotient), dtype)


@lowers("fmax fmin")
def fmax(c: Lowering, a: Args) -> Result:
    """Maximum or minimum that prefers numbers to NaN."""
    dtype = joint_dtype(a["self"], a["other"])
    left, right = c.operand(a["self"], dtype), c.operand(a["other"], dtype)
    op = "maximum" if ".fmax." in c.name else "minimum"
    chosen = binary(c, op, left, right, dtype)
    if not dtype.is_float:
        return chosen
    kept = c.op("where", c.op("isnan", right), left, chosen)
    return c.op("where", c.op("isnan", left), right, kept)


def _logical(op: str, c: Lowering, a: Args) -> Result:
    return c.op(op, c.cast(a["self"], DType.BOOL), c.cast(a["other"], DType.BOOL))


for _name in ("logical_and", "logical_or", "logical_xor"):
    lowers(_name)(partial(_logical, _name))


def _compare(op: str, c: Lowering, a: Args) -> Result:
    dtype = joint_dtype(a["self"], a["other"])
    return c.op(op, c.operand(a["self"], dtype), c.operand(a["other"], dtype))


for _name in _COMPARE.split():
    lowers(_name)(partial(_compare, _name))
for _alias, _op in {
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
}.items():
    lowers(_alias)(partial(_compare, _op))


@lowers("pow.Tensor_Scalar")
def pow_number(c: Lowering, a: Args) -> Result:
    dtype = c.out_type.dtype
    base, exponent = c.cast(a["self"], dtype), a["exponent"]
    known = _known_power(c, base, exponent)
    if known is not None:
        return known
    if not dtype.is_float:
        raise NotLowered(f"{c.name}: integer power {exponent}", decompose=False)
    return c.op("pow", base, c.number(exponent, dtype))


def _known_power(c: Lowering, base: Val, exponent: Number) -> Val | None:
    """The powers that torch computes without `pow`."""
    if exponent == 1:
        return base
    if exponent == 2:
        return c.op("square", base)
    if exponent == 3:
        return c.op("mul", c.op("square", base), base)
    if not base.dtype.is_float:
        return None
    if exponent == 0.5:
        return c.op("sqrt", base)
    if exponent == -0.5:
        return c.op("rsqrt", base)
    if exponent == -1:
        return c.op("reciprocal", base)
    return None


@lowers("pow.Tensor_Tensor pow.Scalar float_power")
def power(c: Lowering, a: Args) -> Result:
    dtype = c.out_type.dtype
    if not dtype.is_float:
        raise NotLowered(f"{c.name}: integer power", decompose=False)
    return binary(c, "pow", a["self"], a["exponent"], dtype)


@lowers("square")
def square(c: Lowering, a: Args) -> Result:
    if a["self"].dtype is DType.BOOL:
        raise NotLowered(f"{c.name}: square of bool", decompose=False)
    return c.op("square", a["self"])


@lowers("where.self where.ScalarSelf where.ScalarOther where.Scalar")
def where(c: Lowering, a: Args) -> Result:
    dtype = joint_dtype(a["self"], a["other"])
    condition = c.cast(a["condition"], DType.BOOL)
    return c.op("where", condition, c.operand(a["self"], dtype), c.operand(a["other"], dtype))


@lowers("masked_fill")
def masked_fill(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    return c.op("where", c.cast(a["mask"], DType.BOOL), c.operand(a["value"], value.dtype), value)

"""Typing: the result type of an op from its operand types and attributes.

`infer` is the one place that says which operands an op takes. Shapes may hold symbols wherever
they pass through unchanged; an op that would need arithmetic on a symbol is refused, and front ends
hand it to the framework.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.broadcast import broadcast_shapes
from kernel_gen.ir.call import Call, make_call
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Attrs
from kernel_gen.ir.infer_composite import COMPOSITE_RULES
from kernel_gen.ir.infer_convolution import infer_convolution
from kernel_gen.ir.infer_reduce import infer_matmul, infer_reduction
from kernel_gen.ir.infer_view import VIEW_RULES
from kernel_gen.ir.ops import OPS, OpKind
from kernel_gen.ir.types import Shape, TensorType

Rule = Callable[[Call], TensorType]

_ANY_NUMBER = frozenset(["abs", "neg", "relu", "sign", "floor", "ceil", "round", "trunc"])
_NUMBERS = frozenset(["add", "sub", "mul", "floor_div", "remainder", "fmod"])
_ORDERED = frozenset(("maximum", "minimum"))
_BITS = frozenset(("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"))
_SHIFTS = frozenset(("shift_left", "shift_right"))
_LOGICAL = frozenset(("logical_and", "logical_or", "logical_xor", "logical_not"))


def infer(op: str, operand_types: Sequence[TensorType], attrs: Attrs = ()) -> TensorType:
    """The contiguous result type; raises InvalidGraph naming op, rule and operand types.

    Framework nodes have no rule: their types are given by whoever makes them.
    """
    call = make_call(op, tuple(operand_types), attrs)
    kind = OPS[op].kind
    rule = _BY_KIND.get(kind) or _BY_OP.get(op)
    if rule is None:
        raise InvalidGraph(f"{op}: has no typing rule, its result types must be given")
    return rule(call)


def _check_dtype(call: Call, dtype: DType) -> None:
    """Which element types an elementwise op computes on."""
    op = call.op
    if op in _LOGICAL:
        allowed, rule = dtype is DType.BOOL, "takes bool operands"
    elif op in _BITS:
        allowed, rule = not dtype.is_float, "takes integer or bool operands"
    elif op in _SHIFTS:
        allowed, rule = dtype.is_integer, "takes integer operands"
    elif op in _ANY_NUMBER or op in _NUMBERS:
        allowed, rule = dtype is not DType.BOOL, "takes integer or float operands"
    else:
        allowed, rule = dtype.is_float or op in _ORDERED, "takes float operands"
    if not allowed:
        call.fail(rule)


def _unary(call: Call) -> TensorType:
    _check_dtype(call, call.x.dtype)
    return TensorType(call.x.dtype, call.x.shape)


def _predicate(call: Call) -> TensorType:
    return TensorType(DType.BOOL, call.x.shape)


def _binary(call: Call) -> TensorType:
    _check_dtype(call, call.x.dtype)
    return TensorType(call.x.dtype, _common_shape(call, call.operands))


def _compare(call: Call) -> TensorType:
    return TensorType(DType.BOOL, _common_shape(call, call.operands))


def _where(call: Call) -> TensorType:
    if call.x.dtype is not DType.BOOL:
        call.fail("the condition must be bool")
    shape = _common_shape(call, call.operands[1:], call.operands)
    return TensorType(call.operands[1].dtype, shape)


def _cast(call: Call) -> TensorType:
    return TensorType(call.dtype(), call.x.shape)


def _common_shape(
    call: Call, same_dtype: Sequence[TensorType], all_types: Sequence[TensorType] = ()
) -> Shape:
    if len({type.dtype for type in same_dtype}) != 1:
        call.fail("operands must have one dtype (insert casts)")
    shape = broadcast_shapes([type.shape for type in all_types or same_dtype])
    if shape is None:
        call.fail("shapes do not broadcast")
    return shape


_BY_KIND: dict[OpKind, Rule] = {
    OpKind.UNARY: _unary,
    OpKind.PREDICATE: _predicate,
    OpKind.BINARY: _binary,
    OpKind.COMPARE: _compare,
    OpKind.SELECT: _where,
    OpKind.CAST: _cast,
    OpKind.REDUCTION: infer_reduction,
}
_BY_OP: dict[str, Rule] = {
    **VIEW_RULES,
    **COMPOSITE_RULES,
    "matmul": infer_matmul,
    "convolution": infer_convolution,
}

"""Typing of reductions and matrix products."""

from __future__ import annotations

from kernel_gen.ir.broadcast import broadcast_shapes
from kernel_gen.ir.call import Call
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.types import Shape, TensorType

_ARG = ("argmax", "argmin")


def infer_reduction(call: Call) -> TensorType:
    """sum, prod, amax, amin, any, all, argmax, argmin over `dims`."""
    dims = call.dims()
    shape = reduced_shape(call.x.shape, dims, keepdim=call.flag("keepdim"))
    _check_operand(call)
    if call.op in _ARG:
        if len(dims) not in (1, call.x.rank):
            call.fail("takes one dimension or all of them")
        if any(call.x.shape[dim] == 0 for dim in dims):
            call.fail("has no result over zero elements")
        return TensorType(DType.I64, shape)
    return TensorType(call.x.dtype, shape)


def _check_operand(call: Call) -> None:
    is_bool = call.x.dtype is DType.BOOL
    if call.op in ("any", "all") and not is_bool:
        call.fail("takes a bool operand")
    if call.op in ("sum", "prod", *_ARG) and is_bool:
        call.fail("takes an integer or float operand")


def reduced_shape(shape: Shape, dims: tuple[int, ...], *, keepdim: bool) -> Shape:
    """(2, 3, 4) over (1,) -> (2, 4), or (2, 1, 4) with keepdim."""
    if keepdim:
        return tuple(1 if i in dims else extent for i, extent in enumerate(shape))
    return tuple(extent for i, extent in enumerate(shape) if i not in dims)


def infer_matmul(call: Call) -> TensorType:
    """(…, M, K) x (…, K, N) -> (…, M, N) with broadcast batch dimensions."""
    lhs, rhs = call.operands
    if lhs.rank < 2 or rhs.rank < 2:
        call.fail("both operands need rank 2 or more")
    if lhs.dtype is not rhs.dtype or lhs.dtype is DType.BOOL:
        call.fail("operands must have one integer or float dtype")
    if lhs.shape[-1] != rhs.shape[-2]:
        call.fail("the inner extents differ")
    batch = broadcast_shapes([lhs.shape[:-2], rhs.shape[:-2]])
    if batch is None:
        call.fail("batch dimensions do not broadcast")
    return TensorType(lhs.dtype, (*batch, lhs.shape[-2], rhs.shape[-1]))

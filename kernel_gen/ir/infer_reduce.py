"""Typing of reductions, matrix products and convolutions."""

from __future__ import annotations

from kernel_gen.ir.broadcast import broadcast_shapes
from kernel_gen.ir.call import Call
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.types import Dim, Shape, TensorType

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


def infer_convolution(call: Call) -> TensorType:
    """x (N, C, spatial…), weight (O, C / groups, kernel…)[, bias (O)] -> (N, O, out…)."""
    if len(call.operands) not in (2, 3):
        call.fail("takes x, weight and an optional bias")
    x, weight = call.operands[:2]
    if x.rank < 3 or weight.rank != x.rank:
        call.fail("x and weight need one rank of 3 or more")
    if len({type.dtype for type in call.operands}) != 1 or not x.dtype.is_float:
        call.fail("operands must have one float dtype")
    groups = call.integer("groups", 1)
    channels, out, per_group = x.shape[1], weight.shape[0], weight.shape[1]
    if not isinstance(channels, int) or not isinstance(out, int) or not isinstance(per_group, int):
        call.fail("channels must not be symbolic")
    if channels != per_group * groups or out % groups:
        call.fail(f"{channels} channels do not split into {groups} groups of the weight")
    if len(call.operands) == 3 and call.operands[2].shape != (out,):
        call.fail(f"the bias must have shape [{out}]")
    return TensorType(x.dtype, (x.shape[0], out, *_spatial(call)))


def _spatial(call: Call) -> tuple[Dim, ...]:
    x, weight = call.operands[:2]
    settings = (call.integers("stride", 1), call.integers("padding"), call.integers("dilation", 1))
    if any(len(values) != x.rank - 2 for values in settings):
        call.fail(f"stride, padding and dilation need {x.rank - 2} values each")
    found: list[Dim] = []
    for extent, kernel, stride, pad, dilation in zip(
        x.shape[2:], weight.shape[2:], *settings, strict=True
    ):
        if not isinstance(extent, int) or not isinstance(kernel, int) or kernel < 1:
            call.fail("spatial extents must not be symbolic, and the kernel not empty")
        span = extent + 2 * pad - dilation * (kernel - 1) - 1
        if span < 0:
            call.fail("the kernel is larger than the padded input")
        found.append(span // stride + 1)
    return tuple(found)

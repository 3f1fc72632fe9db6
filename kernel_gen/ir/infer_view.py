"""Typing of views, joins, indexed reads and sources."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from kernel_gen.ir.broadcast import broadcast_dims
from kernel_gen.ir.call import Call, describe_shape
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.types import Dim, Shape, Sym, TensorType


def _reshape(call: Call) -> TensorType:
    shape = call.shape()
    old, new = _factors(call.x.shape), _factors(shape)
    if old[0] != new[0] or (old[0] != 0 and old[1] != new[1]):
        call.fail(f"cannot hold the same elements in {describe_shape(shape)}")
    return TensorType(call.x.dtype, shape)


def _factors(shape: Shape) -> tuple[int, Counter[str]]:
    """Number of elements: the product of the integers, and the symbols with their powers."""
    known = math.prod(dim for dim in shape if isinstance(dim, int))
    return known, Counter(dim.name for dim in shape if isinstance(dim, Sym))


def _permute(call: Call) -> TensorType:
    dims = call.integers("dims")
    if sorted(dims) != list(range(call.x.rank)):
        call.fail(f"dims must be a permutation of 0 … {call.x.rank - 1}")
    return TensorType(call.x.dtype, tuple(call.x.shape[dim] for dim in dims))


def _expand(call: Call) -> TensorType:
    shape = call.shape()
    lead = len(shape) - call.x.rank
    if lead < 0:
        call.fail("cannot expand to a lower rank")
    for have, want in zip(call.x.shape, shape[lead:], strict=True):
        if have not in (want, 1):
            call.fail("only extents of 1 can be expanded")
    return TensorType(call.x.dtype, shape)


def _slice(call: Call) -> TensorType:
    dim, start, step = call.dim("dim"), call.integer("start"), call.integer("step", 1)
    extent = call.x.shape[dim]
    if isinstance(extent, Sym):
        if (start, call.attrs["stop"], step) != (0, extent.name, 1):
            call.fail(f"dimension {dim} is symbolic: only the whole of it can be taken")
        return TensorType(call.x.dtype, call.x.shape)
    stop = call.integer("stop")
    if not start <= stop <= extent:
        call.fail(f"0 <= start <= stop <= {extent} does not hold")
    taken = (stop - start + step - 1) // step
    return TensorType(call.x.dtype, _replaced(call.x.shape, dim, taken))


def _replaced(shape: Shape, dim: int, extent: Dim) -> Shape:
    return (*shape[:dim], extent, *shape[dim + 1 :])


def _flip(call: Call) -> TensorType:
    call.dims()
    return TensorType(call.x.dtype, call.x.shape)


def _pad(call: Call) -> TensorType:
    low, high = call.integers("low"), call.integers("high")
    if len(low) != call.x.rank or len(high) != call.x.rank:
        call.fail(f"low and high must have one count for each of {call.x.rank} dimensions")
    _check_value(call, call.x.dtype)
    shape: list[Dim] = []
    for extent, before, after in zip(call.x.shape, low, high, strict=True):
        if isinstance(extent, Sym) and before + after:
            call.fail(f"dimension {extent.name} is symbolic and cannot be padded")
        shape.append(extent if isinstance(extent, Sym) else extent + before + after)
    return TensorType(call.x.dtype, tuple(shape))


def _check_value(call: Call, dtype: DType) -> None:
    """`value` fits the dtype: a bool for bool, an integer in range for integers, else a number."""
    value = call.attrs["value"]
    if dtype is DType.BOOL:
        if not isinstance(value, bool):
            call.fail("value must be true or false for bool")
        return
    if dtype.is_float:
        call.number("value")
        return
    bits = 8 * dtype.bytes
    low, high = (0, 2**bits) if dtype is DType.U8 else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    if type(value) is not int or not low <= value < high:
        call.fail(f"value must be an integer of {dtype}")


def _concat(call: Call) -> TensorType:
    if not call.operands:
        call.fail("takes at least one operand")
    dim = call.dim("dim")
    if len({type.dtype for type in call.operands}) != 1:
        call.fail("operands must have one dtype (insert casts)")
    if len(call.operands) == 1:
        return TensorType(call.x.dtype, call.x.shape)
    total = 0
    for type in call.operands:
        extent = type.shape[dim] if type.rank == call.x.rank else None
        if not isinstance(extent, int):
            call.fail(f"operands must have one rank and integer extents in dimension {dim}")
        if _replaced(type.shape, dim, 0) != _replaced(call.x.shape, dim, 0):
            call.fail(f"operands must agree in all dimensions but {dim}")
        total += extent
    return TensorType(call.x.dtype, _replaced(call.x.shape, dim, total))


def _check_index(call: Call) -> TensorType:
    index = call.operands[1]
    if index.dtype not in (DType.I64, DType.I32):
        call.fail("the index must be i64 or i32")
    return index


def _gather(call: Call) -> TensorType:
    dim, index = call.dim("dim"), _check_index(call)
    if index.rank != call.x.rank:
        call.fail("the index must have the operand's rank")
    for position, (have, want) in enumerate(zip(call.x.shape, index.shape, strict=True)):
        fits = have == want or (isinstance(have, int) and isinstance(want, int) and want <= have)
        if position != dim and not fits:
            call.fail(f"the index is larger than the operand in dimension {position}")
    return TensorType(call.x.dtype, index.shape)


def _take(call: Call) -> TensorType:
    dim, index = call.dim("dim"), _check_index(call)
    shape = (*call.x.shape[:dim], *index.shape, *call.x.shape[dim + 1 :])
    return TensorType(call.x.dtype, shape)


def _full(call: Call) -> TensorType:
    dtype = call.dtype()
    _check_value(call, dtype)
    return TensorType(dtype, call.shape())


def _iota(call: Call) -> TensorType:
    dtype, shape = call.dtype(), call.shape()
    if dtype is DType.BOOL:
        call.fail("has no bool form")
    call.dim("dim", len(shape))
    for key in ("start", "step"):
        if type(call.attrs[key]) is not int and not dtype.is_float:
            call.fail(f"{key} must be an integer")
        call.number(key)
    return TensorType(dtype, shape)


def check_broadcastable(call: Call, small: Shape, big: Shape, what: str) -> None:
    """`small` broadcasts to exactly `big`."""
    lead = len(big) - len(small)
    if lead < 0 or any(
        broadcast_dims(have, want) != want for have, want in zip(small, big[lead:], strict=True)
    ):
        call.fail(f"{what} does not broadcast to {describe_shape(big)}")


VIEW_RULES: dict[str, Callable[[Call], TensorType]] = {
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "slice": _slice,
    "flip": _flip,
    "pad": _pad,
    "concat": _concat,
    "gather": _gather,
    "take": _take,
    "full": _full,
    "iota": _iota,
}

"""NumPy functions of the primitives that move data, reduce or contract, on held arrays.

Each takes the call (static shapes) and the operands and gives an array of the result's shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from kernel_gen.errors import InvalidInput
from kernel_gen.ir.arrays import Array, numpy_dtype
from kernel_gen.ir.call import Call
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.infer_reduce import reduced_shape
from kernel_gen.ir.rounding import rounded
from kernel_gen.ir.types import static_shape

Function = Callable[[Call, Sequence[Array]], Array]


def _shape(call: Call) -> tuple[int, ...]:
    return static_shape(call.shape())


def _reshape(call: Call, operands: Sequence[Array]) -> Array:
    return operands[0].reshape(_shape(call))


def _permute(call: Call, operands: Sequence[Array]) -> Array:
    return operands[0].transpose(call.integers("dims"))


def _expand(call: Call, operands: Sequence[Array]) -> Array:
    return np.broadcast_to(operands[0], _shape(call))


def _slice(call: Call, operands: Sequence[Array]) -> Array:
    taken = slice(call.integer("start"), call.integer("stop"), call.integer("step", 1))
    return operands[0][(slice(None),) * call.dim("dim") + (taken,)]


def _flip(call: Call, operands: Sequence[Array]) -> Array:
    return np.flip(operands[0], call.dims())


def _pad(call: Call, operands: Sequence[Array]) -> Array:
    x, low, high = operands[0], call.integers("low"), call.integers("high")
    shape = [a + extent + b for a, extent, b in zip(low, x.shape, high, strict=True)]
    value = rounded(_held_scalar(call.attrs["value"], call.x.dtype), call.x.dtype)
    result = np.full(shape, value, x.dtype)
    result[tuple(slice(a, a + extent) for a, extent in zip(low, x.shape, strict=True))] = x
    return result


def _held_scalar(value: object, dtype: DType) -> Array:
    return np.asarray(value, np.float64 if dtype.is_float else numpy_dtype(dtype))


def _concat(call: Call, operands: Sequence[Array]) -> Array:
    return np.concatenate(operands, call.dim("dim"))


def _checked_index(call: Call, operands: Sequence[Array], extent: int) -> Array:
    index = operands[1].astype(np.int64)
    if index.size and not 0 <= index.min() <= index.max() < extent:
        raise InvalidInput(
            f"{call.op}: indices {index.min()} … {index.max()} leave a dimension of {extent}"
        )
    return index


def _gather(call: Call, operands: Sequence[Array]) -> Array:
    dim, x = call.dim("dim"), operands[0]
    index = _checked_index(call, operands, x.shape[dim])
    if not index.size:
        return np.zeros(index.shape, x.dtype)
    region = [slice(None) if i == dim else slice(n) for i, n in enumerate(index.shape)]
    return np.take_along_axis(x[tuple(region)], index, dim)


def _take(call: Call, operands: Sequence[Array]) -> Array:
    dim, x = call.dim("dim"), operands[0]
    index = _checked_index(call, operands, x.shape[dim])
    if not index.size:
        return np.zeros((*x.shape[:dim], *index.shape, *x.shape[dim + 1 :]), x.dtype)
    return np.take(x, index, dim)


def _full(call: Call, operands: Sequence[Array]) -> Array:
    dtype = call.dtype()
    value = rounded(_held_scalar(call.attrs["value"], dtype), dtype.compute)
    return np.full(_shape(call), value, value.dtype)


def _iota(call: Call, operands: Sequence[Array]) -> Array:
    shape, dim, dtype = _shape(call), call.integer("dim"), call.dtype()
    kind = np.dtype(np.float64) if dtype.is_float else numpy_dtype(dtype)
    wide = np.float64 if dtype.is_float else np.int64
    line = call.number("start") + np.arange(shape[dim]).astype(wide) * call.number("step")
    return np.broadcast_to(line.astype(kind).reshape(-1, *(1 for _ in shape[dim + 1 :])), shape)


def _neutral(op: str, dtype: DType) -> object:
    """What amax and amin give over nothing: the lowest or highest value."""
    lowest = op == "amax"
    if dtype is DType.BOOL:
        return not lowest
    if dtype.is_float:
        return -math.inf if lowest else math.inf
    limits = np.iinfo(numpy_dtype(dtype).name)
    return limits.min if lowest else limits.max


def _reduction(call: Call, operands: Sequence[Array]) -> Array:
    x, dims, keepdim = operands[0], call.dims(), call.flag("keepdim")
    match call.op:
        case "sum" | "prod":
            function = np.sum if call.op == "sum" else np.prod
            return np.asarray(function(x, axis=dims, dtype=x.dtype, keepdims=keepdim))
        case "any" | "all":
            check = np.any if call.op == "any" else np.all
            return np.asarray(check(x, axis=dims, keepdims=keepdim))
        case "amax" | "amin":
            extreme = np.max if call.op == "amax" else np.min
            start = x.dtype.type(_neutral(call.op, call.x.dtype))
            return np.asarray(extreme(x, axis=dims, keepdims=keepdim, initial=start))
    return _position(call, x, dims, keepdim=keepdim)


def _position(call: Call, x: Array, dims: tuple[int, ...], *, keepdim: bool) -> Array:
    find = np.argmax if call.op == "argmax" else np.argmin
    found = np.asarray(find(x, axis=dims[0] if len(dims) == 1 else None), np.int64)
    return found.reshape(static_shape(reduced_shape(x.shape, dims, keepdim=keepdim)))


def _matmul(call: Call, operands: Sequence[Array]) -> Array:
    return np.asarray(np.matmul(operands[0], operands[1]))


def _convolution(call: Call, operands: Sequence[Array]) -> Array:
    """One matrix product per kernel position, so that memory stays near the operands' size."""
    weight, groups = operands[1], call.integer("groups", 1)
    stride, dilation = call.integers("stride", 1), call.integers("dilation", 1)
    padding = [(0, 0), (0, 0), *((p, p) for p in call.integers("padding"))]
    x = np.pad(operands[0], padding)
    kernel = weight.shape[2:]
    out = [
        (extent - d * (k - 1) - 1) // s + 1
        for extent, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)
    ]
    batch, channels = x.shape[0], x.shape[1]
    split = (groups, weight.shape[0] // groups, channels // groups, *kernel)
    per_position = np.moveaxis(weight.reshape(split), (0, 1, 2), (-3, -2, -1))
    total = np.zeros((batch, groups, weight.shape[0] // groups, math.prod(out)))
    for position in product(*(range(k) for k in kernel)):
        window = tuple(
            slice(at * d, at * d + s * (n - 1) + 1, s) if n else slice(0)
            for at, d, s, n in zip(position, dilation, stride, out, strict=True)
        )
        taken = x[(slice(None), slice(None), *window)]
        columns = taken.reshape(batch, groups, channels // groups, math.prod(out))
        total += np.matmul(per_position[position], columns)
    result = total.reshape(batch, weight.shape[0], *out)
    return result + operands[2].reshape(-1, *(1 for _ in out)) if len(operands) == 3 else result


DATA: dict[str, Function] = {
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
    **dict.fromkeys(("sum", "prod", "amax", "amin", "any", "all", "argmax", "argmin"), _reduction),
    "matmul": _matmul,
    "convolution": _convolution,
}

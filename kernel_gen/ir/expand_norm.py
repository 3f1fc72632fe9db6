"""Expansions of norms, softmax and moments: statistics in the compute type, two passes."""

from __future__ import annotations

import math

import numpy as np

from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.call import Call, shape_attr
from kernel_gen.ir.emitter import Emitter
from kernel_gen.ir.types import Shape, static_shape

Operands = tuple[int, ...]


def _count(e: Emitter, x: int, dims: tuple[int, ...]) -> int:
    """Number of reduced elements as a 0-d value of x's dtype; counted where it is symbolic."""
    dtype = e.type(x).dtype
    extents: Shape = tuple(e.type(x).shape[dim] for dim in dims)
    if all(isinstance(extent, int) for extent in extents):
        return e.scalar(math.prod(static_shape(extents)), x)
    ones = e.op("full", shape=shape_attr(extents), dtype=dtype, value=1.0)
    return e.sum(ones, tuple(range(len(dims))), keepdim=False)


def _mean(e: Emitter, x: int, dims: tuple[int, ...], *, keepdim: bool = True) -> int:
    return e.op("div", e.sum(x, dims, keepdim=keepdim), _count(e, x, dims))


def _deviation(e: Emitter, x: int, dims: tuple[int, ...]) -> int:
    return e.op("sub", x, _mean(e, x, dims))


def _inverse_root(e: Emitter, square: int, eps: float) -> int:
    return e.op("rsqrt", e.with_scalar("add", square, eps))


def _standardised(e: Emitter, x: int, dims: tuple[int, ...], eps: float) -> int:
    """(x - mean) / sqrt(var + eps) over `dims`."""
    centred = _deviation(e, x, dims)
    variance = _mean(e, e.op("mul", centred, centred), dims)
    return e.op("mul", centred, _inverse_root(e, variance, eps))


def expand_layer_norm(e: Emitter, call: Call, operands: Operands) -> int:
    x = e.widen(operands[0])
    axes = _last(call)
    y = _affine(e, call, _standardised(e, x, axes, call.number("eps")), operands[1:], None)
    return e.cast(y, call.x.dtype)


def _last(call: Call) -> tuple[int, ...]:
    return tuple(range(call.x.rank - call.integer("axes", 1), call.x.rank))


def _affine(e: Emitter, call: Call, y: int, parameters: Operands, shape: Shape | None) -> int:
    """y · weight + bias with those parameters that the call has, brought to `shape` first."""
    left = list(parameters)
    for key, op in (("weight", "mul"), ("bias", "add")):
        if call.attrs.get(key):
            parameter = e.cast(left.pop(0), e.type(y).dtype)
            y = e.op(op, y, parameter if shape is None else e.reshape(parameter, shape))
    return y


def expand_rms_norm(e: Emitter, call: Call, operands: Operands) -> int:
    x = e.widen(operands[0])
    square = _mean(e, e.op("mul", x, x), _last(call))
    y = e.op("mul", x, _inverse_root(e, square, call.number("eps")))
    return e.cast(_affine(e, call, y, operands[1:], None), call.x.dtype)


def expand_group_norm(e: Emitter, call: Call, operands: Operands) -> int:
    """Statistics over each group of channels; the affine part is per channel."""
    groups, shape = call.integer("groups", 1), call.x.shape
    (channels,) = static_shape(shape[1:2])
    grouped = e.reshape(e.widen(operands[0]), (shape[0], groups, channels // groups, *shape[2:]))
    dims = tuple(range(2, e.type(grouped).rank))
    y = e.reshape(_standardised(e, grouped, dims, call.number("eps")), shape)
    return e.cast(_affine(e, call, y, operands[1:], _per_channel(call)), call.x.dtype)


def _per_channel(call: Call) -> Shape:
    """(C, 1, …): a channel parameter's shape beside x (N, C, …)."""
    return (call.x.shape[1], *(1 for _ in call.x.shape[2:]))


def expand_batch_norm(e: Emitter, call: Call, operands: Operands) -> int:
    """x · scale + shift with scale = weight / sqrt(var + eps), shift = bias - mean · scale."""
    x = e.widen(operands[0])
    dtype = e.type(x).dtype
    mean, variance, *parameters = [e.cast(value, dtype) for value in operands[1:]]
    scale = _inverse_root(e, variance, call.number("eps"))
    if call.flag("weight"):
        scale = e.op("mul", scale, parameters.pop(0))
    shift = e.op("mul", mean, scale)
    shift = e.op("sub", parameters.pop(0), shift) if parameters else e.op("neg", shift)
    shape = _per_channel(call)
    y = e.op("add", e.op("mul", x, e.reshape(scale, shape)), e.reshape(shift, shape))
    return e.cast(y, call.x.dtype)


def expand_softmax(e: Emitter, call: Call, operands: Operands) -> int:
    """exp(x - max) / Σ exp(x - max): a row of -inf gives NaN, as does +inf in a row."""
    power, total = _exponentials(e, _shifted(e, call, operands), call.dim("dim"))
    return e.cast(e.op("div", power, total), call.x.dtype)


def expand_log_softmax(e: Emitter, call: Call, operands: Operands) -> int:
    shifted = _shifted(e, call, operands)
    _, total = _exponentials(e, shifted, call.dim("dim"))
    return e.cast(e.op("sub", shifted, e.op("log", total)), call.x.dtype)


def _shifted(e: Emitter, call: Call, operands: Operands) -> int:
    x = e.widen(operands[0])
    return e.op("sub", x, e.op("amax", x, dims=(call.dim("dim"),), keepdim=True))


def _exponentials(e: Emitter, shifted: int, dim: int) -> tuple[int, int]:
    power = e.op("exp", shifted)
    return power, e.sum(power, (dim,))


def expand_mean(e: Emitter, call: Call, operands: Operands) -> int:
    mean = _mean(e, e.widen(operands[0]), call.dims(), keepdim=call.flag("keepdim"))
    return e.cast(mean, call.x.dtype)


def expand_var(e: Emitter, call: Call, operands: Operands) -> int:
    return e.cast(_variance(e, call, e.widen(operands[0])), call.x.dtype)


def expand_std(e: Emitter, call: Call, operands: Operands) -> int:
    return e.cast(e.op("sqrt", _variance(e, call, e.widen(operands[0]))), call.x.dtype)


def _variance(e: Emitter, call: Call, x: int) -> int:
    """Σ (x - mean)² / max(n - correction, 0): NaN for a single element, as torch."""
    dims, correction = call.dims(), call.number("correction")
    total = _squares(e, x, dims, keepdim=call.flag("keepdim"))
    return e.op("div", total, _freedom(e, x, dims, correction))


def _squares(e: Emitter, x: int, dims: tuple[int, ...], *, keepdim: bool) -> int:
    """Σ d² - (Σ d)² / n of d = x - mean.

    The mean is rounded to its own size, not to the deviations'; the second term takes off what that
    adds (Chan, Golub and LeVeque, "Algorithms for computing the sample variance", The American
    Statistician 37(3), 1983). An infinite sum of squares stays one, and no rounding leads below 0.
    """
    centred = _deviation(e, x, dims)
    total = e.sum(e.op("mul", centred, centred), dims, keepdim=keepdim)
    rest = e.sum(centred, dims, keepdim=keepdim)
    excess = e.op("mul", rest, e.op("div", rest, _count(e, x, dims)))
    largest = float(np.finfo(numpy_dtype(e.type(x).dtype).name).max)
    finite = e.with_scalar("minimum", excess, largest)
    return e.with_scalar("maximum", e.op("sub", total, finite), 0.0)


def _freedom(e: Emitter, x: int, dims: tuple[int, ...], correction: float) -> int:
    extents = [e.type(x).shape[dim] for dim in dims]
    if all(isinstance(extent, int) for extent in extents):
        return e.scalar(max(math.prod(static_shape(extents)) - correction, 0.0), x)
    left = e.with_scalar("sub", _count(e, x, dims), correction)
    return e.with_scalar("maximum", left, 0.0)

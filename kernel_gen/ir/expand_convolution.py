"""Expansions of what surrounds convolutions: the same sums, read and written the other way round.

conv_transpose(x, w, stride 2)  ->  convolution of x with a zero behind each element, w turned round
"""

from __future__ import annotations

from kernel_gen.ir.call import Call
from kernel_gen.ir.emitter import Emitter
from kernel_gen.ir.infer_composite import COMPOSITE_RULES
from kernel_gen.ir.types import static_shape

Operands = tuple[int, ...]


def expand_conv_transpose(e: Emitter, call: Call, operands: Operands) -> int:
    """Each element spreads over a window: each result gathers from the elements that reach it."""
    x, weight, *bias = (e.widen(value) for value in operands)
    stride, padding = call.integers("stride", 1), call.integers("padding")
    dilation, more = call.integers("dilation", 1), call.integers("output_padding")
    for d, step in enumerate(stride, 2):
        x = spread(e, x, d, step)
    kernel = static_shape(call.operands[1].shape[2:])
    reach = [gap * (k - 1) - cut for k, gap, cut in zip(kernel, dilation, padding, strict=True)]
    x = _bordered(e, x, reach, [r + extra for r, extra in zip(reach, more, strict=True)])
    made = e.op(
        "convolution",
        x,
        _turned(e, weight, call.integer("groups", 1)),
        *bias,
        stride=(1,) * len(stride),
        padding=(0,) * len(stride),
        dilation=dilation,
        groups=call.attrs["groups"],
    )
    return e.cast(made, call.x.dtype)


def spread(e: Emitter, value: int, dim: int, step: int) -> int:
    """[a, b] -> [a, 0, b] for a step of 2."""
    if step == 1:
        return value
    shape = e.type(value).shape
    (extent,) = static_shape(shape[dim : dim + 1])
    behind = e.reshape(value, (*shape[: dim + 1], 1, *shape[dim + 1 :]))
    none = (0,) * len(shape)
    high = (*none[: dim + 1], step - 1, *none[dim + 1 :])
    padded = e.op("pad", behind, low=(*none, 0), high=high, value=0.0)
    flat = e.reshape(padded, (*shape[:dim], extent * step, *shape[dim + 1 :]))
    return e.op("slice", flat, dim=dim, start=0, stop=max((extent - 1) * step + 1, 0), step=1)


def _bordered(e: Emitter, x: int, low: list[int], high: list[int]) -> int:
    """Zeros before and behind each spatial dimension; negative counts cut elements off."""
    for d, (before, after) in enumerate(zip(low, high, strict=True), 2):
        (extent,) = static_shape(e.type(x).shape[d : d + 1])
        start, stop = max(-before, 0), extent - max(-after, 0)
        if (start, stop) != (0, extent):
            x = e.op("slice", x, dim=d, start=start, stop=stop, step=1)
    counts = [(0, 0, *(max(n, 0) for n in side)) for side in (low, high)]
    if any(counts[0]) or any(counts[1]):
        x = e.op("pad", x, low=counts[0], high=counts[1], value=0.0)
    return x


def _turned(e: Emitter, weight: int, groups: int) -> int:
    """(G · I, O, k…) -> (G · O, I, k…), the kernel's positions in reverse."""
    inputs, outputs, *kernel = static_shape(e.type(weight).shape)
    places = tuple(range(3, 3 + len(kernel)))
    split = e.reshape(weight, (groups, inputs // groups, outputs, *kernel))
    swapped = e.op("permute", split, dims=(0, 2, 1, *places))
    joined = e.reshape(swapped, (groups * outputs, inputs // groups, *kernel))
    return e.op("flip", joined, dims=tuple(place - 1 for place in places))


def expand_conv_weight_gradient(e: Emitter, call: Call, operands: Operands) -> int:
    """x (N, G · I, …) and the result's gradient (N, O, …): a convolution whose channels are the
    members of the batch, and whose kernel is the gradient; stride and dilation change places."""
    x, gradient = (e.widen(value) for value in operands)
    groups = call.integer("groups", 1)
    batch, channels, *spatial = static_shape(call.x.shape)
    places = tuple(range(3, 3 + len(spatial)))
    split = e.reshape(x, (batch, groups, channels // groups, *spatial))
    turned = e.op("permute", split, dims=(2, 1, 0, *places))
    rank = call.x.rank
    made = e.op(
        "convolution",
        e.reshape(turned, (channels // groups, groups * batch, *spatial)),
        e.op("permute", gradient, dims=(1, 0, *range(2, rank))),
        stride=call.integers("dilation", 1),
        padding=call.integers("padding"),
        dilation=call.integers("stride", 1),
        groups=groups,
    )
    result = COMPOSITE_RULES[call.op](call)
    for d, extent in enumerate(static_shape(result.shape[2:]), 2):
        made = e.op("slice", made, dim=d, start=0, stop=extent, step=1)
    return e.cast(e.op("permute", made, dims=(1, 0, *range(2, rank))), result.dtype)

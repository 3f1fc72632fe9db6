"""Pools over windows and over whole images."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kernel_gen.frontend.onnx.values import Call, rule
from kernel_gen.frontend.onnx.windows import Window

_MAX: dict[int, Callable[..., Any]] = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVERAGE: dict[int, Callable[..., Any]] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


@rule("MaxPool")
def max_pool(call: Call) -> Tensor | list[Tensor]:
    value = call.tensor(0)
    window = _window(call, value)
    if call.outputs > 1:
        return _max_with_positions(call, value, window)
    return _max(value, window, _extra(call, value, window))


def _max(value: Tensor, window: Window, extra: list[int]) -> Tensor:
    function = _MAX[len(window.kernel)]
    fits = window.is_symmetric and all(
        2 * b <= k for b, k in zip(window.before, window.kernel, strict=True)
    )
    sizes = (list(window.kernel), list(window.strides))
    if fits and not any(extra):
        result: Tensor = function(value, *sizes, list(window.before), list(window.dilations))
        return result
    padded = _padded_low(value, window.flat_pads(extra))
    found: Tensor = function(padded, *sizes, 0, list(window.dilations))
    return found


def _padded_low(value: Tensor, pads: list[int]) -> Tensor:
    low = -math.inf if value.is_floating_point() else torch.iinfo(value.dtype).min
    return F.pad(value, pads, value=low)


def _max_with_positions(call: Call, value: Tensor, window: Window) -> list[Tensor]:
    """Positions count within the whole tensor, in its own order or with the axes swapped."""
    rank = len(window.kernel)
    extra = _extra(call, value, window)
    padded = _padded_low(value, window.flat_pads(extra))
    sizes = (list(window.kernel), list(window.strides), 0, list(window.dilations))
    found, flat = _MAX[rank](padded, *sizes, return_indices=True)
    place, weight = torch.zeros_like(flat), 1
    axes = list(range(rank)) if call.attr("storage_order", 0) else list(range(rank))[::-1]
    rest = {}
    for axis in reversed(range(rank)):  # row-major position within the padded image
        rest[axis] = flat % padded.shape[2 + axis] - window.before[axis]
        flat = torch.div(flat, padded.shape[2 + axis], rounding_mode="floor")
    for axis in axes:
        place = place + rest[axis] * weight
        weight *= value.shape[2 + axis]
    planes = torch.arange(value.shape[0] * value.shape[1]).reshape(*value.shape[:2], *[1] * rank)
    return [found, place + planes * weight]


@rule("AveragePool", "LpPool")
def average_pool(call: Call) -> Tensor:
    value = call.tensor(0)
    window = _window(call, value)
    if call.op == "LpPool":
        p = float(call.attr("p", 2))
        total = _sums(value.abs() ** p, window, _extra(call, value, window))
        return total ** (1.0 / p)
    return _average(call, value, window)


def _average(call: Call, value: Tensor, window: Window) -> Tensor:
    include = bool(call.attr("count_include_pad", 0))
    extra = _extra(call, value, window)
    plain = window.is_symmetric and not any(extra) and all(d == 1 for d in window.dilations)
    half = all(2 * b <= k for b, k in zip(window.before, window.kernel, strict=True))
    if plain and half:
        sizes = (list(window.kernel), list(window.strides), list(window.before))
        result: Tensor = _AVERAGE[len(window.kernel)](value, *sizes, count_include_pad=include)
        return result
    ones = torch.ones_like(value[:1, :1])
    if include:
        counted = F.pad(ones, window.flat_pads(), value=1.0)
        counts = _sums(counted, window, extra, is_padded=True)
    else:
        counts = _sums(ones, window, extra)
    return _sums(value, window, extra) / counts


def _sums(value: Tensor, window: Window, extra: list[int], *, is_padded: bool = False) -> Tensor:
    """Sums over windows, by a convolution with ones for each channel."""
    pads = [n for e in reversed(extra) for n in (0, e)] if is_padded else window.flat_pads(extra)
    padded = F.pad(value, pads)
    n, c = padded.shape[:2]
    planes = padded.reshape(n * c, 1, *padded.shape[2:])
    ones = torch.ones(1, 1, *window.kernel, dtype=value.dtype)
    conv: Callable[..., Tensor] = (F.conv1d, F.conv2d, F.conv3d)[len(window.kernel) - 1]
    found = conv(planes, ones, None, list(window.strides), 0, list(window.dilations))
    return found.reshape(n, c, *found.shape[2:])


def _window(call: Call, value: Tensor) -> Window:
    window = Window.of(call, value.shape[2:])
    if not 1 <= len(window.kernel) <= 3:
        raise call.refuse(f"{len(window.kernel)} spatial dimensions; 1 to 3 are supported")
    return window


def _extra(call: Call, value: Tensor, window: Window) -> list[int]:
    if call.attr("ceil_mode", 0):
        return window.ceil_extra(value.shape[2:])
    return [0] * len(window.kernel)


@rule("GlobalAveragePool")
def global_average(call: Call) -> Tensor:
    value = call.tensor(0)
    return value.mean(tuple(range(2, value.ndim)), keepdim=True)


@rule("GlobalMaxPool")
def global_max(call: Call) -> Tensor:
    value = call.tensor(0)
    return value.amax(tuple(range(2, value.ndim)), keepdim=True)


@rule("GlobalLpPool")
def global_norm(call: Call) -> Tensor:
    value, p = call.tensor(0), float(call.attr("p", 2))
    dims = tuple(range(2, value.ndim))
    found: Tensor = torch.linalg.vector_norm(value, p, dims, keepdim=True)
    return found

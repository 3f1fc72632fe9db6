"""Poolings over windows and over whole images, and their gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernel_gen.frontend.lower.core import Args, Lowering, NotLowered, Result, Val, extent, lowers
from kernel_gen.frontend.lower.views import interleaved
from kernel_gen.ir.arrays import numpy_dtype
from kernel_gen.ir.types import Dim

_MAX_WINDOW = 25  # elements: a window is written out in the kernel


@lowers(
    "max_pool1d max_pool2d max_pool3d max_pool1d_with_indices max_pool2d_with_indices "
    "max_pool3d_with_indices"
)
def max_pool(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    windows = _max_windows(c, a, value, c.out_type.shape)
    found = c.op("max_pool", value, **windows)
    if len(c.used) == 1:
        return found
    return [found, c.op("argmax_pool", value, **windows) if c.used[1] else None]


@lowers("max_pool2d_with_indices_backward max_pool3d_with_indices_backward")
def max_pool_backward(c: Lowering, a: Args) -> Result:
    gradient: Val = a["grad_output"]
    windows = _max_windows(c, a, gradient, gradient.shape)
    image = _image(c, a["self"], windows["kernel"])
    return c.op("max_pool_gradient", gradient, a["indices"], image=image, **windows)


@lowers("avg_pool2d_backward avg_pool3d_backward")
def avg_pool_backward(c: Lowering, a: Args) -> Result:
    gradient: Val = a["grad_output"]
    windows = _mean_windows(c, a, gradient)
    image = _image(c, a["self"], windows["kernel"])
    return c.op("avg_pool_gradient", gradient, image=image, **windows)


def _max_windows(
    c: Lowering, a: Args, value: Val, out: tuple[Dim, ...]
) -> dict[str, tuple[int, ...]]:
    """Attributes of a maximum's windows over the image `self`, pooled to the shape `out`."""
    kernel = _sizes(a["kernel_size"], a)
    stride = _sizes(a["stride"] or kernel, a)
    padding, dilation = _sizes(a["padding"], a), _sizes(a["dilation"], a)
    _check(c, value, kernel)
    high = _high(c, a["self"], kernel, stride, padding, dilation, out)
    return {"kernel": kernel, "stride": stride, "low": padding, "high": high, "dilation": dilation}


def _mean_windows(c: Lowering, a: Args, value: Val) -> dict[str, tuple[int, ...]]:
    """Attributes of windows of equal weights; those that torch cuts at the border are its own."""
    if _is_cut(a):
        raise NotLowered(f"{c.name} with windows of several weights", decompose=False)
    kernel = _sizes(a["kernel_size"], a)
    stride, padding = _sizes(a["stride"] or kernel, a), _sizes(a["padding"], a)
    _check(c, value, kernel)
    return {"kernel": kernel, "stride": stride, "low": padding, "high": padding}


def _is_cut(a: Args) -> bool:
    """Whether windows at the border may be divided by another number than those inside."""
    outside = any(_sizes(a["padding"], a)) and not a["count_include_pad"]
    return outside or a["ceil_mode"] or a.get("divisor_override") is not None


def _image(c: Lowering, value: Val, kernel: tuple[int, ...]) -> tuple[int, ...]:
    """Extents of the pooled dimensions."""
    return tuple(extent(c, value, dim) for dim in range(value.rank - len(kernel), value.rank))


@lowers("_adaptive_avg_pool2d_backward _adaptive_avg_pool3d_backward")
def adaptive_avg_pool_backward(c: Lowering, a: Args) -> Result:
    """Equal windows: each element gets an equal share of its window's gradient."""
    made: Val = a["grad_output"]
    times = []
    for dim in range(made.rank):
        count, size = extent(c, made, dim), extent(c, a["self"], dim)
        if not count or size % count:
            raise NotLowered(f"{c.name} from {size} to {count}", decompose=False)
        times.append(size // count)
    made = c.op("div", made, c.exact_number(math.prod(times), made.dtype))
    for dim, copies in enumerate(times):
        if copies > 1:
            shape = (*made.shape[:dim], extent(c, a["self"], dim), *made.shape[dim + 1 :])
            made = interleaved(c, made, dim, copies, shape)
    return made


def _high(
    c: Lowering,
    value: Val,
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    out: tuple[Dim, ...],
) -> tuple[int, ...]:
    """What follows the image, so that the last window that torch takes in `ceil_mode` fits."""
    found = []
    for d, n in enumerate(out[-len(kernel) :]):
        size = extent(c, value, value.rank - len(kernel) + d)
        reach = dilation[d] * (kernel[d] - 1) + 1
        last = (int(n) - 1) * stride[d] + reach  # type: ignore[arg-type]
        found.append(max(padding[d], last - size - padding[d]))
    return tuple(found)


@lowers("avg_pool1d avg_pool2d avg_pool3d")
def avg_pool(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    if _is_cut(a):
        return _mean_of_cut_windows(c, a, value)
    return c.op("avg_pool", value, **_mean_windows(c, a, value))


def _mean_of_cut_windows(c: Lowering, a: Args, value: Val) -> Val:
    """The mean over whole windows with zeros around, times n / counted for the n elements of each
    that torch counts."""
    kernel = _sizes(a["kernel_size"], a)
    stride, padding = _sizes(a["stride"] or kernel, a), _sizes(a["padding"], a)
    _check(c, value, kernel)
    high = _high(c, value, kernel, stride, padding, (1,) * len(kernel), c.out_type.shape)
    wide = c.cast(value, value.dtype.compute)
    mean = c.op("avg_pool", wide, kernel=kernel, stride=stride, low=padding, high=high)
    if a.get("divisor_override") is not None:
        more = c.exact_number(math.prod(kernel) / a["divisor_override"], wide.dtype)
        return c.cast(c.op("mul", mean, more), value.dtype)
    for d, size in enumerate(kernel):
        dim = value.rank - len(kernel) + d
        counted = _counted(a, extent(c, value, dim), extent(c, mean, dim), d)
        if any(counted != size):
            ratio = (size / counted).reshape((-1,) + (1,) * (len(kernel) - d - 1))
            held = c.builder.constant(ratio.astype(numpy_dtype(wide.dtype)))
            mean = c.op("mul", mean, c.val(held))
    return c.cast(mean, value.dtype)


def _counted(a: Args, image: int, windows: int, d: int) -> NDArray[np.int64]:
    """How many elements of each window torch counts along one pooled dimension."""
    size = _sizes(a["kernel_size"], a)[d]
    padding = _sizes(a["padding"], a)[d]
    around = padding if a["count_include_pad"] else 0
    begin = np.arange(windows) * _sizes(a["stride"] or a["kernel_size"], a)[d] - padding
    return np.minimum(begin + size, image + around) - np.maximum(begin, -around)


def _sizes(setting: int | Sequence[int], a: Args) -> tuple[int, ...]:
    """One value per pooled dimension: the kernel's list may hold one for all."""
    kernel = a["kernel_size"]
    count = 1 if isinstance(kernel, int) else len(kernel)
    values = [setting] if isinstance(setting, int) else list(setting)
    return tuple(values * count if len(values) == 1 else values)


def _check(c: Lowering, value: Val, kernel: tuple[int, ...]) -> None:
    if not value.dtype.is_float:
        raise NotLowered(f"{c.name} on {value.dtype}", decompose=False)
    if math.prod(kernel) > _MAX_WINDOW:
        raise NotLowered(f"{c.name} over windows of {math.prod(kernel)}", decompose=False)

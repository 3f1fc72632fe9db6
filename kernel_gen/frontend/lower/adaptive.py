"""Poolings to a number of points: a window for each, of equal extents or not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kernel_gen.frontend.lower.core import Args, Lowering, NotLowered, Result, Val, extent, lowers
from kernel_gen.ir.arrays import numpy_dtype

Places = NDArray[np.int64]
_MAX_WINDOW = 25  # elements: a window is written out in the kernel


@lowers("adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d")
def adaptive_max_pool(c: Lowering, a: Args) -> Result:
    """The largest of each window, and where it stands: of windows of equal extents only."""
    value: Val = a["self"]
    size = [a["output_size"]] if isinstance(a["output_size"], int) else list(a["output_size"])
    dims = tuple(range(value.rank - len(size), value.rank))
    kernel = _equal_windows(c, value, dims, size)
    if all(points == 1 for points in size) and not c.used[1] and 0 not in kernel:
        return [c.op("amax", value, dims=dims, keepdim=True), None]
    if 0 in kernel and not c.used[1]:
        return [_uneven(c, value, dims, size, "amax"), None]
    if 0 in kernel or math.prod(kernel) > _MAX_WINDOW or not value.dtype.is_float:
        raise NotLowered(f"{c.name} of {value.dtype} to {size}", decompose=False)
    none, ones = (0,) * len(kernel), (1,) * len(kernel)
    windows = {"kernel": kernel, "stride": kernel, "low": none, "high": none, "dilation": ones}
    return [
        c.op(op, value, **windows) if used else None
        for op, used in zip(("max_pool", "argmax_pool"), c.used, strict=True)
    ]


@lowers(
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d "
    "_adaptive_avg_pool3d"
)
def adaptive_avg_pool(c: Lowering, a: Args) -> Result:
    """To a single point a mean, to a divisor of the extents one over equal windows."""
    value: Val = a["self"]
    size = list(a["output_size"])
    dims = tuple(range(value.rank - len(size), value.rank))
    if all(points == 1 for points in size):
        return c.op("mean", value, dims=dims, keepdim=True)
    kernel = _equal_windows(c, value, dims, size)
    if 0 in kernel:
        return c.cast(_uneven(c, value, dims, size, "sum"), value.dtype)
    if math.prod(kernel) > _MAX_WINDOW:
        raise NotLowered(f"{c.name} to {size}", decompose=False)
    none = (0,) * len(kernel)
    return c.op("avg_pool", value, kernel=kernel, stride=kernel, low=none, high=none)


def _equal_windows(
    c: Lowering, value: Val, dims: tuple[int, ...], size: Sequence[int | None]
) -> tuple[int, ...]:
    """Extents of the windows that `size` of them are equal with; 0 where they are not."""
    return tuple(
        extent(c, value, d) // points if points and extent(c, value, d) % points == 0 else 0
        for d, points in zip(dims, (n or 0 for n in size), strict=True)
    )


def _uneven(
    c: Lowering, value: Val, dims: tuple[int, ...], size: Sequence[int | None], op: str
) -> Val:
    """Along one dimension after the other; windows begin at ⌊i·D/n⌋ and end at ⌈(i+1)·D/n⌉."""
    images = [extent(c, value, d) for d in dims]
    given = zip(dims, images, size, strict=True)
    spans = {d: _spans(image, n) for d, image, n in given if n and n != image}
    longest = math.prod(int(max(end - begin)) for begin, end in spans.values())
    empty = 0 in (*size, *images)
    if empty or longest > _MAX_WINDOW or not value.dtype.is_float:
        raise NotLowered(f"{c.name} of {value.dtype} to {list(size)}", decompose=False)
    made = c.cast(value, value.dtype.compute) if op == "sum" else value
    for d, (begin, end) in spans.items():
        made = _along(c, made, d, begin, end, op)
    return made


def _spans(image: int, points: int) -> tuple[Places, Places]:
    """Begins and ends of the windows."""
    place = np.arange(points)
    return place * image // points, -(-(place + 1) * image // points)


def _along(c: Lowering, value: Val, dim: int, begin: Places, end: Places, op: str) -> Val:
    """The sums divided by their lengths, or the largest, of x[…, begin:end, …]. Short windows
    repeat their last element, which sums leave out."""
    places = begin[:, None] + np.arange(max(end - begin))
    index = c.builder.constant(np.minimum(places, end[:, None] - 1).astype(np.int64))
    taken = c.op("take", value, c.val(index), dim=dim)
    if op == "amax":
        return c.op("amax", taken, dims=(dim + 1,), keepdim=False)
    after = (1,) * (value.rank - dim - 1)
    inside = (places < end[:, None]).reshape(*places.shape, *after)
    if not inside.all():
        counted = c.val(c.builder.constant(inside))
        taken = c.op("where", counted, taken, c.number(0.0, taken.dtype))
    total = c.op("sum", taken, dims=(dim + 1,), keepdim=False)
    share = (1 / (end - begin)).reshape(-1, *after).astype(numpy_dtype(total.dtype))
    return c.op("mul", total, c.val(c.builder.constant(share)))

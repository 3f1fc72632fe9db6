"""Views whose elements repeat: windows that slide over dimensions, and what lies on a diagonal."""

from __future__ import annotations

import math

from kernel_gen.frontend.lower.core import (
    Args,
    Lowering,
    NotLowered,
    Result,
    Val,
    axis,
    extent,
    lowers,
)
from kernel_gen.ir.dtype import DType


def windows(c: Lowering, value: Val, dim: int, size: int, step: int, gap: int = 1) -> Val:
    """x[…, D, …] as x[…, window, position, …]: element step · window + gap · position of `dim`."""
    count = (extent(c, value, dim) - gap * (size - 1) - 1) // step + 1
    shape = (count, size)
    starts = c.op("iota", shape=shape, dtype=str(DType.I64), dim=0, start=0, step=step)
    places = c.op("iota", shape=shape, dtype=str(DType.I64), dim=1, start=0, step=gap)
    return c.op("take", value, c.op("add", starts, places), dim=dim)


@lowers("unfold")
def unfold(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    if value.rank == 0:
        raise NotLowered(f"{c.name} of a 0-d tensor", decompose=False)
    dim = axis(a["dimension"], value.rank)
    made = windows(c, value, dim, a["size"], a["step"])
    order = [d for d in range(made.rank) if d != dim + 1]
    return c.permute(made, [*order, dim + 1])


@lowers("im2col")
def im2col(c: Lowering, a: Args) -> Result:
    """(N, C, H, W) -> (N, C · kernel, windows)"""
    value: Val = a["self"]
    batched = value.rank == 4
    value = value if batched else c.reshape(value, (1, *value.shape))
    around = (0, 0, *a["padding"])
    if any(around):
        value = c.op("pad", value, low=around, high=around, value=0.0)
    for d in (1, 0):  # the last first: dimensions before it stay where they are
        settings = (a[name][d] for name in ("kernel_size", "stride", "dilation"))
        value = windows(c, value, 2 + d, *settings)
    value = c.permute(value, (0, 1, 3, 5, 2, 4))
    return c.reshape(value, c.out_type.shape)


@lowers("col2im")
def col2im(c: Lowering, a: Args) -> Result:
    """(N, C · kernel, windows) -> (N, C, H, W), where windows lie side by side."""
    kernel, size = tuple(a["kernel_size"]), tuple(a["output_size"])
    plain = tuple(a["stride"]) == kernel and not any(a["padding"])
    if not plain or any(n % k for n, k in zip(size, kernel, strict=True)):
        raise NotLowered(f"{c.name} of windows that overlap or leave gaps", decompose=False)
    value: Val = a["self"]
    batch = value.shape[0] if value.rank == 3 else 1
    channels = extent(c, value, value.rank - 2) // math.prod(kernel)
    counts = tuple(n // k for n, k in zip(size, kernel, strict=True))
    apart = c.reshape(value, (batch, channels, *kernel, *counts))
    return c.reshape(c.permute(apart, (0, 1, 4, 2, 5, 3)), c.out_type.shape)


@lowers("diagonal diagonal_copy")
def diagonal(c: Lowering, a: Args) -> Result:
    """Rows and columns as one dimension, and every (columns + 1)th element of that."""
    value: Val = a["self"]
    dims = [axis(a[name], value.rank) for name in ("dim1", "dim2")]
    rest = [d for d in range(value.rank) if d not in dims]
    rows, columns = (extent(c, value, d) for d in dims)
    count = extent(c, Val(value.id, c.out_type), c.out_type.rank - 1)
    lead = tuple(value.shape[d] for d in rest)
    flat = c.reshape(c.permute(value, [*rest, *dims]), (*lead, rows * columns))
    if count == 0:
        return c.slice(flat, len(rest), 0, 0)
    start = a["offset"] if a["offset"] >= 0 else -a["offset"] * columns
    stop = start + (count - 1) * (columns + 1) + 1
    return c.slice(flat, len(rest), start, stop, columns + 1)


@lowers("trace")
def trace(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    columns = extent(c, value, 1)
    count = min(extent(c, value, 0), columns)
    flat = c.reshape(value, (math.prod(extent(c, value, d) for d in (0, 1)),))
    kept = c.slice(flat, 0, 0, max((count - 1) * (columns + 1) + 1, 0), columns + 1)
    return c.op("sum", c.cast(kept, c.out_type.dtype), dims=(0,), keepdim=False)

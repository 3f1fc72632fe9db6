"""Elements around a tensor: a number, or copies of what the tensor holds."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gen.frontend.lower.core import Args, Lowering, NotLowered, Result, Val, extent, lowers
from kernel_gen.ir.types import Dim


@lowers("constant_pad_nd pad")
def pad(c: Lowering, a: Args) -> Result:
    """Constant padding; torch lists (low, high) from the last dimension backwards."""
    value: Val = a["self"]
    if a.get("mode", "constant") != "constant":
        return _from_inside(c, value, a["mode"], a["pad"])
    fill, amounts = a["value"] or 0, list(a["pad"])
    low, high = [0] * value.rank, [0] * value.rank
    for i in range(len(amounts) // 2):
        dim = value.rank - 1 - i
        low[dim], high[dim] = max(amounts[2 * i], 0), max(amounts[2 * i + 1], 0)
        size: Dim = value.shape[dim]
        cut_low, cut_high = max(-amounts[2 * i], 0), max(-amounts[2 * i + 1], 0)
        if cut_low or cut_high:
            size = extent(c, value, dim)
            value = c.slice(value, dim, cut_low, size - cut_high)
    if not any(low) and not any(high):
        return value
    held = c.number(fill, value.dtype)  # refuses what the type cannot hold
    attrs = c.made_by(held, "full")
    number = fill if attrs is None else attrs[1]["value"]
    return c.op("pad", value, low=tuple(low), high=tuple(high), value=number)


@lowers("reflection_pad1d reflection_pad2d reflection_pad3d")
def reflection_pad(c: Lowering, a: Args) -> Result:
    return _from_inside(c, a["self"], "reflect", a["padding"])


@lowers("replication_pad1d replication_pad2d replication_pad3d")
def replication_pad(c: Lowering, a: Args) -> Result:
    return _from_inside(c, a["self"], "replicate", a["padding"])


@lowers("_pad_circular")
def circular_pad(c: Lowering, a: Args) -> Result:
    return _from_inside(c, a["self"], "circular", a["pad"])


def _from_inside(c: Lowering, value: Val, mode: str, amounts: Sequence[int]) -> Val:
    """Padding by elements of the tensor; (low, high) from the last dimension backwards."""
    if any(amount < 0 for amount in amounts):
        raise NotLowered(f"{c.name}: {mode} by a negative amount", decompose=False)
    for i in range(len(amounts) // 2):
        dim, low, high = value.rank - 1 - i, amounts[2 * i], amounts[2 * i + 1]
        around = (_side(c, value, mode, dim, -low), value, _side(c, value, mode, dim, high))
        parts = [part for part in around if part is not None]
        value = value if len(parts) == 1 else c.op("concat", *parts, dim=dim)
    return value


def _side(c: Lowering, value: Val, mode: str, dim: int, amount: int) -> Val | None:
    """What stands before dimension `dim` (a negative amount) or behind it; None for nothing."""
    count = abs(amount)
    if not count:
        return None
    size = extent(c, value, dim)
    if mode == "replicate":
        edge = c.slice(value, dim, 0, 1) if amount < 0 else c.slice(value, dim, size - 1, size)
        return c.expand(edge, (*value.shape[:dim], count, *value.shape[dim + 1 :]))
    if mode == "circular":
        start = size - count if amount < 0 else 0
        return c.slice(value, dim, start, start + count)
    start = 1 if amount < 0 else size - 1 - count
    return c.op("flip", c.slice(value, dim, start, start + count), dims=(dim,))

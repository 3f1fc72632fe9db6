"""Layout operators of whole tensors: reshape, permute, expand, flip, repeat, triangles."""

from __future__ import annotations

import math

from kernel_gen.frontend.lower.core import (
    Args,
    Lowering,
    Result,
    Val,
    axis,
    extent,
    lowers,
)
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.types import Shape


@lowers(
    "view.default reshape flatten unflatten squeeze unsqueeze view_as reshape_as _reshape_alias "
    "_unsafe_view ravel atleast_1d.default atleast_2d.default atleast_3d.default view_copy.default"
)
def reshape(c: Lowering, a: Args) -> Result:
    return c.reshape(a["self"], c.out_type.shape)


@lowers("transpose.int swapaxes swapdims")
def transpose(c: Lowering, a: Args) -> Result:
    left = a["dim0"] if "dim0" in a else a["axis0"]
    right = a["dim1"] if "dim1" in a else a["axis1"]
    return c.swap(a["self"], left, right)


@lowers("t mT numpy_T")
def matrix_transpose(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    if c.name.startswith("aten.numpy_T"):
        return c.permute(value, tuple(reversed(range(value.rank))))
    return value if value.rank < 2 else c.swap(value, -2, -1)


@lowers("permute permute_copy")
def permute(c: Lowering, a: Args) -> Result:
    rank = a["self"].rank
    return c.permute(a["self"], [axis(dim, rank) for dim in a["dims"]])


@lowers("movedim moveaxis")
def movedim(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    sources, targets = (
        [axis(dim, value.rank) for dim in ([dims] if isinstance(dims, int) else dims)]
        for dims in (a["source"], a["destination"])
    )
    rest = iter(dim for dim in range(value.rank) if dim not in sources)
    moved = dict(zip(targets, sources, strict=True))
    return c.permute(value, [moved[i] if i in moved else next(rest) for i in range(value.rank)])


@lowers("expand expand_as broadcast_to expand_copy")
def expand(c: Lowering, a: Args) -> Result:
    return c.expand(a["self"], c.out_type.shape)


@lowers("flip")
def flip(c: Lowering, a: Args) -> Result:
    dims = tuple(sorted(axis(dim, a["self"].rank) for dim in a["dims"]))
    return c.op("flip", a["self"], dims=dims) if dims and a["self"].rank else a["self"]


@lowers("fliplr flipud")
def flip_side(c: Lowering, a: Args) -> Result:
    return c.op("flip", a["self"], dims=(1 if ".fliplr." in c.name else 0,))


@lowers("roll")
def roll(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    if not a["dims"]:
        flat = c.reshape(value, (math.prod(extent(c, value, i) for i in range(value.rank)),))
        return c.reshape(_roll(c, flat, a["shifts"][0], 0), value.shape)
    for shift, dim in zip(a["shifts"], a["dims"], strict=True):
        value = _roll(c, value, shift, axis(dim, value.rank))
    return value


def _roll(c: Lowering, value: Val, shift: int, dim: int) -> Val:
    size = extent(c, value, dim)
    cut = 0 if size == 0 else -shift % size
    if cut == 0:
        return value
    return c.op("concat", c.slice(value, dim, cut, size), c.slice(value, dim, 0, cut), dim=dim)


@lowers("repeat tile")
def repeat(c: Lowering, a: Args) -> Result:
    """repeat((2, 3), (4, 1)): (2, 3) -> (1, 2, 1, 3) -> (4, 2, 1, 3) -> (8, 3)."""
    value: Val = a["self"]
    counts = list(a["repeats"] if "repeats" in a else a["dims"])
    rank = max(len(counts), value.rank)
    counts = [1] * (rank - len(counts)) + counts
    shape: Shape = (1,) * (rank - value.rank) + value.shape
    value = c.reshape(value, shape)
    for dim in range(rank - 1, -1, -1):  # one dimension at a time keeps within the rank limit
        if counts[dim] != 1:
            value = _repeat(c, value, dim, counts[dim])
    return c.reshape(value, c.out_type.shape)


def _repeat(c: Lowering, value: Val, dim: int, count: int) -> Val:
    size = extent(c, value, dim)
    head, tail = value.shape[:dim], value.shape[dim + 1 :]
    if size == 1 or count == 0:
        kept = c.slice(value, dim, 0, min(size, 1)) if count == 0 else value
        return c.expand(kept, (*head, count, *tail)) if size else value
    if value.rank + 1 > 8:
        return c.op("concat", *[value] * count, dim=dim)
    inner = c.reshape(value, (*head, 1, size, *tail))
    wide = c.expand(inner, (*head, count, size, *tail))
    return c.reshape(wide, (*head, count * size, *tail))


@lowers("repeat_interleave.self_int")
def repeat_interleave(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    if a["dim"] is None:
        value = c.reshape(value, (math.prod(extent(c, value, i) for i in range(value.rank)),))
    dim, count = axis(a["dim"] or 0, value.rank), a["repeats"]
    return interleaved(c, value, dim, count, c.out_type.shape)


def interleaved(c: Lowering, value: Val, dim: int, count: int, shape: Shape) -> Val:
    """Each element along `dim` `count` times in a row; `shape` is the result's."""
    head, tail = value.shape[: dim + 1], value.shape[dim + 1 :]
    inner = c.expand(c.reshape(value, (*head, 1, *tail)), (*head, count, *tail))
    return c.reshape(inner, shape)


@lowers("copy")
def copy(c: Lowering, a: Args) -> Result:
    return c.expand(c.cast(a["src"], a["self"].dtype), a["self"].shape)


@lowers("broadcast_tensors")
def broadcast_tensors(c: Lowering, a: Args) -> Result:
    shapes = [part.shape for part in c.out if part is not None]
    return [c.expand(value, shape) for value, shape in zip(a["tensors"], shapes, strict=True)]


@lowers("tril triu")
def triangle(c: Lowering, a: Args) -> Result:
    """Keeps what lies on or below (tril) or above (triu) diagonal number `diagonal`."""
    value: Val = a["self"]
    shape = (extent(c, value, value.rank - 2), extent(c, value, value.rank - 1))
    row = c.op("iota", shape=shape, dtype=str(DType.I64), dim=0, start=a["diagonal"], step=1)
    column = c.op("iota", shape=shape, dtype=str(DType.I64), dim=1, start=0, step=1)
    kept = c.op("le" if ".tril." in c.name else "ge", column, row)
    return c.op("where", kept, value, c.number(0, value.dtype))

"""Reads at positions held in tensors, and tensors made of nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernel_gen.frontend.lower.bounds import bounds_of
from kernel_gen.frontend.lower.core import (
    Args,
    Lowering,
    NotLowered,
    Number,
    Result,
    Val,
    axis,
    extent,
    lowers,
)
from kernel_gen.ir.dtype import DType

_INDEX_TYPES = (DType.I64, DType.I32)


def index_of(c: Lowering, index: Val) -> Val:
    if index.dtype in (DType.BOOL, DType.U8):
        raise NotLowered(
            f"{c.name} by a mask gives a size that depends on data",
            code="data-dependent",
            decompose=False,
        )
    return index if index.dtype in _INDEX_TYPES else c.cast(index, DType.I64)


@lowers("embedding")
def embedding(c: Lowering, a: Args) -> Result:
    return c.op("take", a["weight"], index_of(c, a["indices"]), dim=0)


@lowers("embedding_bag.padding_idx")
def embedding_bag(c: Lowering, a: Args) -> Result:
    """Bags of one size: rows of the table, reduced over each bag's positions."""
    bag, padding = _bag_size(c, a), a["padding_idx"]
    if any(c.used[1:]):
        raise NotLowered(f"{c.name}: only its first result has a form", decompose=False)
    op = ("sum", "mean", "amax")[a["mode"]]
    if padding is not None and op != "sum":
        raise NotLowered(f"{c.name}: {op} without the padding has no form", decompose=False)
    index = index_of(c, a["indices"])
    index = c.reshape(index, (extent(c, index, 0) // bag, bag))
    rows = c.op("take", a["weight"], index, dim=0)
    if a["per_sample_weights"] is not None:
        weights = c.cast(a["per_sample_weights"], rows.dtype)
        rows = c.op("mul", rows, c.reshape(weights, (*index.shape, 1)))
    if padding is not None:
        place = c.number(padding % extent(c, a["weight"], 0), index.dtype)
        is_row = c.reshape(c.op("ne", index, place), (*index.shape, 1))
        rows = c.op("where", is_row, rows, c.number(0, rows.dtype))
    return [c.op(op, rows, dims=(1,), keepdim=False), None, None, None]


def _bag_size(c: Lowering, a: Args) -> int:
    """Positions in each bag, where all bags are equal and cover the indices."""
    made, count = c.made_by(a["offsets"], "iota"), extent(c, a["indices"], 0)
    size = made[1]["step"] if made is not None and made[1]["start"] == 0 else None
    bags = extent(c, a["offsets"], 0) - bool(a["include_last_offset"])
    if not isinstance(size, int) or size < 1 or size * bags != count:
        raise NotLowered(f"{c.name}: the bags' sizes depend on the offsets", decompose=False)
    return size


@lowers("index_select")
def index_select(c: Lowering, a: Args) -> Result:
    index, value = index_of(c, a["index"]), a["self"]
    assert isinstance(value, Val)
    if value.rank == 0:
        return value
    if index.rank == 0:
        index = c.reshape(index, (1,))
    return c.op("take", value, index, dim=axis(a["dim"], value.rank))


@lowers("gather")
def gather(c: Lowering, a: Args) -> Result:
    value, index = a["self"], index_of(c, a["index"])
    if value.rank == 0 or index.rank == 0:
        raise NotLowered(f"{c.name} of 0-d tensors", decompose=False)
    return c.op("gather", value, index, dim=axis(a["dim"], value.rank))


@lowers("index.Tensor _unsafe_index.Tensor")
def index_tensor(c: Lowering, a: Args) -> Result:
    """x[:, i, j]: the indexed dimensions become one, read at i · extent(j) + j.

    Where the indexed dimensions are not neighbours, torch puts the result's first.
    """
    value: Val = a["self"]
    given = [(dim, index_of(c, i)) for dim, i in enumerate(a["indices"]) if i is not None]
    dims = [dim for dim, _ in given]
    if dims != list(range(dims[0], dims[0] + len(dims))):
        rest = [dim for dim in range(value.rank) if dim not in dims]
        value = c.permute(value, [*dims, *rest])
        dims = list(range(len(dims)))
    first, count = dims[0], len(dims)
    sizes = [extent(c, value, dim) for dim in dims]
    flat = _linear_index(c, [index for _, index in given], sizes)
    shape = (*value.shape[:first], math.prod(sizes), *value.shape[first + count :])
    return c.op("take", c.reshape(value, shape), flat, dim=first)


def _linear_index(c: Lowering, indices: Sequence[Val], sizes: Sequence[int]) -> Val:
    total: Val | None = None
    for index, size in zip(indices, sizes, strict=True):
        wide = from_front(c, c.cast(index, DType.I64), size)
        if total is None:
            total = wide
        else:
            shifted = c.op("mul", total, c.number(size, DType.I64))
            total = c.op("add", shifted, wide)
    if total is None:
        raise NotLowered(f"{c.name} without an index", decompose=False)
    return total


def from_front(c: Lowering, index: Val, size: int) -> Val:
    """Negative positions counted from the end: -1 is size - 1."""
    if bounds_of(c, index).low >= 0:
        return index
    negative = c.op("lt", index, c.number(0, index.dtype))
    return c.op("where", negative, c.op("add", index, c.number(size, index.dtype)), index)


@lowers("full zeros ones empty.memory_format new_full new_zeros new_ones new_empty")
def full(c: Lowering, a: Args) -> Result:
    fill = a.get("fill_value", 1 if "ones" in c.name else 0)
    return c.full(c.out_type.shape, fill, c.out_type.dtype)


@lowers(
    "full_like zeros_like ones_like empty_like fill.Scalar scalar_tensor zero "
    "_new_zeros_with_same_feature_meta"
)
def full_like(c: Lowering, a: Args) -> Result:
    fill: Number = 1 if "ones" in c.name else 0
    for name in ("fill_value", "value", "s"):
        fill = a.get(name, fill)
    return c.full(c.out_type.shape, fill, c.out_type.dtype)


@lowers("fill.Tensor")
def fill_tensor(c: Lowering, a: Args) -> Result:
    return c.expand(c.cast(a["value"], a["self"].dtype), a["self"].shape)


@lowers("arange")
def arange(c: Lowering, a: Args) -> Result:
    start, step = a.get("start", 0), a.get("step", 1)
    dtype = c.out_type.dtype
    if not dtype.is_float and not (isinstance(start, int) and isinstance(step, int)):
        raise NotLowered(f"{c.name}: fractional steps of {dtype}")
    convert = float if dtype.is_float else int
    return c.op(
        "iota",
        shape=c.dims(c.out_type.shape),
        dtype=str(dtype),
        dim=0,
        start=convert(start),
        step=convert(step),
    )

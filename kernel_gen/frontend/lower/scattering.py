"""Values put at positions held in tensors: as a choice for each element of a row.

A choice does not notice a position outside, where eager raises: only positions that are known to
be inside have a form.
"""

from __future__ import annotations

from kernel_gen.frontend.lower.bounds import Bounds, bounds_of
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
from kernel_gen.frontend.lower.indexing import index_of
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.types import Shape, Sym

_MAX_SCATTERED = 8  # positions in a row: each is a choice for all of its elements


@lowers("scatter.src scatter.value scatter_add")
def scatter(c: Lowering, a: Args) -> Result:
    """A few positions in each row, as routers have them: one after the other, the last one wins."""
    value: Val = a["self"]
    index = index_of(c, a["index"])
    dim = axis(a["dim"], value.rank)
    if value.rank == 0 or index.rank == 0:
        raise NotLowered(f"{c.name} of 0-d tensors", decompose=False)
    count = extent(c, index, dim)
    if any(
        i != j for d, (i, j) in enumerate(zip(index.shape, value.shape, strict=True)) if d != dim
    ):
        raise NotLowered(f"{c.name} into a part of the rows", decompose=False)
    if count > _MAX_SCATTERED:
        raise NotLowered(f"{c.name} to {count} positions in each row", decompose=False)
    _need_known(c, index, extent(c, value, dim))
    place = _places(c, value.shape, index.dtype, dim)
    for k in range(count):
        hit = c.op("eq", c.slice(index, dim, k, k + 1), place)
        value = c.op("where", hit, _scattered(c, a, value, dim, k), value)
    return value


def _scattered(c: Lowering, a: Args, value: Val, dim: int, k: int) -> Val:
    """What stands at the `k`th position of each row afterwards."""
    if "value" in a:
        return c.number(a["value"], value.dtype)
    source: Val = a["src"]
    for other in range(value.rank):
        start, stop = (k, k + 1) if other == dim else (0, value.shape[other])
        source = c.slice(source, other, start, stop)
    return c.op("add", value, source) if ".scatter_add." in c.name else source


@lowers("one_hot")
def one_hot(c: Lowering, a: Args) -> Result:
    index: Val = a["self"]
    classes = c.out_type.shape[-1]
    if isinstance(classes, Sym):
        raise NotLowered(f"{c.name}: the classes depend on data", decompose=False)
    _need_known(c, index, classes)
    shape = (*index.shape, classes)
    hit = c.op(
        "eq", c.reshape(index, (*index.shape, 1)), _places(c, shape, index.dtype, index.rank)
    )
    return c.cast(hit, DType.I64)


def _places(c: Lowering, shape: Shape, dtype: DType, dim: int) -> Val:
    return c.op("iota", shape=c.dims(shape), dtype=str(dtype), dim=dim, start=0, step=1)


def _need_known(c: Lowering, index: Val, size: int) -> None:
    """Raises NotLowered unless all positions are known to lie within [0, size)."""
    if not bounds_of(c, index).within(Bounds(0, size - 1)):
        raise NotLowered(f"{c.name} at positions that may lie outside", decompose=False)

"""Running sums and places in sorted rows: each element looks at all of a short axis."""

from __future__ import annotations

from functools import partial

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

_LONGEST = 64  # elements; the work is that number for each element, a library's is 1
_NEUTRAL = {"sum": 0, "prod": 1}


def _running(op: str, c: Lowering, a: Args) -> Result:
    """out[i] = Σ over j of (x[j] if j <= i else 0), narrow floats in fp32."""
    dtype = c.out_type.dtype
    value: Val = a["self"]
    if value.rank == 0:
        return c.cast(value, dtype)
    dim = axis(a["dim"], value.rank)
    length = extent(c, value, dim)
    if length > _LONGEST:
        raise NotLowered(f"{c.name} over {length} elements, more than {_LONGEST}", decompose=False)
    wide = c.cast(c.cast(value, dtype), dtype.compute)
    one = (*wide.shape[:dim], 1, *wide.shape[dim:])
    every = (*wide.shape[: dim + 1], length, *wide.shape[dim + 1 :])
    shape = tuple(length if d in (dim, dim + 1) else 1 for d in range(len(every)))
    here, there = (
        c.op("iota", shape=shape, dtype=str(DType.I64), dim=d, start=0, step=1)
        for d in (dim, dim + 1)
    )
    before = c.op("le", there, here)
    spread = c.expand(c.reshape(wide, one), every)
    kept = c.op("where", before, spread, c.number(_NEUTRAL[op], wide.dtype))
    return c.cast(c.op(op, kept, dims=(dim + 1,), keepdim=False), dtype)


lowers("cumsum")(partial(_running, "sum"))
lowers("cumprod")(partial(_running, "prod"))


@lowers("bucketize.Tensor")
def bucketize(c: Lowering, a: Args) -> Result:
    return _places(c, a["self"], a["boundaries"], right=a["right"])


@lowers("searchsorted.Tensor")
def searchsorted(c: Lowering, a: Args) -> Result:
    if a["sorter"] is not None:
        raise NotLowered(f"{c.name} with an order of its own", decompose=False)
    return _places(c, a["self"], a["sorted_sequence"], right=a["right"] or a["side"] == "right")


def _places(c: Lowering, value: Val, boundaries: Val, *, right: bool) -> Val:
    """How many of the boundaries lie before a value (`right`: or at it). All lie before NaN."""
    if boundaries.rank != 1 or value.dtype is not boundaries.dtype:
        raise NotLowered(f"{c.name} in rows, or in {boundaries.dtype}", decompose=False)
    count = extent(c, boundaries, 0)
    if count > _LONGEST:
        raise NotLowered(f"{c.name} in {count} values, more than {_LONGEST}", decompose=False)
    beyond = c.op("gt" if right else "ge", boundaries, c.reshape(value, (*value.shape, 1)))
    before = c.cast(c.op("logical_not", beyond), DType.I64)
    found = c.op("sum", before, dims=(value.rank,), keepdim=False)
    return c.cast(found, c.out_type.dtype)

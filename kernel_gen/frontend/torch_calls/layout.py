"""Casts, views, joins, reads at positions, and tensors made of nothing."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_gen.frontend.torch_calls.attrs import Attrs, Call, Maker

Tensor = torch.Tensor


def _cast(a: Attrs) -> Call:
    dtype = a.dtype()
    return lambda x: x.to(dtype)


def _reshape(a: Attrs) -> Call:
    shape = a.ints("shape")
    return lambda x: x.reshape(shape)


def _permute(a: Attrs) -> Call:
    dims = a.ints("dims")
    return lambda x: x.permute(dims)


def _expand(a: Attrs) -> Call:
    shape = a.ints("shape")
    return lambda x: x.expand(shape)


def _slice(a: Attrs) -> Call:
    dim, start, stop, step = (a.int(key) for key in ("dim", "start", "stop", "step"))
    if step == 1:
        return lambda x: x.narrow(dim, start, stop - start)
    window = (*[slice(None)] * dim, slice(start, stop, step))
    return lambda x: x[window]


def _flip(a: Attrs) -> Call:
    dims = a.ints("dims")
    return lambda x: x.flip(dims)


def _pad(a: Attrs) -> Call:
    pairs = zip(reversed(a.ints("low")), reversed(a.ints("high")), strict=True)
    amounts, value = [count for pair in pairs for count in pair], a.float("value")
    return lambda x: torch.constant_pad_nd(x, amounts, value)


def _concat(a: Attrs) -> Call:
    dim = a.int("dim")
    return lambda *parts: torch.cat(parts, dim)


def _gather(a: Attrs) -> Call:
    dim = a.int("dim")
    return lambda x, index: torch.gather(x, dim, index.long())


def _take(a: Attrs) -> Call:
    dim = a.int("dim")

    def take(table: Tensor, index: Tensor) -> Tensor:
        if dim == 0 and table.dim() == 2:
            return F.embedding(index, table)
        if index.dim() == 1:
            return table.index_select(dim, index)
        shape = (*table.shape[:dim], *index.shape, *table.shape[dim + 1 :])
        return table.index_select(dim, index.reshape(-1)).reshape(shape)

    return take


def _full(a: Attrs) -> Call:
    shape, value, dtype = a.ints("shape"), a.float("value"), a.dtype()
    return lambda: torch.full(shape, value, dtype=dtype)


def _iota(a: Attrs) -> Call:
    shape, dim, dtype = a.ints("shape"), a.int("dim"), a.dtype()
    start, step = a.float("start"), a.float("step")
    wide = torch.float64 if dtype.is_floating_point else torch.int64
    view = tuple(extent if i == dim else 1 for i, extent in enumerate(shape))

    def iota() -> Tensor:
        line = torch.arange(shape[dim], dtype=wide)
        if (start, step) != (0, 1):
            line = line * step + start
        line = line.to(dtype)
        return line if len(shape) == 1 else line.view(view).expand(shape)

    return iota


MAKERS: dict[str, Maker] = {
    "cast": _cast,
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "slice": _slice,
    "flip": _flip,
    "pad": _pad,
    "concat": _concat,
    "gather": _gather,
    "take": _take,
    "full": _full,
    "iota": _iota,
}

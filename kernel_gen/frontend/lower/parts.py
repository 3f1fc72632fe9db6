"""Parts of tensors: slices, splits, joins, padding, and what replaces a part."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gen.frontend.lower.core import (
    Args,
    Lowering,
    NotLowered,
    Result,
    Val,
    axis,
    extent,
    joint_dtype,
    lowers,
    symbolic,
)
from kernel_gen.ir.types import Sym


@lowers("select.int")
def select(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    dim = axis(a["dim"], value.rank)
    return c.reshape(_pick(c, value, dim, a["index"]), c.out_type.shape)


def _pick(c: Lowering, value: Val, dim: int, index: int) -> Val:
    start = index if index >= 0 else extent(c, value, dim) + index
    return c.slice(value, dim, start, start + 1)


def _resolved_start(c: Lowering, value: Val, dim: int, start: int | None) -> int:
    start = start or 0
    size = value.shape[dim]
    if isinstance(size, Sym):
        if start < 0:
            extent(c, value, dim)  # raises: the position is not known
        return start
    return min(max(start + size if start < 0 else start, 0), size)


@lowers("slice.Tensor slice_copy.Tensor")
def slice_(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    dim, step = axis(a["dim"], value.rank), a["step"]
    start = _resolved_start(c, value, dim, a["start"])
    size = c.out_type.shape[dim]
    if start == 0 and step == 1 and size == value.shape[dim]:
        return value
    if isinstance(size, Sym):
        raise symbolic(c, f"the slice's extent, which is the symbol {size.name}")
    if size == 0:
        return c.slice(value, dim, 0, 0)
    return c.slice(value, dim, start, start + (size - 1) * step + 1, step)


@lowers("narrow")
def narrow(c: Lowering, a: Args) -> Result:
    if isinstance(a["start"], Val):
        raise NotLowered(f"{c.name}: the start is a tensor", decompose=False)
    value: Val = a["self"]
    dim = axis(a["dim"], value.rank)
    start = _resolved_start(c, value, dim, a["start"])
    return c.slice(value, dim, start, start + a["length"])


@lowers(
    "chunk split.Tensor split.sizes split_with_sizes tensor_split.sections tensor_split.indices "
    "unsafe_chunk unsafe_split unsafe_split_with_sizes split_with_sizes_copy hsplit vsplit dsplit"
)
def split(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    dim = axis(a.get("dim", 0), value.rank)
    if "dim" not in a:
        dim = {"hsplit": min(1, value.rank - 1), "vsplit": 0, "dsplit": 2}[c.name.split(".")[1]]
    parts: list[Val | None] = []
    start = 0
    for used, part in zip(c.used, c.out, strict=True):
        size = 0 if part is None else part.shape[dim]
        if isinstance(size, Sym):
            raise symbolic(c, f"a part's extent, which is the symbol {size.name}")
        parts.append(c.slice(value, dim, start, start + size) if used else None)
        start += size
    return parts


@lowers("unbind.int")
def unbind(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    dim = axis(a["dim"], value.rank)
    shape = value.shape[:dim] + value.shape[dim + 1 :]
    return [
        c.reshape(_pick(c, value, dim, i), shape) if used else None for i, used in enumerate(c.used)
    ]


def concat(c: Lowering, values: Sequence[Val], dim: int) -> Val:
    """Tensors joined in their common type; legacy empty 1-d operands count for nothing."""
    rank = max(value.rank for value in values)
    dtype = joint_dtype(*values)
    kept = [v for v in values if v.rank == rank or v.shape != (0,)]
    parts = [c.cast(value, dtype) for value in kept]
    return parts[0] if len(parts) == 1 else c.op("concat", *parts, dim=axis(dim, rank))


@lowers("cat.default concat.default concatenate.default")
def cat(c: Lowering, a: Args) -> Result:
    return concat(c, a["tensors"], a["dim"])


@lowers("stack _stack")
def stack(c: Lowering, a: Args) -> Result:
    values: Sequence[Val] = a["tensors"]
    dim = axis(a["dim"], values[0].rank + 1)
    shape = values[0].shape
    parts = [c.reshape(value, (*shape[:dim], 1, *shape[dim:])) for value in values]
    return concat(c, parts, dim)


@lowers("slice_scatter")
def slice_scatter(c: Lowering, a: Args) -> Result:
    """`self` with `self[start:end]` along `dim` replaced: what lies before, `src`, what follows."""
    value: Val = a["self"]
    if a["step"] != 1:
        raise NotLowered(f"{c.name}: step {a['step']}")
    dim = axis(a["dim"], value.rank)
    source = c.cast(a["src"], value.dtype)
    length = extent(c, source, dim)
    return _insert(c, value, source, dim, _resolved_start(c, value, dim, a["start"]), length)


@lowers("select_scatter")
def select_scatter(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    dim = axis(a["dim"], value.rank)
    shape = (*value.shape[:dim], 1, *value.shape[dim + 1 :])
    source = c.reshape(c.cast(a["src"], value.dtype), shape)
    start = a["index"] if a["index"] >= 0 else a["index"] + extent(c, value, dim)
    return _insert(c, value, source, dim, start, 1)


def _insert(c: Lowering, value: Val, source: Val, dim: int, start: int, length: int) -> Val:
    size = extent(c, value, dim)
    parts = [source] if length else []
    if start > 0:
        parts.insert(0, c.slice(value, dim, 0, start))
    if start + length < size:
        parts.append(c.slice(value, dim, start + length, size))
    return parts[0] if len(parts) == 1 else c.op("concat", *parts, dim=dim)

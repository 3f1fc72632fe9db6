"""Operators that rearrange: reshapes, transposes, slices, joins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from kernel_gen.frontend.onnx.dtypes import torch_dtype
from kernel_gen.frontend.onnx.values import Call, Known, rule


@rule("Shape")
def shape(call: Call) -> Known:
    """The extents, a known value: only this makes shape arithmetic vanish from the graph."""
    extents = np.asarray(call.tensor(0).shape, dtype=np.int64)
    return extents[call.attr("start", 0) : call.attr("end", len(extents))]


@rule("Size")
def size(call: Call) -> Known:
    return np.asarray(call.tensor(0).numel(), dtype=np.int64)


@rule("Reshape")
def reshape(call: Call) -> Tensor:
    value, wanted = call.tensor(0), call.ints(1, "shape")
    if not call.attr("allowzero", 0):
        wanted = [value.shape[i] if n == 0 else n for i, n in enumerate(wanted)]
    return torch.reshape(value, wanted)


@rule("Flatten")
def flatten(call: Call) -> Tensor:
    value, axis = call.tensor(0), call.attr("axis", 1)
    axis = axis + value.ndim if axis < 0 else axis
    return value.reshape(math.prod(value.shape[:axis]), math.prod(value.shape[axis:]))


@rule("Transpose")
def transpose(call: Call) -> Tensor:
    value = call.tensor(0)
    return value.permute(list(call.attr("perm", range(value.ndim - 1, -1, -1))))


@rule("Squeeze")
def squeeze(call: Call) -> Tensor:
    value, axes = call.tensor(0), call.axes(1, since=13)
    if axes is None:
        axes = [i for i, extent in enumerate(value.shape) if extent == 1]
    return value.squeeze(tuple(axes)) if axes else value


@rule("Unsqueeze")
def unsqueeze(call: Call) -> Tensor:
    value, axes = call.tensor(0), call.axes(1, since=13) or []
    rank = value.ndim + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        value = value.unsqueeze(axis)
    return value


@rule("Expand")
def expand(call: Call) -> Tensor:
    value = call.tensor(0)
    extents = np.broadcast_shapes(tuple(value.shape), tuple(call.ints(1, "shape")))
    return value.expand(extents)


@rule("Concat")
def concat(call: Call) -> Tensor:
    return torch.cat(call.tensors(), call.attr("axis"))


@rule("Split")
def split(call: Call) -> list[Tensor]:
    value, axis = call.tensor(0), call.attr("axis", 0)
    sizes = call.axes(1, since=13, what="split")
    if sizes is None:
        pieces = call.attr("num_outputs", call.outputs)
        each = -(-value.shape[axis] // pieces)
        sizes = [each] * (pieces - 1) + [value.shape[axis] - each * (pieces - 1)]
    return list(torch.split(value, sizes, axis))


@rule("Slice")
def slice_(call: Call) -> Tensor:
    """Negative steps walk backwards, so the piece is taken forwards and flipped."""
    value = call.tensor(0)
    starts, ends = call.ints(1, "starts"), call.ints(2, "ends")
    axes = call.ints(3, "axes") if call.has(3) else list(range(len(starts)))
    steps = call.ints(4, "steps") if call.has(4) else [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        taken = range(value.shape[axis])[slice(start, _end(end, step), step)]
        value = _take(value, axis % value.ndim, taken)
    return value


def _end(end: int, step: int) -> int | None:
    """The largest negative numbers stand for "past the front" of a backward slice."""
    return None if step < 0 and end < -(1 << 31) + 1 else end


def _take(value: Tensor, axis: int, taken: range) -> Tensor:
    if len(taken) == 0:
        return value.narrow(axis, 0, 0)
    low, high = min(taken[0], taken[-1]), max(taken[0], taken[-1])
    piece = value[(slice(None),) * axis + (slice(low, high + 1, abs(taken.step)),)]
    return piece.flip(axis) if taken.step < 0 else piece


@rule("Pad")
def pad(call: Call) -> Tensor:
    value, pads = call.tensor(0), call.ints(1, "pads")
    axes = call.ints(3, "axes") if call.has(3) else list(range(value.ndim))
    mode = call.attr("mode", b"constant").decode()
    before_after = {a % value.ndim: (pads[i], pads[i + len(axes)]) for i, a in enumerate(axes)}
    if mode == "constant":
        fill = float(call.known(2, "fill").item()) if call.has(2) else 0.0
        flat = [before_after.get(axis, (0, 0)) for axis in range(value.ndim - 1, -1, -1)]
        if value.dtype is torch.bool:
            padded = F.pad(value.to(torch.uint8), list(itertools.chain(*flat)), value=fill)
            return padded.to(torch.bool)
        return F.pad(value, list(itertools.chain(*flat)), value=fill)
    for axis, (before, after) in before_after.items():
        value = value.index_select(axis, _padded_positions(value.shape[axis], before, after, mode))
    return value


def _padded_positions(extent: int, before: int, after: int, mode: str) -> Tensor:
    """Which element stands at each position of a padded axis: reflect, edge or wrap."""
    positions = np.arange(-before, extent + after)
    if mode == "edge":
        positions = positions.clip(0, extent - 1)
    elif mode == "wrap":
        positions = positions % extent
    elif extent > 1:
        period = 2 * (extent - 1)
        positions = positions % period
        positions = np.where(positions < extent, positions, period - positions)
    else:
        positions = np.zeros_like(positions)
    return torch.tensor(positions)


@rule("Tile")
def tile(call: Call) -> Tensor:
    return call.tensor(0).repeat(call.ints(1, "repeats"))


@rule("DepthToSpace")
def depth_to_space(call: Call) -> Tensor:
    value, block = call.tensor(0), call.attr("blocksize")
    n, c, h, w = value.shape
    rest = c // block**2
    if call.attr("mode", b"DCR") == b"CRD":
        parts = value.reshape(n, rest, block, block, h, w).permute(0, 1, 4, 2, 5, 3)
    else:
        parts = value.reshape(n, block, block, rest, h, w).permute(0, 3, 4, 1, 5, 2)
    return parts.reshape(n, rest, h * block, w * block)


@rule("SpaceToDepth")
def space_to_depth(call: Call) -> Tensor:
    value, block = call.tensor(0), call.attr("blocksize")
    n, c, h, w = value.shape
    parts = value.reshape(n, c, h // block, block, w // block, block).permute(0, 3, 5, 1, 2, 4)
    return parts.reshape(n, c * block**2, h // block, w // block)


@rule("CenterCropPad")
def center_crop_pad(call: Call) -> Tensor:
    value, wanted = call.tensor(0), call.ints(1, "shape")
    axes = call.attr("axes") or range(value.ndim)
    for axis, extent in zip(axes, wanted, strict=True):
        value = _centred(value, axis % value.ndim, extent)
    return value


def _centred(value: Tensor, axis: int, extent: int) -> Tensor:
    have = value.shape[axis]
    if have >= extent:
        return value.narrow(axis, (have - extent) // 2, extent)
    missing = extent - have
    pads = [0, 0] * (value.ndim - 1 - axis) + [missing // 2, missing - missing // 2]
    return F.pad(value, pads)


@rule("Trilu")
def trilu(call: Call) -> Tensor:
    value = call.tensor(0)
    k = int(call.known(1, "diagonal").item()) if call.has(1) else 0
    if 0 in value.shape:
        return value
    return torch.triu(value, k) if call.attr("upper", 1) else torch.tril(value, k)


@rule("ConstantOfShape")
def constant_of_shape(call: Call) -> Tensor:
    value = call.attr("value")
    extents: Sequence[int] = call.ints(0, "shape")
    if value is None:
        return torch.zeros(tuple(extents))
    return torch.tensor(value.reshape(())).expand(tuple(extents)).clone()


@rule("Range")
def range_(call: Call) -> Tensor:
    start, limit, step = (call.known(i, "bounds").item() for i in range(3))
    return torch.arange(start, limit, step, dtype=call.tensor(0).dtype)


@rule("EyeLike")
def eye_like(call: Call) -> Tensor:
    value, code = call.tensor(0), call.attr("dtype")
    dtype = value.dtype if code is None else torch_dtype(code, "the result of EyeLike")
    rows, columns = value.shape
    offset = torch.arange(columns)[None, :] - torch.arange(rows)[:, None]
    diagonal: Tensor = offset == call.attr("k", 0)
    return diagonal.to(dtype)

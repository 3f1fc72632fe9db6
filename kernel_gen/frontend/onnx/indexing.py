"""Operators that read or write by index."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from kernel_gen.frontend.onnx.values import Call, rule

_SCATTER = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


@rule("Gather")
def gather(call: Call) -> Tensor:
    """Negative indices count from the end."""
    value, axis = call.tensor(0), call.attr("axis", 0) % call.tensor(0).ndim
    index = _counted(call, 1, value.shape[axis])
    taken = value.index_select(axis, index.reshape(-1))
    shape = (*value.shape[:axis], *index.shape, *value.shape[axis + 1 :])
    return torch.reshape(taken, shape)


def _counted(call: Call, position: int, extent: int) -> Tensor:
    """Indices from the front; known ones are counted here and now."""
    operand = call.operands[position]
    if isinstance(operand, np.ndarray):
        return torch.tensor(operand.astype("int64") % max(extent, 1))
    index = call.tensor(position).to(torch.int64)
    return torch.where(index < 0, index + extent, index)


@rule("GatherElements")
def gather_elements(call: Call) -> Tensor:
    value, axis = call.tensor(0), call.attr("axis", 0)
    return torch.gather(value, axis, _counted(call, 1, value.shape[axis]))


@rule("GatherND")
def gather_nd(call: Call) -> Tensor:
    value, index, batch = call.tensor(0), call.tensor(1), call.attr("batch_dims", 0)
    depth = index.shape[-1]
    rank = index.ndim - 1 - batch
    lead = tuple(
        torch.arange(n).reshape([-1 if d == axis else 1 for d in range(batch)] + [1] * rank)
        for axis, n in enumerate(value.shape[:batch])
    )
    coordinates = tuple(
        torch.where(c < 0, c + value.shape[batch + i], c)
        for i, c in enumerate(index[..., i] for i in range(depth))
    )
    return value[(*lead, *coordinates)]


@rule("ScatterElements", "Scatter")
def scatter_elements(call: Call) -> Tensor:
    value, axis = call.tensor(0), call.attr("axis", 0)
    index, updates = _counted(call, 1, value.shape[axis]), call.tensor(2)
    how = call.attr("reduction", b"none").decode()
    if how == "none":
        return value.scatter(axis, index, updates)
    return value.scatter_reduce(axis, index, updates, _SCATTER[how], include_self=True)


@rule("ScatterND")
def scatter_nd(call: Call) -> Tensor:
    value, index, updates = call.tensors()
    how = call.attr("reduction", b"none").decode()
    depth = index.shape[-1]
    extents = value.shape[:depth]
    place = torch.zeros(index.shape[:-1], dtype=torch.int64)
    for axis in range(depth):
        at = index[..., axis]
        place = place * extents[axis] + torch.where(at < 0, at + extents[axis], at)
    rows = value.reshape(-1, *value.shape[depth:])
    place = place.reshape(-1)
    new = updates.reshape(-1, *value.shape[depth:])
    if how == "none":
        return rows.index_copy(0, place, new).reshape(value.shape)
    spread = place.reshape(-1, *[1] * (new.ndim - 1)).expand_as(new)
    return rows.scatter_reduce(0, spread, new, _SCATTER[how]).reshape(value.shape)


@rule("OneHot")
def one_hot(call: Call) -> Tensor:
    index, depth = call.tensor(0), int(call.known(1, "depth").item())
    off, on = call.tensor(2)[0], call.tensor(2)[1]
    axis = call.attr("axis", -1) % (index.ndim + 1)
    index = index.to(torch.int64)
    index = torch.where(index < 0, index + depth, index).unsqueeze(axis)
    extents = [1] * index.ndim
    extents[axis] = depth
    return torch.where(index == torch.arange(depth).reshape(extents), on, off)


@rule("Compress")
def compress(call: Call) -> Tensor:
    value, axis = call.tensor(0), call.attr("axis")
    kept = call.known(1, "condition").astype(bool).nonzero()[0]
    source = value.reshape(-1) if axis is None else value
    return source.index_select(0 if axis is None else axis, torch.tensor(kept))


@rule("ReverseSequence")
def reverse_sequence(call: Call) -> Tensor:
    value, lengths = call.tensor(0), call.tensor(1)
    batch, time = call.attr("batch_axis", 1), call.attr("time_axis", 0)
    extents = [1] * value.ndim
    extents[time] = -1
    step = torch.arange(value.shape[time]).reshape(extents)
    extents[time], extents[batch] = 1, -1
    length = lengths.reshape(extents)
    source = torch.where(step < length, length - 1 - step, step)
    return torch.gather(value, time, source.expand_as(value))

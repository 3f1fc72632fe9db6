"""Sequences of tensors, as loops of exported models build them. Their lengths are always known."""

from __future__ import annotations

import numpy as np
import torch

from kernel_gen.frontend.onnx.values import Call, Items, Known, Result, as_tensor, rule


@rule("SequenceEmpty")
def sequence_empty(call: Call) -> Items:
    return Items()


@rule("SequenceConstruct")
def sequence_construct(call: Call) -> Items:
    return Items(tuple(_member(call, position) for position in range(len(call))))


@rule("SequenceInsert")
def sequence_insert(call: Call) -> Items:
    found = list(call.items(0).values)
    place = _place(call, 2, len(found) + 1) if call.has(2) else len(found)
    found.insert(place, _member(call, 1))
    return Items(tuple(found))


@rule("SequenceErase")
def sequence_erase(call: Call) -> Items:
    found = list(call.items(0).values)
    del found[_place(call, 1, len(found)) if call.has(1) else -1]
    return Items(tuple(found))


@rule("SequenceAt")
def sequence_at(call: Call) -> Result:
    found = call.items(0).values
    return found[_place(call, 1, len(found))]


@rule("SequenceLength")
def sequence_length(call: Call) -> Known:
    return np.asarray(len(call.items(0).values), np.int64)


@rule("ConcatFromSequence")
def concat_from_sequence(call: Call) -> torch.Tensor:
    found = [as_tensor(v) if isinstance(v, np.ndarray) else v for v in call.items(0).values]
    if not found:
        raise call.refuse("its sequence is empty")
    join = torch.stack if call.attr("new_axis", 0) else torch.cat
    return join(found, int(call.attr("axis")))


@rule("SplitToSequence")
def split_to_sequence(call: Call) -> Items:
    """Parts of given sizes; without sizes single elements, whose axis may be dropped."""
    value, axis = call.tensor(0), int(call.attr("axis", 0))
    if not call.has(1):
        parts = torch.split(value, 1, axis)
        kept = bool(call.attr("keepdims", 1))
        return Items(tuple(part if kept else part.squeeze(axis) for part in parts))
    sizes = call.known(1, "sizes")
    wanted = int(sizes) if sizes.ndim == 0 else [int(size) for size in sizes]
    return Items(tuple(torch.split(value, wanted, axis)))


def _member(call: Call, position: int) -> torch.Tensor | Known:
    value = call.operands[position]
    return value if isinstance(value, np.ndarray) else call.tensor(position)


def _place(call: Call, position: int, length: int) -> int:
    """A position within a sequence, which may count from its end."""
    (place,) = call.ints(position, "position")
    if not -length <= place < length:
        raise call.refuse(f"position {place} of {length}")
    return place % length

"""Which memory eager's results have: their own, an input's, or that of another result.

Read off the program as first exported, where tracing has given every tensor the storage that eager
would give it, in-place operators included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.export.graph_signature import TensorArgument

from kernel_gen.errors import UnsupportedModel


@dataclass(frozen=True, slots=True)
class ResultLayout:
    """Memory of one tensor result. `owner` is the placeholder whose storage it shows, if any.

    `is_owner`: it is that very tensor. `offset` (elements) counts from the owner's first element.
    """

    storage: int
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None  # None: contiguous, or symbolic
    owner: str | None
    is_owner: bool
    offset: int


def result_layouts(program: torch.export.ExportedProgram) -> tuple[ResultLayout | None, ...]:
    """One entry per leaf of the result; None for what is no tensor."""
    nodes = {node.name: node for node in program.graph.nodes}
    owners: dict[int, fx.Node] = {}
    for node in program.graph.nodes:
        if node.op == "placeholder" and isinstance(node.meta.get("val"), torch.Tensor):
            owners.setdefault(_storage(node), node)
    return tuple(
        _layout(nodes[spec.arg.name], owners) if isinstance(spec.arg, TensorArgument) else None
        for spec in program.graph_signature.output_specs
    )


def _layout(node: fx.Node, owners: dict[int, fx.Node]) -> ResultLayout:
    fake = node.meta["val"]
    storage = _storage(node)
    origin = _same_tensor(node)
    owner = origin if origin.op == "placeholder" else owners.get(storage)
    is_owner = origin.op == "placeholder"
    shape: tuple[int, ...] = ()
    offset = 0
    if owner is not None and not is_owner:
        base = owner.meta["val"].storage_offset()
        shape, offset = _static(fake.shape), _static((fake.storage_offset() - base,))[0]
        if not fake.is_contiguous():
            _static(fake.stride())
    return ResultLayout(
        storage, shape, _strides(fake), None if owner is None else owner.name, is_owner, offset
    )


def _same_tensor(node: fx.Node) -> fx.Node:
    """The node behind operators that give back the tensor they write to, in place or as `out`."""
    while (written := _given_back(node)) is not None:
        node = written
    return node


def _given_back(node: fx.Node) -> fx.Node | None:
    """The argument that the node's one result is."""
    if not isinstance(node.target, torch._ops.OpOverload) or not node.target._schema.is_mutable:
        return None
    schema = node.target._schema
    result = schema.returns[0].alias_info if len(schema.returns) == 1 else None
    if result is None:
        return None
    for position, argument in enumerate(schema.arguments):
        alias = argument.alias_info
        if alias is not None and alias.is_write and alias.before_set == result.before_set:
            given = node.args[position : position + 1] or (node.kwargs.get(argument.name),)
            return given[0] if isinstance(given[0], fx.Node) else None
    return None


def _storage(node: fx.Node) -> int:
    tensor = node.meta["val"]
    if tensor.layout != torch.strided:
        return id(node)
    return int(tensor.untyped_storage()._cdata)


def _static(numbers: Any) -> tuple[int, ...]:
    if any(isinstance(number, torch.SymInt) for number in numbers):
        raise UnsupportedModel(
            "the model returns a view of an input with symbolic extents; return a copy "
            "(.clone()), or capture with static shapes"
        )
    return tuple(int(number) for number in numbers)


def _strides(fake: torch.Tensor) -> tuple[int, ...] | None:
    if fake.layout != torch.strided or fake.is_contiguous():
        return None
    strides = fake.stride()
    if any(isinstance(stride, torch.SymInt) for stride in strides):
        return None
    return tuple(int(stride) for stride in strides)

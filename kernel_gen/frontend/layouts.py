"""Which memory eager's results have: their own, an input's, or that of another result.

Read off the program as first exported, where tracing has given every tensor the storage that eager
would give it, in-place operators included.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch.export.graph_signature import TensorArgument

from kernel_gen.errors import UnsupportedModel
from kernel_gen.ir.types import contiguous_strides


@dataclass(frozen=True, slots=True)
class ResultLayout:
    """Memory of one tensor result. `owner` is the placeholder whose storage it shows, if any.

    `is_owner`: it is that very tensor. `offset` (elements) counts from the owner's first element,
    without an owner from that of the storage. Symbolic results without an owner have no shape.
    """

    storage: int
    dtype: torch.dtype
    shape: tuple[int, ...] | None
    strides: tuple[int, ...] | None  # None: contiguous, or symbolic
    owner: str | None
    is_owner: bool
    offset: int

    @property
    def numel(self) -> int:
        return math.prod(self.shape or ())

    @property
    def steps(self) -> tuple[int, ...]:
        """Strides of a result with a shape."""
        return self.strides or contiguous_strides(self.shape or ())

    @property
    def span(self) -> int:
        """Elements of memory from its first to its last."""
        pairs = zip(self.shape or (), self.steps, strict=True)
        return 1 + sum((extent - 1) * step for extent, step in pairs)


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
    shape: tuple[int, ...] | None = None
    offset = 0
    if owner is not None and not is_owner:
        base = owner.meta["val"].storage_offset()
        shape, offset = _static(fake.shape), _static((fake.storage_offset() - base,))[0]
        if not fake.is_contiguous():
            _static(fake.stride())
    elif owner is None and _is_static(fake):
        shape, offset = _static(fake.shape), int(fake.storage_offset())
    return ResultLayout(
        storage,
        fake.dtype,
        shape,
        _strides(fake),
        None if owner is None else owner.name,
        is_owner,
        offset,
    )


def _is_static(fake: torch.Tensor) -> bool:
    if fake.layout != torch.strided:
        return False
    numbers = (*fake.shape, *fake.stride(), fake.storage_offset())
    return not any(isinstance(number, torch.SymInt) for number in numbers)


def bases(layouts: Sequence[ResultLayout | None]) -> dict[int, int]:
    """Positions of results that show memory of another result -> that one, which has no gaps:
    {1: 0} for `h, h[:, 0]`."""
    fresh = {
        i: held
        for i, held in enumerate(layouts)
        if held is not None and held.owner is None and held.shape is not None
    }
    whole: dict[int, int] = {}
    for i, held in fresh.items():
        if held.offset == 0 and held.span == held.numel > 0:
            whole.setdefault(held.storage, i)
    found = {}
    for i, held in fresh.items():
        base = whole.get(held.storage, i)
        if fresh[base] != held and held.numel and _is_within(held, fresh[base]):
            found[i] = base
    return found


def _is_within(held: ResultLayout, base: ResultLayout) -> bool:
    return held.dtype is base.dtype and held.offset + held.span <= base.numel


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

"""Binding a plan to its constants: weights laid out as kernels read them, constant nodes folded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kernel_gen.errors import InvalidInput
from kernel_gen.frontend.dtypes import to_torch
from kernel_gen.frontend.torch_run import constant_tensor, copy_with_strides, run
from kernel_gen.fusion.group import FrameworkGroup
from kernel_gen.fusion.region import constant_values
from kernel_gen.ir.fused_convolution import fused_convolution
from kernel_gen.ir.target import DeviceKind
from kernel_gen.ir.types import TensorType, static_shape
from kernel_gen.runtime.layout import constant_inputs, mutated_inputs
from kernel_gen.runtime.plan import Plan

Environment = dict[int, torch.Tensor]


@dataclass(frozen=True, slots=True)
class BoundConstants:
    """Constants of one binding.

    `tensors` holds every constant value; bound inputs are the caller's own tensors. `pointers`
    are tensors whose storage `gaf_create` takes, in the layout that kernels read.
    `snapshots` are positions among the bound tensors whose content was copied: packed, laid out
    anew, folded or taken to an NPU. When one of these is written to, the plan must be bound again.
    `library` are the groups, by their nodes, that the library runs as one call with such a weight.
    """

    tensors: dict[int, torch.Tensor]
    pointers: tuple[torch.Tensor, ...]
    snapshots: frozenset[int]
    library: frozenset[tuple[int, ...]]


def bind_constants(plan: Plan, constants: Sequence[torch.Tensor]) -> BoundConstants:
    """Checks and prepares `constants`, one per non-user input of the program, in order."""
    values = constant_inputs(plan.program)
    if len(values) != len(constants):
        raise InvalidInput(f"the plan binds {len(values)} constants, got {len(constants)}")
    written, weights = mutated_inputs(plan.program), _library_weights(plan)
    tensors: dict[int, torch.Tensor] = {}
    for position, (value, tensor) in enumerate(zip(values, constants, strict=True)):
        check_tensor(f"constant {position}", tensor, plan.program.type_of(value))
        tensors[value] = tensor.detach()
    for constant in plan.program.constants:
        unaligned = constant_tensor(constant, plan.program.type_of(constant.value))
        tensors[constant.value] = unaligned.clone()
    with torch.no_grad(), torch.inference_mode(False):
        run(plan.program, plan.layout.folded, tensors)
        pointers = {v: _laid_out(plan, v, tensors[v], written) for v in plan.layout.constants}
    copied = _copied(plan, written).union(weights.values())
    copied |= {value for value, tensor in pointers.items() if tensor is not tensors[value]}
    snapshots = frozenset(i for i, value in enumerate(values) if value in copied)
    return BoundConstants(tensors, tuple(pointers.values()), snapshots, frozenset(weights))


def check_tensor(what: str, tensor: torch.Tensor, type_: TensorType) -> None:
    """Raises InvalidInput unless `tensor` is a CPU tensor of the dtype and shape of `type_`."""
    shape = static_shape(type_.shape)
    if tensor.dtype != to_torch(type_.dtype) or tuple(tensor.shape) != shape:
        raise InvalidInput(
            f"{what}: expected {to_torch(type_.dtype)} {shape}, "
            f"got {tensor.dtype} {tuple(tensor.shape)}"
        )
    if tensor.device.type != "cpu" or tensor.layout != torch.strided or tensor.is_neg():
        raise InvalidInput(
            f"{what}: expected a plain dense CPU tensor, got {tensor.layout} on {tensor.device}"
            + (", negated lazily: call resolve_neg()" if tensor.is_neg() else "")
        )


def has_layout(tensor: torch.Tensor, type_: TensorType) -> bool:
    """Whether the strides are those of `type_`, where they matter (extents above 1)."""
    if tensor.numel() == 0:
        return True
    pairs = zip(tensor.shape, tensor.stride(), type_.element_strides, strict=True)
    return all(extent == 1 or ours == theirs for extent, ours, theirs in pairs)


def with_layout(tensor: torch.Tensor, type_: TensorType) -> torch.Tensor:
    """`tensor` itself if it has the layout of `type_`, else a copy that has."""
    return tensor if has_layout(tensor, type_) else copy_in_layout(tensor, type_)


def copy_in_layout(tensor: torch.Tensor, type_: TensorType) -> torch.Tensor:
    """A copy of `tensor` with the strides of `type_`."""
    return copy_with_strides(tensor, type_.element_strides)


def _laid_out(
    plan: Plan, value: int, tensor: torch.Tensor, written: frozenset[int]
) -> torch.Tensor:
    type_ = plan.program.type_of(value)
    if value in written and not has_layout(tensor, type_):
        raise InvalidInput(
            f"a bound tensor that the program writes has strides {tensor.stride()}, "
            f"the plan expects {type_.element_strides}"
        )
    return with_layout(tensor, type_)


def _copied(plan: Plan, written: frozenset[int]) -> set[int]:
    """Constants that are copied in any layout: packed, folded, or taken to an NPU."""
    packed = {k.operands[p.operand] for k in plan.kernels for p in k.source.packs}
    folded = {v for node in plan.layout.folded for v in plan.program.nodes[node].inputs}
    moved = set(plan.layout.constants) - written if plan.target.kind is DeviceKind.ASCEND else set()
    return packed | folded | moved


def _library_weights(plan: Plan) -> dict[tuple[int, ...], int]:
    """The constants that the library packs for groups that it runs as one call, by their nodes."""
    fixed = constant_values(plan.program)
    found: dict[tuple[int, ...], int] = {}
    for group in plan.cover.groups:
        if not isinstance(group, FrameworkGroup):
            continue
        fused = fused_convolution(plan.program, group.nodes)
        weight = None if fused is None else plan.program.nodes[fused.convolution].inputs[1]
        if weight in fixed:
            found[group.nodes] = weight
    return found

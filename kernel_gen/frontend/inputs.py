"""Inputs of an exported program: arguments, weights, constants, and how to find them again."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch.export.graph_signature import InputKind as ExportKind

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend import framework
from kernel_gen.frontend.captured import (
    KIND_OF_BINDING,
    Binding,
    BufferName,
    ConstantTensor,
    ParameterName,
    UserLeaf,
)
from kernel_gen.frontend.lower.core import Pair, Val
from kernel_gen.frontend.reading import Reading

LITERAL_BYTES = 64 << 10  # constants of the program kept in the graph itself, all together


def read_inputs(state: Reading) -> None:
    """Adds the inputs that something reads or writes, and all tensor arguments."""
    placeholders = [node for node in state.program.graph.nodes if node.op == "placeholder"]
    seen: dict[object, fx.Node] = {}
    room = LITERAL_BYTES
    mutated = _mutated_names(state.program)
    for node, spec in zip(placeholders, state.program.graph_signature.input_specs, strict=True):
        value = node.meta.get("val")
        if spec.kind is ExportKind.USER_INPUT:
            _read_argument(state, node, value)
            continue
        if not node.users and spec.target not in mutated:
            continue
        tensor, binding = _stored(state.program, spec)
        if node.name in state.literals and tensor.nbytes <= room:
            room -= tensor.nbytes
            state.values[node] = _literal(state, tensor)
            continue
        key = _identity(tensor)
        if key in seen:
            state.values[node] = state.values[seen[key]]
            state.input_of[node.name] = state.input_of[seen[key].name]
            continue
        seen[key] = node
        _add_input(state, node, value, binding)


def _mutated_names(program: torch.export.ExportedProgram) -> set[object]:
    return {spec.target for spec in program.graph_signature.output_specs if spec.target}


def _read_argument(state: Reading, node: fx.Node, value: object) -> None:
    position = len(state.leaves)
    state.leaves.append(value)
    if isinstance(value, torch.Tensor):
        if not node.users and framework.unsupported_tensor(value):
            return  # nothing reads it
        _add_input(state, node, value, UserLeaf(position))
    elif isinstance(value, torch.SymInt | torch.SymFloat):
        raise UnsupportedModel("a symbolic number as an argument; pass it as a constant")


def _add_input(state: Reading, node: fx.Node, value: Any, binding: Binding) -> None:
    reason = framework.unsupported_tensor(value)
    if reason is not None:
        raise UnsupportedModel(
            f"input {node.name}: {reason} is not supported; convert it, or leave the model eager"
        )
    name = "" if isinstance(binding, UserLeaf) else binding.name
    type = state.symbols.boundary_type(value)
    made = state.builder.input(type, KIND_OF_BINDING[binding.__class__], name=name or node.name)
    state.values[node] = Val(made, type)
    state.input_of[node.name] = len(state.bindings)
    state.bindings.append(binding)


def _stored(program: torch.export.ExportedProgram, spec: Any) -> tuple[torch.Tensor, Binding]:
    """The tensor of a parameter, buffer or constant, and how to find it again."""
    name = spec.target
    if spec.kind is ExportKind.PARAMETER:
        return program.state_dict[name], ParameterName(name)
    if spec.kind is ExportKind.BUFFER:
        held = program.state_dict if spec.persistent else program.constants
        return held[name], BufferName(name)
    found = program.constants.get(name)
    if spec.kind is ExportKind.CONSTANT_TENSOR and isinstance(found, torch.Tensor):
        return found, ConstantTensor(name, found)
    raise UnsupportedModel(f"input {name} of kind {spec.kind} is no tensor; pass tensors only")


def _identity(tensor: torch.Tensor) -> object:
    """Equal for two names of one weight."""
    if tensor.numel() == 0 or tensor.layout != torch.strided:
        return id(tensor)
    return (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride())


def _literal(state: Reading, tensor: torch.Tensor) -> Val:
    """A tensor written in the program: a number as `full`, others as a constant."""
    if tensor.is_complex():
        pairs = torch.view_as_real(tensor.resolve_conj())
        held = state.lowering.val(state.builder.constant(to_numpy(pairs)))
        return Pair(held.id, held.type)
    type = state.symbols.type(tensor)
    if tensor.dim() == 0:
        return state.lowering.number(tensor.item(), type.dtype)
    return state.lowering.val(state.builder.constant(to_numpy(tensor)))


def to_numpy(tensor: torch.Tensor) -> Any:
    """A contiguous array; bfloat16 becomes ml_dtypes.bfloat16."""
    plain = tensor.detach().cpu().contiguous()
    if plain.dtype is torch.bfloat16:
        import ml_dtypes

        return plain.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return plain.numpy()

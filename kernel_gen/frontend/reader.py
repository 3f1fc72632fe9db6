"""Reads an exported program into a graph, one call at a time."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx

import kernel_gen.frontend.lower  # noqa: F401  registers the rules
from kernel_gen.errors import InvalidGraph, UnsupportedModel
from kernel_gen.frontend import framework
from kernel_gen.frontend.arguments import bind, holds_symbol
from kernel_gen.frontend.complex_values import as_pairs, reads_or_gives_complex
from kernel_gen.frontend.inputs import read_inputs
from kernel_gen.frontend.left_to_torch import framework_node
from kernel_gen.frontend.lower.core import Lowering, LoweringRule, NotLowered, Val, rule_for
from kernel_gen.frontend.reading import Reading
from kernel_gen.frontend.symbols import Symbols
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.types import TensorType

_CHECKS = ("_assert", "sym_constrain_range", "_functional_assert", "_functional_sym_constrain")
# Operators whose extents among the arguments only restate the result's shape.
_SHAPE_TAKING = frozenset(
    [
        "view",
        "reshape",
        "_unsafe_view",
        "_reshape_alias",
        "expand",
        "expand_copy",
        "broadcast_to",
        "unflatten",
        "slice",
        "arange",
        "full",
        "zeros",
        "ones",
        "empty",
        "new_full",
        "new_zeros",
        "new_ones",
        "new_empty",
    ]
)


def without_rule(program: torch.export.ExportedProgram) -> set[torch._ops.OpOverload]:
    """Operators of the program, in functional form, that no lowering knows."""
    targets = {node.target for node in program.graph.nodes if node.op == "call_function"}
    overloads = {_functional(t) for t in targets if isinstance(t, torch._ops.OpOverload)}
    return {t for t in overloads if _rule(t) is None}


def _functional(target: torch._ops.OpOverload) -> torch._ops.OpOverload:
    """The form that does not write: aten.mul_.Tensor -> aten.mul.Tensor."""
    namespace, packet = target._schema.name.split("::")
    if not target._schema.is_mutable or namespace != "aten" or not packet.endswith("_"):
        return target
    plain = getattr(torch.ops.aten, packet[:-1], None)
    found = getattr(plain, target._overloadname or "default", None)
    return found if isinstance(found, torch._ops.OpOverload) else target


def _rule(target: torch._ops.OpOverload, *, pairs: bool = False) -> LoweringRule | None:
    namespace, packet = target._schema.name.split("::")
    if namespace not in ("aten", "prims"):
        return None
    return rule_for(packet, target._overloadname, pairs=pairs)


def read(
    program: torch.export.ExportedProgram, literals: frozenset[str], *, final: bool
) -> Reading:
    """Inputs and nodes of the program; outputs are the caller's. Raises UnsupportedModel.

    Unless `final`, it stops at a call that cannot be held as it is but that torch may decompose.
    """
    builder = GraphBuilder()
    symbols = Symbols(builder, dict(program.range_constraints))
    state = Reading(program, literals, builder, symbols, Lowering(builder))
    read_inputs(state)
    for node in program.graph.nodes:
        if node.op == "call_function" and not state.is_partial:
            _read_call(state, node, final=final)
    return state


def _read_call(state: Reading, node: fx.Node, *, final: bool) -> None:
    target = node.target
    if target is operator.getitem and isinstance(node.args[0], fx.Node):
        parts = state.values.get(node.args[0])
        if isinstance(parts, tuple):
            part = parts[int(node.args[1])]  # type: ignore[arg-type]
            if part is not None:
                state.values[node] = part
        return
    value = node.meta.get("val")
    if not _has_tensor(value):
        _check_without_tensor(node, value)
        return
    if not isinstance(target, torch._ops.OpOverload):
        raise UnsupportedModel(
            f"operator {target} (control flow or a wrapped region) cannot be captured; "
            "leave this part of the model in eager mode"
        )
    _describe(state, node, value)
    try:
        state.values[node] = as_pairs(_lowered(state, node, target), value)
    except NotLowered as refusal:
        state.refused.setdefault(target, refusal)
        try:
            made = framework_node(state, node, target, refusal)
            state.values[node] = as_pairs(made, value)
        except UnsupportedModel:
            if final or not refusal.decompose:
                raise
            state.is_partial = True


def _has_tensor(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(isinstance(item, torch.Tensor) for item in value)
    return isinstance(value, torch.Tensor)


def _check_without_tensor(node: fx.Node, value: object) -> None:
    """Shape arithmetic is read where it is used; assertions on shapes are guards already."""
    name = str(node.target)
    if value is None and not any(check in name for check in _CHECKS):
        raise UnsupportedModel(f"operator {name} gives no tensor; it cannot be captured")


def _describe(state: Reading, node: fx.Node, value: Any) -> None:
    """Tells the lowering what torch computed: types of the results, which of them are read."""
    tensors = list(value) if isinstance(value, list | tuple) else [value]
    lowering = state.lowering
    lowering.name = str(node.target)
    lowering.label = _label(node)
    lowering.out = tuple(_type_or_none(state, tensor) for tensor in tensors)
    if isinstance(value, list | tuple):
        read = {
            user.args[1] for user in node.users if user.target is operator.getitem and user.users
        }
        lowering.used = tuple(i in read for i in range(len(tensors)))
    else:
        lowering.used = (True,)


def _type_or_none(state: Reading, tensor: object) -> TensorType | None:
    if not isinstance(tensor, torch.Tensor):
        return None
    if framework.unsupported_tensor(tensor, pairs=True):
        return None
    return state.symbols.type(tensor)


def _label(node: fx.Node) -> str:
    """A name for people: `encoder.layer.0.attention/linear_3`."""
    stack = node.meta.get("nn_module_stack") or {}
    paths = [path for path, _ in stack.values()] if isinstance(stack, Mapping) else []
    path = str(paths[-1]) if paths else ""
    return f"{path}/{node.name}" if path and not path.startswith("L[") else node.name


def _lowered(
    state: Reading, node: fx.Node, target: torch._ops.OpOverload
) -> Val | tuple[Val | None, ...]:
    pairs = reads_or_gives_complex(node)
    rule = _rule(target, pairs=pairs)
    if rule is None and pairs:
        raise NotLowered(f"{target} has no form on complex numbers", decompose=False)
    if rule is None:
        raise _refusal(target, bind(state, node, target))
    if any(
        used and kind is None
        for used, kind in zip(state.lowering.used, state.lowering.out, strict=True)
    ):
        raise NotLowered(f"{target} gives a type that the graph has no name for", decompose=False)
    arguments = bind(state, node, target)
    packet = target._schema.name.split("::")[1]
    if packet not in _SHAPE_TAKING and holds_symbol(list(arguments.values())):
        raise UnsupportedModel(f"{target} computes with a symbolic extent; use static shapes")
    try:
        result = rule(state.lowering, arguments)
    except InvalidGraph as error:
        raise NotLowered(f"{target}: {error}") from error
    found = (result,) if isinstance(result, Val) else tuple(result)
    _check_types(state.lowering, found)
    return found[0] if isinstance(result, Val) else found  # type: ignore[return-value]


def _refusal(target: torch._ops.OpOverload, arguments: Mapping[str, Any]) -> NotLowered:
    # Recurrent layers and attention draw random numbers for dropout only.
    drops = all(arguments.get(name, True) for name in ("train", "dropout", "dropout_p"))
    if torch.Tag.nondeterministic_seeded in target.tags and drops:
        return NotLowered(f"{target} draws random numbers", code="random", decompose=False)
    return NotLowered(f"{target} has no form in primitives")


def _check_types(lowering: Lowering, found: Sequence[Val | None]) -> None:
    for value, expected in zip(found, lowering.out, strict=True):
        if value is None or expected is None:
            continue
        if (value.dtype, value.shape) != (expected.dtype, expected.shape):
            raise NotLowered(
                f"{lowering.name}: the lowering gives {value.dtype}{list(value.shape)}, torch "
                f"{expected.dtype}{list(expected.shape)}",
                code="type-mismatch",
                decompose=False,
            )

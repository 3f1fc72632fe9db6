"""Calls that no lowering writes: nodes that torch runs."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend import framework
from kernel_gen.frontend.arguments import bind
from kernel_gen.frontend.lower.core import NotLowered, Val
from kernel_gen.frontend.reading import Reading
from kernel_gen.ir.types import Sym, TensorType


def framework_node(
    state: Reading, node: fx.Node, target: torch._ops.OpOverload, refusal: NotLowered
) -> Val | tuple[Val | None, ...]:
    """A node that torch runs. All results must have a type that the graph can name."""
    name = str(target)
    types = _result_types(state, node, name)
    if not framework.is_allowed(name):
        raise UnsupportedModel(f"operator {name} cannot be part of a graph: {refusal.sentence}")
    inputs: list[Val] = []

    def position(argument: Any) -> int | None:
        if isinstance(argument, Sym):
            raise UnsupportedModel(
                f"{name} takes the symbolic extent {argument.name}; capture with static shapes"
            )
        if not isinstance(argument, Val):
            return None
        inputs.append(argument)
        return len(inputs) - 1

    bound = bind(state, node, target)
    keywords = {a.name for a in target._schema.arguments if a.kwarg_only}
    encoded = framework.encode(
        [value for key, value in bound.items() if key not in keywords],
        {key: value for key, value in bound.items() if key in keywords},
        position,
    )
    made = state.builder.op(
        "framework",
        *(value.id for value in inputs),
        out_types=types,
        name=state.lowering.label,
        target=name,
        args=encoded,
        code=refusal.code,
        sentence=refusal.sentence,
    )
    results = tuple(state.lowering.val(value) for value in made)
    return results if isinstance(node.meta["val"], list | tuple) else results[0]


def _result_types(state: Reading, node: fx.Node, name: str) -> list[TensorType]:
    types = [type for type in state.lowering.out if type is not None]
    if len(types) < len(state.lowering.out):
        raise UnsupportedModel(
            f"operator {name} gives {_strange_types(node)}, which the graph cannot hold; "
            "leave this part of the model in eager mode"
        )
    return types


def _strange_types(node: fx.Node) -> str:
    value = node.meta.get("val")
    tensors = value if isinstance(value, list | tuple) else [value]
    reasons = [
        framework.unsupported_tensor(t) if isinstance(t, torch.Tensor) else f"a {type(t).__name__}"
        for t in tensors
    ]
    return ", ".join(reason for reason in reasons if reason)

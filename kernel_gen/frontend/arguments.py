"""Arguments of a call of an exported program, by the names of its operator's schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend.reading import Reading
from kernel_gen.ir.types import Sym


def bind(state: Reading, node: fx.Node, target: torch._ops.OpOverload) -> dict[str, Any]:
    """Arguments by the schema's names, defaults filled in, tensors as Val."""
    bound: dict[str, Any] = {}
    for i, argument in enumerate(target._schema.arguments):
        if i < len(node.args):
            given: Any = node.args[i]
        elif argument.name in node.kwargs:
            given = node.kwargs[argument.name]
        elif argument.has_default_value():
            given = argument.default_value
        else:
            given = None
        bound[argument.name] = _argument(state, given)
    return bound


def _argument(state: Reading, given: Any) -> Any:
    if isinstance(given, list | tuple):
        return [_argument(state, item) for item in given]
    if not isinstance(given, fx.Node):
        return given
    value = given.meta.get("val")
    if isinstance(value, torch.SymInt):
        return state.symbols.dim(value)
    if isinstance(value, torch.SymFloat | torch.SymBool):
        raise UnsupportedModel(
            f"operator {given.target} turns a tensor or a symbol into a number that the program "
            "goes on with; capture with static shapes, or leave this part eager"
        )
    if isinstance(value, list | tuple):
        found = state.values.get(given)
        return list(found) if isinstance(found, tuple) else value
    return state.tensor(given) if isinstance(value, torch.Tensor) else value


def holds_symbol(arguments: Sequence[Any]) -> bool:
    """Whether a symbolic extent is among them."""
    return any(
        holds_symbol(item) if isinstance(item, list) else isinstance(item, Sym)
        for item in arguments
    )

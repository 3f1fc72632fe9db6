"""Calls on lists of tensors (`torch._foreach_add`), as optimisers make them: one per tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_PREFIX = "_foreach_"
_SCALED = ("addcmul", "addcdiv")  # their last operand is the keyword `value` of one tensor's call
_OF_ONE: dict[str, Callable[..., Any]] = {
    "copy": torch.ops.aten.copy,
    "norm": lambda x, order=2, dtype=None: torch.linalg.vector_norm(x, order, dtype=dtype),
    "max": torch.amax,
    "zero": torch.zeros_like,
}


def call_for_each(target: torch._ops.OpOverload) -> Callable[..., list[torch.Tensor]] | None:
    """What an operator on lists does, as calls on their members; None for any other operator."""
    name = target._schema.name.split("::")[1]
    if target.namespace != "aten" or not name.startswith(_PREFIX):
        return None
    name = name.removeprefix(_PREFIX)
    function = _OF_ONE.get(name) or getattr(torch, name, None)
    # A tensor that holds a number for each member would be split by values.
    if function is None or (name in _SCALED and target._overloadname == "Tensor"):
        return None

    def call(*args: Any, **kwargs: Any) -> list[torch.Tensor]:
        count = next(len(arg) for arg in args if isinstance(arg, list | tuple))
        return [_of_member(function, name, i, args, kwargs) for i in range(count)]

    return call


def _of_member(
    function: Callable[..., Any],
    name: str,
    member: int,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> torch.Tensor:
    own = [arg[member] if isinstance(arg, list | tuple) else arg for arg in args]
    if name in _SCALED and len(own) == 4:
        kwargs = {**kwargs, "value": own.pop()}
    made: torch.Tensor = function(*own, **kwargs)
    return made

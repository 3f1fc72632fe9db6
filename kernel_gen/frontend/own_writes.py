"""Does a model write to its own attributes, or to containers among its arguments, when it runs?

torch.export forgets such writes: it restores all attributes that are no tensors, and a counter that
the program reads would stand in the graph as a number. A list or a cache that a model appends to is
a copy in the traced call. So both are compared at the end of that call, before they are restored.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx, nn
from torch.utils import _pytree as pytree

_INTERNAL = frozenset((*nn.Module().__dict__, "forward", "function"))
_VALUES = (bool, int, float, complex, str, bytes, type(None))
_State = dict[str, tuple[pytree.TreeSpec, list[Any]]]
ARGUMENTS = "(its arguments)"


class DecidesByValues(Exception):
    """The model branches on values. torch prints all that it has traced for its own such error,
    the cause of this one."""


@contextmanager
def noticed_writes(module: nn.Module) -> Iterator[list[str]]:
    """While the context lasts, calls of `module` add to the list the names of the attributes that
    they changed: numbers, strings, and containers of these; and `ARGUMENTS` if they changed a
    container that they were given. Writes to tensors do not count."""
    found: list[str] = []
    before, original = _state(module), module.forward
    own = module.__dict__.get("forward")

    @functools.wraps(original)
    def forward(*args: Any, **kwargs: Any) -> Any:
        given = pytree.tree_flatten((args, kwargs))
        try:
            result = original(*args, **kwargs)
        except RuntimeError as error:
            if "data-dependent" in str(error):  # torch's class of it lies with sympy
                raise DecidesByValues(str(error)) from error
            raise
        if not _holds_the_same(given, pytree.tree_flatten((args, kwargs))):
            found.append(ARGUMENTS)
        found.extend(_changed(before, _state(module)))
        return result

    module.__dict__["forward"] = forward
    try:
        yield found
    finally:
        del module.__dict__["forward"]
        if own is not None:
            module.__dict__["forward"] = own


def _holds_the_same(
    before: tuple[list[Any], pytree.TreeSpec], after: tuple[list[Any], pytree.TreeSpec]
) -> bool:
    return before[1] == after[1] and all(
        one is other for one, other in zip(before[0], after[0], strict=True)
    )


def _state(module: nn.Module) -> _State:
    """Attributes of all modules by qualified name, containers taken apart."""
    found: _State = {}
    for prefix, child in module.named_modules():
        if isinstance(child, fx.GraphModule):
            continue  # its records change whenever it is traced
        for name, value in child.__dict__.items():
            if name not in _INTERNAL:
                leaves, spec = pytree.tree_flatten(value)
                found[f"{prefix}.{name}" if prefix else name] = (spec, leaves)
    return found


def _changed(before: _State, after: _State) -> list[str]:
    return [name for name in before.keys() | after.keys() if not _same(before, after, name)]


def _same(before: _State, after: _State, name: str) -> bool:
    if name not in before or name not in after:
        return False
    (spec, leaves), (other_spec, others) = before[name], after[name]
    return spec == other_spec and all(map(_is_equal, leaves, others))


def _is_equal(one: Any, other: Any) -> bool:
    if one is other or isinstance(other, torch.Tensor):
        return True
    if not isinstance(one, _VALUES) and not isinstance(other, _VALUES):
        return True  # other objects are mostly caches: nn.LSTM renews its weak references
    return type(one) is type(other) and bool(one == other)

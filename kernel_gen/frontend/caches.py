"""The caches of `transformers` as arguments and results: the tensors of all kinds of layers.

That library registers one class with torch, and only for two kinds of its layers.
"""

from __future__ import annotations

import copy
import sys
from typing import Any

import torch
from torch.fx import _pytree as fx_pytree
from torch.utils import _pytree as pytree

_BASES = ("Cache", "CacheLayerMixin", "LinearAttentionCacheLayerMixin", "DummyLayer")
_Context = tuple[type, tuple[str, ...], dict[str, Any]]


def register_caches() -> None:
    """Tells torch what the caches and their layers hold, where `transformers` is loaded."""
    module = sys.modules.get("transformers.cache_utils")
    if module is None:
        return
    bases = tuple(
        found for name in _BASES if isinstance(found := getattr(module, name, None), type)
    )
    for found in list(vars(module).values()):
        if isinstance(found, type) and issubclass(found, bases):
            _register(found)


def _register(kind: type) -> None:
    if kind in pytree.SUPPORTED_NODES:
        return
    pytree.register_pytree_node(
        kind,
        _flatten,
        _unflatten,
        serialized_type_name=f"{kind.__module__}.{kind.__name__}",
        flatten_with_keys_fn=_flatten_with_keys,
    )
    fx_pytree.register_pytree_flatten_spec(kind, lambda held, spec: _in_order(held, spec.context))


def _flatten(held: object) -> tuple[list[Any], _Context]:
    """Attributes that hold tensors, and by name the others, which are part of the structure."""
    attributes = vars(held)
    names = tuple(name for name, value in attributes.items() if _holds_tensors(value))
    others = {name: value for name, value in attributes.items() if name not in names}
    return [attributes[name] for name in names], (type(held), names, others)


def _flatten_with_keys(held: object) -> tuple[list[tuple[Any, Any]], _Context]:
    values, context = _flatten(held)
    keys = (pytree.GetAttrKey(name) for name in context[1])
    return list(zip(keys, values, strict=True)), context


def _in_order(held: object, context: _Context) -> list[Any]:
    return [vars(held)[name] for name in context[1]]


def _unflatten(values: Any, context: _Context) -> object:
    kind, names, others = context
    made: object = object.__new__(kind)
    vars(made).update(copy.deepcopy(others))  # a cache goes on writing to its containers
    vars(made).update(zip(names, values, strict=True))
    return made


def _holds_tensors(value: object) -> bool:
    return any(isinstance(leaf, torch.Tensor) for leaf in pytree.tree_leaves(value))

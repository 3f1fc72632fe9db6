"""Attention modules that torch runs by one native call where nothing looks on.

In eval mode, without gradients, `MultiheadAttention` and the encoder's layers leave their ops for a
kernel of torch's own. A capture sees the ops. Both give the same numbers, but the native call may
lay them out otherwise, and with masks it fills padded positions as it likes (with zeros, say).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from kernel_gen.frontend import Captured
from kernel_gen.frontend.captured import FreshResult

_MODULES = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)
_MASK_AT = {"_native_multi_head_attention": 9, "_transformer_encoder_layer_fwd": 18}
_CALLS = (*_MASK_AT, "_nested_tensor_from_mask", "_nested_tensor_from_mask_left_aligned")


def native_attention(
    module: nn.Module, captured: Captured, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    """Why the captured program is not what a call of `module` without gradients does; "" if it is.

    Runs the module once if it has such parts.
    """
    names = [type(m).__name__ for m in module.modules() if _may_be_native(m)]
    if not names:
        return ""
    if captured.mutations:
        return f"{names[0]} may be one native call of torch's, and the model writes to its inputs"
    with torch.no_grad(), torch.random.fork_rng(devices=[]), _Watch() as watch:
        results = pytree.tree_leaves(module(*args, **kwargs))
    if watch.has_masks:
        return f"torch's native call for {names[0]} fills masked positions by rules of its own"
    if watch.is_native and not all(map(_is_laid_out, results, _layouts(captured))):
        return f"torch's native call for {names[0]} lays out its results otherwise than its ops do"
    return ""


def _may_be_native(module: nn.Module) -> bool:
    return isinstance(module, _MODULES) and not module.training


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sees native calls; torch makes them under a dispatch mode as it does without."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.is_native = self.has_masks = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        name = func._schema.name.rpartition("::")[2]
        if name in _CALLS:
            self.is_native = True
            place = _MASK_AT.get(name, 0)  # a nested tensor is made from a mask
            mask = args[place] if place < len(args) else (kwargs or {}).get("mask")
            self.has_masks |= mask is not None
        return func(*args, **(kwargs or {}))


def _layouts(captured: Captured) -> list[tuple[object, ...] | None]:
    """Strides of the results in elements; None for what is no result of the program's own."""
    graph = captured.graph
    return [
        graph.type_of(graph.outputs[leaf.output].value).element_strides
        if isinstance(leaf, FreshResult)
        else None
        for leaf in captured.results
    ]


def _is_laid_out(result: object, strides: tuple[object, ...] | None) -> bool:
    if strides is None or not isinstance(result, torch.Tensor) or not result.numel():
        return True
    steps = zip(result.shape, result.stride(), strides, strict=True)
    return all(size == 1 or have == step for size, have, step in steps)

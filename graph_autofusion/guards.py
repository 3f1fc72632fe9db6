"""What must hold of a call, and of the model, for a plan to stand in for the framework.

Three questions are asked of each call, in the order of their cost:

* `call_signature`: which program is this? Structure of the arguments, and dtype, shape and strides
  of each tensor. Its value is the key under which a prepared program is found.
* `framework_reason`: must the framework run whatever the program is? (gradients, autocast, vmap, …)
* `ModelGuard.check`: is the model still the one that was captured, and its weights unwritten?
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch.utils import _pytree as pytree

from kernel_gen.frontend import Captured

_PLAIN = (torch.Tensor, torch.nn.Parameter)
_CONSTANTS = (bool, int, float, str, type(None), torch.dtype, torch.device)


@dataclass(frozen=True, slots=True)
class Call:
    """One call taken apart: `leaves` of (args, kwargs) and the hashable `signature`.

    `signature` is None, with a `reason`, where no plan can be looked up for such arguments.
    """

    leaves: Sequence[Any]
    signature: Hashable | None
    reason: str = ""


def describe_call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    """Leaves and signature of a call. The common case, plain positional tensors, is fast."""
    leaves: Sequence[Any] = args
    structure: Hashable = len(args)
    if kwargs or not all(type(arg) in _PLAIN for arg in args):
        leaves, spec = pytree.tree_flatten((args, dict(kwargs)))
        structure = repr(spec)
    parts: list[Hashable] = [structure]
    for leaf in leaves:
        if type(leaf) in _PLAIN:
            if leaf.layout is not torch.strided or not leaf.is_cpu:
                return Call(
                    leaves, None, f"input on {leaf.device}, {leaf.layout}: not a CPU tensor"
                )
            parts.append((leaf.dtype, leaf.shape, leaf.stride()))
        elif isinstance(leaf, _CONSTANTS):
            parts.append((type(leaf), leaf))
        else:
            return Call(leaves, None, f"input of type {type(leaf).__name__} is not a plain tensor")
    return Call(leaves, tuple(parts))


def framework_reason(needs_grad: bool, leaves: Sequence[Any]) -> str:
    """Why the framework must run this call, whatever its program; empty if it need not."""
    if torch.is_grad_enabled() and (needs_grad or _any_requires_grad(leaves)):
        return "gradients are enabled and needed; call under torch.no_grad() to run the plan"
    if torch.is_autocast_enabled("cpu"):
        return "autocast is on"
    if torch.compiler.is_compiling():
        return "inside torch.compile"
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "inside a torch.func transform"
    return ""


def _any_requires_grad(leaves: Sequence[Any]) -> bool:
    return any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves)


def shares_written_storage(captured: Captured, inputs: Sequence[torch.Tensor]) -> bool:
    """True if an argument that the program writes shares storage with another argument."""
    written = {m.input for m in captured.mutations}
    users = captured.user_inputs
    storages = [tensor.untyped_storage().data_ptr() for tensor in inputs]
    return any(
        storages.count(storage) > 1
        for position, storage in zip(users, storages, strict=True)
        if position in written
    )


class ModelState(Enum):
    """What `ModelGuard.check` found."""

    SAME = "same"
    WRITTEN = "written"  # weights have new values: pack them again
    CHANGED = "changed"  # other modules, parameters or modes: capture again


class ModelGuard:
    """Remembers the modules, modes and constant tensors of a model at capture time."""

    def __init__(self, model: torch.nn.Module, constants: Sequence[torch.Tensor]) -> None:
        """`constants` are the tensors that the plan has packed or points to."""
        self._edges: list[tuple[Mapping[str, Any], str, Any]] = []
        self._modes = [(module, module.training) for module in model.modules()]
        for module in model.modules():
            for held in (module._modules, module._parameters, module._buffers):
                self._edges += [(held, name, value) for name, value in held.items()]
        self._constants = [(t, t.data_ptr(), version(t)) for t in constants]

    def check(self) -> ModelState:
        """SAME, WRITTEN or CHANGED; some tens of nanoseconds for each module and constant."""
        for held, name, value in self._edges:
            if held.get(name) is not value:
                return ModelState.CHANGED
        for module, mode in self._modes:
            if module.training is not mode:
                return ModelState.CHANGED
        for tensor, pointer, written in self._constants:
            if version(tensor) != written or tensor.data_ptr() != pointer:
                return ModelState.WRITTEN
        return ModelState.SAME


def version(tensor: torch.Tensor) -> int:
    """The tensor's write counter; inference tensors keep none and give 0."""
    return 0 if tensor.is_inference() else tensor._version

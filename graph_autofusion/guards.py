"""What must hold of a call for a plan to stand in for the framework.

* `describe_call`: which program is this? Structure of the arguments, dtype, shape and strides of
  each tensor, and which of them are one tensor: a capture reads that one in the place of all, and
  a program may ask (`if key is query`). Its signature is the key under which a prepared program is
  found.
* `framework_reason`: must the framework run whatever the program is? (gradients, autocast, vmap, …)
* `tensors_alike`: one check in C for the common case that a call is like the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._C._dynamo.guards import TensorGuards
from torch.autograd import forward_ad
from torch.nn.utils import parametrize
from torch.utils import _pytree as pytree

from kernel_gen.frontend import Captured
from kernel_gen.frontend.captured import constant_key

PLAIN = (torch.Tensor, torch.nn.Parameter)
CACHED = "inside torch.nn.utils.parametrize.cached()"
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
    """Leaves and signature of a call."""
    leaves: Sequence[Any] = args
    structure: Hashable = len(args)
    if kwargs or not all(type(arg) in PLAIN for arg in args):
        leaves, spec = pytree.tree_flatten((args, dict(kwargs)))
        structure = repr(spec)
    parts: list[Hashable] = [structure]
    numbers: dict[int, int] = {}  # of tensors, by identity
    for leaf in leaves:
        if type(leaf) in PLAIN:
            odd = _odd_tensor(leaf)
            if odd:
                return Call(leaves, None, f"an input is {odd}")
            number = numbers.setdefault(id(leaf), len(numbers))
            parts.append((leaf.dtype, leaf.shape, leaf.stride(), number))
        elif isinstance(leaf, _CONSTANTS):
            parts.append((type(leaf), constant_key(leaf)))
        else:
            return Call(leaves, None, f"input of type {type(leaf).__name__} is not a plain tensor")
    return Call(leaves, tuple(parts))


def _odd_tensor(tensor: torch.Tensor) -> str:
    """What keeps a plan from reading the tensor's memory as it lies there; empty if nothing."""
    if tensor.layout is not torch.strided or not tensor.is_cpu or tensor.is_nested:
        return f"on {tensor.device}, {tensor.layout}: not a plain CPU tensor"
    if tensor.is_neg() or tensor.is_conj():
        return "negated or conjugated lazily: call resolve_neg() or resolve_conj() on it"
    if tensor._is_zerotensor():
        return "a tensor of zeros without memory"
    return ""


def framework_reason(needs_grad: bool, leaves: Sequence[Any]) -> str:
    """Why the framework must run this call, whatever its program; empty if it need not."""
    if torch.is_grad_enabled() and (needs_grad or _any_requires_grad(leaves)):
        return "gradients are enabled and needed; call under torch.no_grad() to run the plan"
    if torch.is_autocast_enabled("cpu"):
        return "autocast is on"
    if is_forward_differentiated():
        return "inside forward-mode differentiation"
    if are_weights_cached():
        return CACHED
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "inside a torch.func transform"
    if torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack():
        return "a mode that intercepts torch's operators is on"
    if torch._C._get_tracing_state() is not None:
        return "inside torch.jit.trace"
    return ""


def is_forward_differentiated() -> bool:
    """Whether tensors may carry tangents, which a plan would drop."""
    return forward_ad._current_level >= 0


def are_weights_cached() -> bool:
    """Whether parametrized weights stay what they were at their first use: a plan would see what
    is written to them, and a capture would leave its own kind of tensors in the cache."""
    return parametrize._cache_enabled > 0


def _any_requires_grad(leaves: Sequence[Any]) -> bool:
    return any(isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in leaves)


def shares_written_storage(captured: Captured, inputs: Sequence[torch.Tensor]) -> bool:
    """True if one of the program's `inputs` (arguments, parameters, buffers) that it writes shares
    storage with another one."""
    storages = [tensor.untyped_storage().data_ptr() for tensor in inputs]
    return any(storages.count(storages[m.input]) > 1 for m in captured.mutations)


def tensors_alike(tensors: Sequence[torch.Tensor]) -> Callable[..., bool]:
    """A check in C (torch's own, made for compiled graphs) that tensors are like `tensors`.

    It compares Python type, dtype, sizes, strides, device, `requires_grad` (but not the grad mode)
    and all dispatch keys: those of the tensor (lazy negation, sparse, inference …) and those that
    modes of this thread add (autocast, vmap, inference mode, dispatch modes). Holds no tensor. One
    tensor given twice is never alike. There must be at least one tensor.
    """
    check: Callable[..., bool] = TensorGuards(
        *tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None
    ).check
    return check

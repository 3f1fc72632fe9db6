"""A function as a module that owns what the function closes over.

`optimize(lambda x: model(x).softmax(-1))` reads the parameters of `model`. Capture finds them as
parameters, and `.to`, `state_dict` and guards reach them, once they belong to the module.
"""

from __future__ import annotations

import torch

from graph_autofusion.reach import Reach
from kernel_gen.frontend.exporting import FunctionModule

_PREFIX = "closure_"


def adopt(module: torch.nn.Module) -> None:
    """Makes modules and tensors that a function reads, as they are now, members of its module."""
    if not isinstance(module, FunctionModule):
        return
    reach = Reach(module)
    found: list[torch.nn.Module | torch.Tensor] = [*reach.roots, *reach.tensors]
    held: list[object] = [*module._modules.values(), *module._parameters.values()]
    held += module._buffers.values()
    if len(found) == len(held) and {id(value) for value in found} == {id(value) for value in held}:
        return
    for names in (module._modules, module._parameters, module._buffers):
        names.clear()
    for number, value in enumerate(found):
        _hold(module, f"{_PREFIX}{number}", value)


def _hold(module: torch.nn.Module, name: str, value: torch.nn.Module | torch.Tensor) -> None:
    if isinstance(value, torch.nn.Module):
        module.add_module(name, value)
    elif isinstance(value, torch.nn.Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)

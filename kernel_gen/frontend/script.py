"""TorchScript modules as modules that torch.export can trace."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from kernel_gen.errors import UnsupportedModel

_ADVICE = (
    "pass the model as it was before scripting, or save it with torch.export.save(torch.export."
    "export(model, inputs), 'model.pt2')"
)


class ScriptMirror(nn.Module):
    """A TorchScript module behind plain ones that own its parameters and buffers, by their names.

    Scripts keep their members outside of Python, where neither guards nor torch.export look.
    """

    def __init__(self, script: torch.jit.ScriptModule) -> None:
        super().__init__()
        self.__dict__["script"] = script
        for name, parameter in script.named_parameters():
            owner, last = self._owner(name)
            owner.register_parameter(last, parameter)
        for name, buffer in script.named_buffers():
            owner, last = self._owner(name)
            owner.register_buffer(last, buffer)
        self.training = bool(script.training)

    @property
    def script(self) -> torch.jit.ScriptModule:
        found: torch.jit.ScriptModule = self.__dict__["script"]
        return found

    def _owner(self, name: str) -> tuple[nn.Module, str]:
        """The plain module that holds a member, made where it is missing."""
        *path, last = name.split(".")
        owner: nn.Module = self
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, nn.Module())
            owner = owner.get_submodule(part)
        return owner, last

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.script(*args, **kwargs)

    def train(self, mode: bool = True) -> ScriptMirror:
        super().train(mode)
        self.script.train(mode)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptMirror:
        return ScriptMirror(copy.deepcopy(self.script))


def unscripted(script: torch.jit.ScriptModule, args: tuple[Any, ...], kwargs: Any) -> nn.Module:
    """`script` as a plain module with the same names of parameters, by torch's own converter.

    Raises UnsupportedModel, saying what to do instead, where torch cannot convert it.
    """
    from torch._export.converter import TS2EPConverter

    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            expected = script(*args, **kwargs)
            converted = TS2EPConverter(script, args, kwargs or None).convert().module()
            found = converted(*args, **kwargs)
    except Exception as error:
        reason = f"{type(error).__name__}: {str(error).splitlines()[0][:200] if str(error) else ''}"
        raise UnsupportedModel(
            f"torch cannot convert the TorchScript: {reason}; {_ADVICE}"
        ) from error
    if isinstance(expected, torch.Tensor) and isinstance(found, tuple):
        _unwrap(converted)
    return converted


def _unwrap(module: nn.Module) -> None:
    """The converter gives a tuple also where the script gives one tensor."""
    inner: Callable[..., tuple[torch.Tensor, ...]] = module.forward
    module.__dict__["forward"] = lambda *args, **kwargs: inner(*args, **kwargs)[0]

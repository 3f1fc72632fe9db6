"""TorchScript modules as modules that torch.export can trace."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import nn

from kernel_gen.errors import UnsupportedModel

_SCRIPT = "(script)"  # no name of a member
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
        self.__dict__[_SCRIPT] = script
        for name, parameter in script.named_parameters():
            owner, last = self._owner(name)
            owner.register_parameter(last, _as_parameter(parameter))
        for name, buffer in script.named_buffers():
            owner, last = self._owner(name)
            owner.register_buffer(last, buffer)
        self.training = getattr(script, "training", False)  # a frozen script has no mode

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
        return script_of(self)(*args, **kwargs)

    def train(self, mode: bool = True) -> ScriptMirror:
        super().train(mode)
        if hasattr(script_of(self), "training"):
            script_of(self).train(mode)
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptMirror:
        script = script_of(self)
        with torch.no_grad():  # else torch's copies would be results, not leaves
            copied = copy.deepcopy(script)
        for new, old in zip(copied.parameters(), script.parameters(), strict=True):
            new.requires_grad_(old.requires_grad)
        return ScriptMirror(copied)


def script_of(mirror: ScriptMirror) -> torch.jit.ScriptModule:
    """The script itself. No member of the mirror: the script may have one of any name."""
    found: torch.jit.ScriptModule = mirror.__dict__[_SCRIPT]
    return found


def _as_parameter(tensor: torch.Tensor) -> nn.Parameter:
    """The tensor itself, by torch's own mark: of a script that was loaded, parameters are plain
    tensors, and gradients must reach them."""
    if not isinstance(tensor, nn.Parameter):
        tensor._is_param = True
    return cast(nn.Parameter, tensor)


def unscripted(mirror: ScriptMirror, args: tuple[Any, ...], kwargs: Any) -> nn.Module:
    """The script as a plain module with the same names of parameters, by torch's own converter.

    Raises UnsupportedModel, saying what to do instead, where torch cannot convert it.
    """
    from torch._export.converter import TS2EPConverter

    script = script_of(mirror)
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

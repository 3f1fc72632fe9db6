"""What a model's program may read besides its arguments: modules, globals, closures.

A function handed to `optimize` often closes over a module (`lambda x: model(x).softmax(-1)`), is a
method of one, or reads a global number. Such things are watched as a module's own are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from types import CellType, FunctionType, MethodType
from typing import Any

import torch

from kernel_gen.frontend.exporting import FunctionModule


class Reach:
    """What a program may read, in a fixed order.

    `modules`: all of the model's, and those a function reads; `roots`: the latter without their
    submodules; `tensors` that a function reads; `cells` of its closures; `names` of globals that it
    reads, with the namespace they are in.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self.cells: list[CellType] = []
        self.names: list[tuple[Mapping[str, Any], tuple[str, ...]]] = []
        self.roots: list[torch.nn.Module] = []
        self.tensors: list[torch.Tensor] = []
        self._modules: dict[int, torch.nn.Module] = {}
        self._seen: set[int] = set()
        self._add_module(model)
        if isinstance(model, FunctionModule):
            self._add(model.__dict__["function"])

    @property
    def modules(self) -> list[torch.nn.Module]:
        return list(self._modules.values())

    def _add_module(self, module: torch.nn.Module) -> None:
        for child in module.modules():
            self._modules.setdefault(id(child), child)

    def _add(self, value: object) -> None:
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, torch.nn.Module):
            self.roots.append(value)
            self._add_module(value)
        elif isinstance(value, torch.Tensor):
            self.tensors.append(value)
        for part in _parts(value):
            self._add(part)
        if isinstance(value, FunctionType) and not _is_library(value):
            self._add_function(value)

    def _add_function(self, function: FunctionType) -> None:
        filled = [cell for cell in function.__closure__ or () if _is_filled(cell)]
        self.cells += filled
        for cell in filled:
            self._add(cell.cell_contents)
        space = function.__globals__
        read = tuple(name for name in function.__code__.co_names if name in space)
        if read:
            self.names.append((space, read))
        for name in read:
            self._add(space[name])


def _parts(value: object) -> Iterator[object]:
    """What a callable or a small container is made of."""
    if isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, list | tuple):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, FunctionType):
        wrapped: Callable[..., Any] | None = getattr(value, "__wrapped__", None)
        yield from () if wrapped is None else (wrapped,)


def _is_library(function: FunctionType) -> bool:
    return function.__module__ is not None and function.__module__.split(".")[0] == "torch"


def _is_filled(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True

"""What a model's program may read besides its arguments.

Modules and their attributes; what these hold: lists, dicts, configurations; class attributes and
globals that the user's own code names; closures. A function handed to `optimize` often closes over
a module (`lambda x: model(x).softmax(-1)`), or is a method of one.

Code of installed packages is taken as unchanging, and so are the globals that it reads.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from types import CellType, FunctionType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import fx

from graph_autofusion.read_names import functions_of, is_installed, is_library, names_read
from kernel_gen.frontend.exporting import FunctionModule

INTERNAL = frozenset(torch.nn.Module().__dict__)
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, Enum)
_CONTAINERS = (list, tuple, deque, dict, set, frozenset)
_MOST_ENTRIES = 256  # of one container; larger ones are data, not settings
_MOST_WATCHED = 4096
_DEEPEST = 40
_RUNNER = "_gaf_runner"


class Reach:
    """What a program may read, in a fixed order.

    `modules`: all of the model's, and those a function reads; `roots`: the latter without their
    submodules; `tensors` that a function reads; `cells` of its closures; `names` that are read of a
    namespace (globals, classes, objects) or of a `slotted` object; `contents`: containers that are
    read whole; `objects`: dictionaries of objects, where a new name may hide one of the class.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self._read: set[str] = {"forward", "__call__"}  # names in all code that was met
        known = 0
        while known < len(self._read):  # what one function names may lead to another
            known = len(self._read)
            self._walk()

    def _walk(self) -> None:
        self.cells: list[CellType] = []
        self.names: list[tuple[Mapping[str, Any], tuple[str, ...]]] = []
        self.slotted: list[tuple[object, tuple[str, ...]]] = []
        self.contents: list[Collection[Any]] = []
        self.objects: list[dict[str, Any]] = []
        self.roots: list[torch.nn.Module] = []
        self.tensors: list[torch.Tensor] = []
        self._modules: dict[int, torch.nn.Module] = {}
        self._seen: dict[int, object] = {}
        self._classes: set[type] = set()
        self._room = _MOST_WATCHED
        self._depth = 0
        self._add_module(_unwrapped(self._model))
        if isinstance(self._model, FunctionModule):
            self._add(self._model.__dict__["function"], _Held(outside=True))

    @property
    def modules(self) -> list[torch.nn.Module]:
        return list(self._modules.values())

    def _add_module(self, module: torch.nn.Module) -> None:
        for found in module.modules():
            child = _unwrapped(found)
            if child is not found:
                self._add_module(child)
            elif id(child) not in self._modules:
                self._modules[id(child)] = child
                self._add_code_of(child)

    def _add_code_of(self, module: torch.nn.Module) -> None:
        """What the module's attributes hold, and what its own code reads of its class."""
        kind = type(module)
        if not isinstance(module, FunctionModule):
            self._add(module.__dict__.get("forward"), _Held())
        if is_library(kind.__module__) or isinstance(module, fx.GraphModule | FunctionModule):
            return
        foreign = any(
            is_installed(base.__module__) and not is_library(base.__module__)
            for base in kind.__mro__
        )
        held = _Held(whole=foreign)  # what code reads that is not looked into is not known
        for name, value in list(module.__dict__.items()):
            if name not in INTERNAL:
                self._add(value, held)
        self._add_class(kind, held)

    def _add(self, value: object, held: _Held) -> None:
        if isinstance(value, _PLAIN) or id(value) in self._seen:
            return
        if self._room <= 0 or self._depth >= _DEEPEST:
            return
        self._seen[id(value)] = value
        self._depth += 1
        self._add_new(value, held)
        self._depth -= 1

    def _add_new(self, value: object, held: _Held) -> None:
        if isinstance(value, torch.nn.Module):
            if held.outside:
                self.roots.append(_unwrapped(value))
            self._add_module(_unwrapped(value))
        elif isinstance(value, torch.Tensor):
            if held.outside:
                self.tensors.append(value)
        elif isinstance(value, FunctionType):
            self._add_function(value, held)
        elif isinstance(value, _CONTAINERS):
            self._add_container(value, held)
        elif isinstance(value, ModuleType):
            if not is_installed(value.__name__):
                self._add_names(vars(value), held)
        elif isinstance(value, type):
            self._add_class(value, held)
        else:
            self._add_object(value, held)

    def _add_container(self, value: Collection[Any], held: _Held) -> None:
        if len(value) > _MOST_ENTRIES:
            return
        if not isinstance(value, tuple | frozenset):
            self.contents.append(value)
            self._room -= len(value)
        for part in list(value.values() if isinstance(value, dict) else value):
            self._add(part, held)

    def _add_object(self, value: object, held: _Held) -> None:
        for part in _parts(value):
            self._add(part, held)
        if is_library(type(value).__module__) and type(value) is not SimpleNamespace:
            return
        self._add_slots(value, held)
        own = getattr(value, "__dict__", None)
        if held.whole and isinstance(own, dict):
            self._add_container(own, held)
        elif isinstance(own, dict):
            self.objects.append(own)
            self._add_names(own, held)
        self._add_class(type(value), held)

    def _add_slots(self, value: object, held: _Held) -> None:
        found = tuple(
            name
            for base in type(value).__mro__
            for name in _slots(base)
            if (held.whole or name in self._read) and hasattr(value, name)
        )
        if found:
            self.slotted.append((value, (*found, found[0])))  # two names or more give a tuple
            self._room -= len(found)
        for name in found:
            self._add(getattr(value, name), held)

    def _add_names(self, space: Mapping[str, Any], held: _Held) -> None:
        """Watches what is read of the namespace."""
        found = tuple(sorted(space.keys() & self._read))
        if found:
            self.names.append((space, found))
            self._room -= len(found)
            for name in found:
                self._add(space[name], held)

    def _add_function(self, function: FunctionType, held: _Held) -> None:
        if is_installed(function.__module__):
            return
        self._read |= names_read(function)
        filled = [cell for cell in function.__closure__ or () if _is_filled(cell)]
        self.cells += filled
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        for value in (*(cell.cell_contents for cell in filled), *defaults):
            self._add(value, held)
        self._add_names(function.__globals__, held)
        self._add(getattr(function, "__wrapped__", None), held)

    def _add_class(self, kind: type, held: _Held) -> None:
        """Watches what is read of a class and its bases."""
        for base in kind.__mro__:
            if is_installed(base.__module__) or base in self._classes:
                continue
            self._classes.add(base)
            self._add_names(vars(base), held)
            for name in vars(base).keys() & self._read:
                for function in functions_of(vars(base)[name]):
                    self._add(function, held)


class _Held:
    """How a value is held: `outside` of all modules, by a function; by code that may read the
    `whole` of it."""

    def __init__(self, *, outside: bool = False, whole: bool = False) -> None:
        self.outside = outside
        self.whole = whole


def _unwrapped(module: torch.nn.Module) -> torch.nn.Module:
    """The model of an OptimizedModule, whose own dictionary says little."""
    runner = module.__dict__.get(_RUNNER)
    return module if runner is None else _unwrapped(runner.module)


def _parts(value: object) -> Iterator[object]:
    """What a callable is made of."""
    if isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())


def _slots(kind: type) -> tuple[str, ...]:
    found = vars(kind).get("__slots__", ())
    names = (found,) if isinstance(found, str) else tuple(found)
    return tuple(name for name in names if not name.startswith("__"))


def _is_filled(cell: CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True

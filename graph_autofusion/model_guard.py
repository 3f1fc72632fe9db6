"""Is the model still the one that was captured, and are its weights unwritten?

Two speeds. `is_same` runs before every call of a plan: a few passes in C over the modules'
dictionaries, the constant tensors and a few of their elements, no Python loop. Only when it says no
does `check` find out what happened.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import partial
from itertools import chain
from operator import attrgetter, call, is_, itemgetter
from typing import Any

import torch
from torch.nn.modules import module as nn_module

from graph_autofusion.looked_at import cells, value
from graph_autofusion.reach import INTERNAL, Reach
from kernel_gen.frontend.captured import constant_key

_HELD = ("_modules", "_parameters", "_buffers")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
# Hooks of a program that torch.export made: they check a call against what it was exported for, as
# the capture of such a call does, and register modules among the arguments, which no plan takes.
_EXPORTED = "torch.export._unlift"
_VALUES = (bool, int, float, complex, str, type(None), torch.dtype, torch.device)
_END = object()
_pointer = torch.Tensor.data_ptr
_version = attrgetter("_version")


class ModelState(Enum):
    """What `ModelGuard.check` found."""

    SAME = "same"
    WRITTEN = "written"  # weights have new values: pack them again
    CHANGED = "changed"  # other modules, parameters, attributes or modes: capture again


def hooks_reason(model: torch.nn.Module) -> str:
    """Why hooks keep a plan from standing in for `model`; empty if there are none."""
    if any(_global_hooks()):
        return "hooks for all modules are registered"
    for module in Reach(model).modules:
        if not all(_is_exports_own(module.__dict__[name]) for name in _HOOKS):
            return f"{type(module).__name__} has forward hooks, which a plan would not call"
    return ""


def _global_hooks() -> tuple[dict[Any, Any], ...]:
    return (nn_module._global_forward_hooks, nn_module._global_forward_pre_hooks)


def _is_exports_own(hooks: Mapping[int, Callable[..., Any]]) -> bool:
    return all(getattr(hook, "__module__", "") == _EXPORTED for hook in hooks.values())


class _Structure:
    """Modules, their parameters, buffers and attributes, what these hold, and what code reads.

    Kept by identity, in the order of the dictionaries; `_END` marks that nothing was appended.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        reach = Reach(model)
        held = [module.__dict__[name] for module in reach.modules for name in _HELD]
        hooks = [module.__dict__[name] for module in reach.modules for name in _HOOKS]
        held += [entries for entries in hooks if _is_exports_own(entries)]
        foreign = [entries for entries in hooks if not _is_exports_own(entries)]
        self._empty = (*_global_hooks(), *foreign, *(entries for entries in held if not entries))
        dicts = [entries for entries in held if entries]
        dicts += [entries for entries in reach.contents if isinstance(entries, dict)]
        lists = [entries for entries in reach.contents if not isinstance(entries, dict)]
        self._reads: list[Callable[[], Iterable[Any]]] = [
            *(entries.values for entries in dicts),
            *(entries.keys for entries in dicts),
            *(entries.__iter__ for entries in lists),
            *(partial(_attributes(module), module.__dict__) for module in reach.modules),
            *(partial(_getter(names), space) for space, names in reach.names),
            *(partial(attrgetter(*names), owner) for owner, names in reach.slotted),
            partial(map, _contents, reach.cells),
            partial(map, type, reach.modules),
            (_END,).__iter__,
        ]
        counted = (m.__dict__ for m in reach.modules if not isinstance(m, torch.fx.GraphModule))
        self._sized = [*counted, *reach.contents, *reach.objects]
        self._sizes = list(map(len, self._sized))
        self._dtype = torch.get_default_dtype()
        self._expected = list(self._current())

    def _current(self) -> Iterator[Any]:
        return chain.from_iterable(map(call, self._reads))

    def is_same(self) -> bool:
        try:
            return (
                not any(self._empty)
                and list(map(len, self._sized)) == self._sizes
                and torch.get_default_dtype() is self._dtype
                and all(map(is_, self._current(), self._expected))
            )
        except (KeyError, ValueError, AttributeError, RuntimeError):
            # Something was deleted, or another thread changes it.
            return False

    def equals(self) -> bool:
        """As `is_same`, but equal numbers and strings need not be one object, nor do containers."""
        current = _Structure(self._model)
        if any(self._empty) or any(current._empty) or current._sizes != self._sizes:
            return False
        if current._dtype is not self._dtype or len(current._expected) != len(self._expected):
            return False
        if not all(map(_is_equal, current._expected, self._expected)):
            return False
        self.__dict__.update(current.__dict__)
        return True


_contents = attrgetter("cell_contents")


def _attributes(module: torch.nn.Module) -> itemgetter[Any]:
    own = [name for name in module.__dict__ if name not in INTERNAL]
    if isinstance(module, torch.fx.GraphModule):
        own = [name for name in ("_code",) if name in module.__dict__]  # tracing changes others
    mode = [name for name in ("training",) if name in module.__dict__]
    return _getter((*mode, *_HELD, *own))


def _getter(names: Sequence[str]) -> itemgetter[Any]:
    """Gives a tuple, also for one name."""
    return itemgetter(*(names if len(names) > 1 else (*names, *names)))


def _is_equal(one: object, other: object) -> bool:
    """Whether a program reads the same in both. torch.export replaces containers among a module's
    attributes by copies, so these are compared by what they hold."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(map(_is_equal, one.values(), other.values()))
    if isinstance(one, list | tuple | deque) and isinstance(other, list | tuple | deque):
        return len(one) == len(other) and all(map(_is_equal, one, other))
    return isinstance(one, _VALUES) and constant_key(one) == constant_key(other)


class _Constants:
    """Bound tensors: where their data lie, how they are laid out, how often they were written, and
    a few of their elements, as not all writes are counted."""

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        self.tensors = tensors
        self._pointers = list(map(_pointer, tensors))
        self._layouts = list(map(_layout, tensors))
        counted = [tensor for tensor in tensors if not tensor.is_inference()]
        self._writes = [(tensor, tensor._version) for tensor in counted]
        self._elements = [
            (tensor, cell, cell.value) for tensor in tensors for cell in cells(tensor)
        ]
        self._watch_all()

    def watch_only(self, positions: Collection[int]) -> None:
        chosen = {id(self.tensors[position]) for position in positions}
        self._writes = [watched for watched in self._writes if id(watched[0]) in chosen]
        self._elements = [watched for watched in self._elements if id(watched[0]) in chosen]
        self._watch_all()

    def _watch_all(self) -> None:
        """The columns that `is_unwritten` compares."""
        self._counted = [tensor for tensor, _ in self._writes]
        self._versions = [version for _, version in self._writes]
        self._cells = [cell for _, cell, _ in self._elements]
        self._values = [seen for _, _, seen in self._elements]

    def is_unwritten(self) -> bool:
        return (
            list(map(_version, self._counted)) == self._versions
            and list(map(_pointer, self.tensors)) == self._pointers
            and list(map(value, self._cells)) == self._values
        )

    def has_layouts(self) -> bool:
        return list(map(_layout, self.tensors)) == self._layouts


def _layout(tensor: torch.Tensor) -> tuple[object, ...]:
    plain = tensor.is_cpu and not tensor.is_neg() and not tensor.is_conj()
    return (tensor.dtype, tensor.shape, tensor.stride(), tensor.layout, plain)


class ModelGuard:
    """What a model was when its program was captured and its plan bound."""

    def __init__(self, model: torch.nn.Module, constants: Sequence[torch.Tensor] = ()) -> None:
        """`constants` are the tensors to be bound to the plan."""
        self._structure = _Structure(model)
        self._constants = _Constants(constants)

    def watch_only(self, copied: Collection[int]) -> None:
        """From now on only writes to these constants count: the others are read in place."""
        self._constants.watch_only(copied)

    @property
    def constants(self) -> Sequence[torch.Tensor]:
        return self._constants.tensors

    def is_same(self) -> bool:
        """Whether nothing has changed. Layouts of the constants are the caller's to compare."""
        return self._structure.is_same() and self._constants.is_unwritten()

    def check(self) -> ModelState:
        """What has happened to the model, layouts included."""
        if not self._structure.is_same() and not self._structure.equals():
            return ModelState.CHANGED
        if not self._constants.has_layouts():
            return ModelState.CHANGED
        return ModelState.SAME if self._constants.is_unwritten() else ModelState.WRITTEN

    @property
    def needs_grad(self) -> bool:
        """Whether a constant, as it is now, takes part in gradients."""
        return any(tensor.requires_grad for tensor in self._constants.tensors)

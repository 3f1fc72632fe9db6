"""Which names a function's code reads, and whose code is taken as unchanging."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType

_OURS = frozenset(("torch", "numpy", "graph_autofusion", "kernel_gen"))
_INSTALLED = ("site-packages", "dist-packages")


def names_read(function: FunctionType) -> frozenset[str]:
    """Globals and attributes that the function names, functions inside of it included."""
    return frozenset(name for code in _codes(function.__code__) for name in code.co_names)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


@functools.lru_cache(maxsize=4096)
def is_library(module_name: str | None) -> bool:
    """Whether a Python module of that name is torch's, Python's own or ours: never watched."""
    root = (module_name or "").partition(".")[0]
    return root in _OURS or root in sys.stdlib_module_names


@functools.lru_cache(maxsize=4096)
def is_installed(module_name: str | None) -> bool:
    """As `is_library`, or any package that was installed: its globals and classes do not change."""
    if is_library(module_name):
        return True
    file = getattr(sys.modules.get(module_name or ""), "__file__", None) or ""
    return any(part in file for part in _INSTALLED)


def functions_of(value: object) -> Iterable[FunctionType]:
    """The functions that a member of a class runs when it is called or read."""
    if isinstance(value, FunctionType):
        return (value,)
    if isinstance(value, staticmethod | classmethod):
        return functions_of(value.__func__)
    if isinstance(value, property):
        return () if value.fget is None else functions_of(value.fget)
    if isinstance(value, functools.cached_property):
        return functions_of(value.func)
    return ()

"""A local Ray without the processes that a single machine has no use for.

Beside its scheduler, Ray starts a monitor that would add nodes, a reader of logs that nobody is
shown here, and a server of pages that are switched off: more than a third of the CPU time of a
start, on the cores that measure. Its public options keep them; the parameters below are what
`ray start` itself uses to leave them out.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

_LEFT_OUT = {"no_monitor": True, "include_log_monitor": False}


@contextmanager
def lean_start() -> Iterator[None]:
    """Ray started in this block is lean; as usual in versions that do not know the parameters."""
    parameter: Any = import_module("ray._private.parameter")
    services: Any = import_module("ray._private.services")
    whole, server = parameter.RayParams, services.start_api_server
    if not _LEFT_OUT.keys() <= inspect.signature(whole).parameters.keys():
        yield
        return
    parameter.RayParams = functools.partial(whole, **_LEFT_OUT)
    services.start_api_server = _no_server
    try:
        yield
    finally:
        parameter.RayParams, services.start_api_server = whole, server


def _no_server(*_arguments: object, **_options: object) -> tuple[None, None]:
    """Neither an address nor a process, as where its start fails."""
    return None, None

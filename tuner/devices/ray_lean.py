"""A local Ray without the processes that a single machine has no use for.

Beside its scheduler, Ray starts a monitor that would add nodes, a reader of logs that nobody is
shown here, and a server of pages that are switched off: more than a third of the CPU time of a
start, on the cores that measure. Its public options keep them; the parameters below are what
`ray start` itself uses to leave them out. It also sleeps for a second where a node, or the store of
objects within it, is not there when first asked for; here it is asked again at once.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

_LEFT_OUT = {"no_monitor": True, "include_log_monitor": False}
_NODE_SECONDS = 30.0  # Ray's own patience with its node
_POLL_SECONDS = 0.02


@contextmanager
def lean_start() -> Iterator[None]:
    """Ray started in this block is lean; as usual in versions that do not know the parameters."""
    parameter: Any = import_module("ray._private.parameter")
    services: Any = import_module("ray._private.services")
    whole, server, node = parameter.RayParams, services.start_api_server, services.get_node
    if not _LEFT_OUT.keys() <= inspect.signature(whole).parameters.keys():
        yield
        return
    parameter.RayParams = functools.partial(whole, **_LEFT_OUT)
    services.start_api_server = _no_server
    services.get_node = functools.partial(_node_at_once, node)
    try:
        yield
    finally:
        parameter.RayParams, services.start_api_server, services.get_node = whole, server, node


def _no_server(*_arguments: object, **_options: object) -> tuple[None, None]:
    """Neither an address nor a process, as where its start fails."""
    return None, None


def _node_at_once(get_node: Callable[[str, str], Any], gcs_address: str, node_id: str) -> Any:
    """What `get_node` gives, asked for when the node is there."""
    raylet: Any = import_module("ray._raylet")
    client = raylet.GcsClient(address=gcs_address)
    end = time.monotonic() + _NODE_SECONDS
    while time.monotonic() < end:
        if any(known.hex() == node_id for known in client.get_all_node_info()):
            break
        time.sleep(_POLL_SECONDS)
    return get_node(gcs_address, node_id)

"""A local Ray without the processes that a single machine has no use for.

Beside its scheduler, Ray starts a monitor that would add nodes, a reader of logs that nobody is
shown here, a server of pages that are switched off, and two agents: one reports to that server, the
other installs packages for workers that ask for some. Together they are half of the CPU time of a
start, on the cores that measure. Its public options keep them. The parameters below are what
`ray start` itself uses to leave out the first two; the scheduler insists on its agents, and gets
idle ones, which say what Ray's own say where their packages are missing: no port. It also sleeps
for a second where a node, or the store of objects within it, is not there when first asked for;
here it is asked again at once.
"""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

_LEFT_OUT = {"no_monitor": True, "include_log_monitor": False}
_AGENTS = {
    "--dashboard_agent_command": (
        "metrics_agent_port=-1",
        "metrics_export_port=-1",
        "dashboard_agent_listen_port=-1",
    ),
    "--runtime_env_agent_command": ("runtime_env_agent_port=1",),  # is asked for packages only
}
_IDLE = Path(__file__).with_name("ray_idle.py")
_NODE_SECONDS = 30.0  # Ray's own patience with its node
_POLL_SECONDS = 0.02


@contextmanager
def lean_start() -> Iterator[None]:
    """Ray started in this block is lean; as usual in versions that do not know the parameters."""
    parameter: Any = import_module("ray._private.parameter")
    services: Any = import_module("ray._private.services")
    whole, replaced = parameter.RayParams, ("start_api_server", "get_node", "start_ray_process")
    if not _LEFT_OUT.keys() <= inspect.signature(whole).parameters.keys():
        yield
        return
    kept = {name: getattr(services, name) for name in replaced}
    parameter.RayParams = functools.partial(whole, **_LEFT_OUT)
    services.start_api_server = _no_server
    services.get_node = functools.partial(_node_at_once, kept["get_node"])
    services.start_ray_process = functools.partial(_with_idle_agents, kept["start_ray_process"])
    try:
        yield
    finally:
        parameter.RayParams = whole
        for name, function in kept.items():
            setattr(services, name, function)


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


def _with_idle_agents(
    start: Callable[..., Any], command: Sequence[str], *arguments: Any, **options: Any
) -> Any:
    """Ray's own start of one of its processes; a scheduler gets agents that do nothing."""
    given = dict(part.partition("=")[::2] for part in command)
    if given.keys() >= {*_AGENTS, "--session_dir", "--node_id"}:
        idle = (sys.executable, "-I", "-S", str(_IDLE), given["--session_dir"], given["--node_id"])
        agents = {name: subprocess.list2cmdline((*idle, *ports)) for name, ports in _AGENTS.items()}
        named = [(part, part.partition("=")[0]) for part in command]
        command = [f"{name}={agents[name]}" if name in agents else part for part, name in named]
    return start(command, *arguments, **options)

"""Ray as this project runs it: quiet, at normal priority, without touching signal handlers."""

from __future__ import annotations

import logging
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.lifetime.scratch import Scratch, sweep

CPU_RESOURCE, NPU_RESOURCE = "gaf-cpu", "npu"
RESOURCES = {CPU_RESOURCE: 1.0, NPU_RESOURCE: 1.0}
"""What a node offers: its CPU, and the simulator of NPUs, which needs none."""
_ANSWER_SECONDS = 5.0
_OBJECT_STORE_BYTES = 80 << 20
_LONGEST_SOCKET = (
    "/gaf-scratch-ray-12345678/session_2000-01-01_00-00-00_123456_1234567/sockets/plasma_store"
)
_LONGEST_PLACE = 107 - len(_LONGEST_SOCKET)  # bytes: a socket's path has no more than 107

# Defaults; what the operator has set stays. Workers run at nice +15 otherwise, which would make
# every measurement yield to whatever else runs. A socket that is not there yet is tried again 20 ms
# later, not a second later, and as long as by default: ten seconds.
_ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_raylet_client_connect_timeout_milliseconds": "20",
    "RAY_raylet_client_num_connect_attempts": "500",
}


def checked_address(address: str) -> str:
    """An address of a cluster's head that can be joined: host:port where something listens, or
    whatever else Ray takes. Raises InvalidInput for one that it never takes, Unavailable where none
    answers; Ray itself tells of either in a trace, after half a minute."""
    host, _, port = address.rpartition(":")
    if address in ("auto", "local") or "://" in address:
        return address
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise InvalidInput(f"address {address!r:.200}: expected host:port, as in 10.0.0.1:6379")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
    except (OSError, UnicodeError) as error:  # the latter for a name that no host can have
        raise Unavailable(f"no Ray cluster at {address}: {error}") from error
    return address


def prepare_environment() -> None:
    """Set what Ray reads from the environment, before it is imported."""
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)


@contextmanager
def ray_runtime(
    address: str | None = None, resources: Mapping[str, float] | None = None
) -> Iterator[None]:
    """Ray for the duration of a block: a local one on loopback, or the cluster at `address`.

    A local one offers `RESOURCES` unless `resources` says otherwise. Ray replaces the
    SIGTERM handler when it starts on the main thread; it is put back. Raises Unavailable where Ray
    does not start, InvalidInput for an address that is none.
    """
    prepare_environment()
    import ray

    from tuner.devices.ray_lean import lean_start

    options: dict[str, Any] = {"address": address and checked_address(address)}
    if address is None:
        options = {
            "address": "local",  # None would join whatever cluster this machine ran last
            "resources": dict(resources or RESOURCES),
            "num_cpus": 1,  # so many idle workers Ray starts beforehand; a device needs one
            "_node_ip_address": "127.0.0.1",
            "object_store_memory": _OBJECT_STORE_BYTES,
            "include_dashboard": False,
        }
    with _session_folder(address) as folder:
        with _kept_handlers(), lean_start():
            try:
                ray.init(
                    log_to_driver=False, logging_level=logging.ERROR, _temp_dir=folder, **options
                )
            except Exception as error:  # Ray raises plain ones where a server is slow
                raise Unavailable(f"Ray did not start: {error}") from error
        try:
            yield
        finally:
            with _kept_handlers():
                ray.shutdown()
            sweep(Path(tempfile.gettempdir()))  # Ray kills what would remove its own folder


@contextmanager
def _session_folder(address: str | None) -> Iterator[str | None]:
    """Where a local Ray keeps its sockets and logs, which it would leave behind for ever; None for
    Ray's own choice, in a cluster and where there is no room with a short path."""
    named = (os.environ.get("RAY_TMPDIR"), tempfile.gettempdir(), "/tmp")
    short = [Path(name) for name in named if name and len(os.fsencode(name)) <= _LONGEST_PLACE]
    if address is not None or not short:
        yield None
        return
    try:
        scratch = Scratch("ray", short[0])
    except OSError as error:
        raise Unavailable(f"Ray did not start: {error}") from error
    with scratch as folder:
        yield str(folder)


@contextmanager
def _kept_handlers() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

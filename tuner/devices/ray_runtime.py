"""Ray as this project runs it: quiet, at normal priority, without touching signal handlers."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kernel_gen.errors import Unavailable

CPU_RESOURCE, NPU_RESOURCE = "gaf-cpu", "npu"
RESOURCES = {CPU_RESOURCE: 1.0, NPU_RESOURCE: 1.0}
"""What a node offers: its CPU, and the simulator of NPUs, which needs none."""
_OBJECT_STORE_BYTES = 80 << 20

# Defaults; what the operator has set stays. Workers run at nice +15 otherwise, which would make
# every measurement yield to whatever else runs.
_ENVIRONMENT = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


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
    does not start.
    """
    prepare_environment()
    import ray

    from tuner.devices.ray_lean import lean_start

    options: dict[str, Any] = {"address": address}
    if address is None:
        options = {
            "resources": dict(resources or RESOURCES),
            "num_cpus": 1,  # so many idle workers Ray starts beforehand; a device needs one
            "_node_ip_address": "127.0.0.1",
            "object_store_memory": _OBJECT_STORE_BYTES,
            "include_dashboard": False,
        }
    with _kept_handlers(), lean_start():
        try:
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
        except Exception as error:  # Ray raises plain ones where a server is slow
            raise Unavailable(f"Ray did not start: {error}") from error
    try:
        yield
    finally:
        with _kept_handlers():
            ray.shutdown()


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

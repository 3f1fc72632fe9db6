"""The contenders: ours and its peers. Each is built in a process of its own, from one `Work`."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from benchmarks.suite.peers.work import Built, Work

OURS = "autofusion"

# contender: module and function that build it. Modules are imported in the contender's process
# only, so that a peer that is not installed is missing there and nowhere else.
_BUILDERS = {
    OURS: ("ours", "build"),
    "eager": ("torch_peers", "eager"),
    "inductor": ("torch_peers", "inductor"),
    "inductor-max": ("torch_peers", "inductor_max"),
    "onnxruntime": ("onnxruntime_peer", "build"),
    "openvino": ("openvino_peer", "build"),
    "xla": ("xla_peer", "build"),
}
CONTENDERS = tuple(_BUILDERS)

MEASURE_WHILE_BUILDING = (OURS, "inductor-max")
"""Contenders that time candidates while they are set up: nothing may run beside them."""


def builder(contender: str) -> Callable[[Work], Built]:
    """What builds `contender`; raises ImportError where its package is not installed."""
    module, function = _BUILDERS[contender]
    found: Callable[[Work], Built] = getattr(
        importlib.import_module(f"benchmarks.suite.peers.{module}"), function
    )
    return found

"""graph-autofusion: searches for the fastest way to fuse, tile and run a tensor program.

import graph_autofusion as gaf
fast = gaf.optimize(model)
y = fast(x)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from graph_autofusion.api import capture, optimize
from graph_autofusion.export import export_graph, print_graph
from graph_autofusion.module import OptimizedModule
from graph_autofusion.report import FusionReport
from graph_autofusion.runner import GafWarning
from kernel_gen.errors import (
    GafError,
    InternalError,
    InvalidGraph,
    InvalidInput,
    InvalidRules,
    Unavailable,
    UnsupportedModel,
    UntrustedBundle,
)
from kernel_gen.records import Budget

if TYPE_CHECKING:
    from graph_autofusion.bundles import load
    from graph_autofusion.client import Client

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "Client",
    "FusionReport",
    "GafError",
    "GafWarning",
    "InternalError",
    "InvalidGraph",
    "InvalidInput",
    "InvalidRules",
    "OptimizedModule",
    "Unavailable",
    "UnsupportedModel",
    "UntrustedBundle",
    "capture",
    "export_graph",
    "load",
    "optimize",
    "print_graph",
]


def __getattr__(name: str) -> Any:
    # Both need the REST client and cryptography, which a process may never use.
    if name == "Client":
        from graph_autofusion.client import Client

        return Client
    if name == "load":
        from graph_autofusion.bundles import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

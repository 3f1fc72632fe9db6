"""graph-autofusion: searches for the fastest way to fuse, tile and run a tensor program.

import graph_autofusion as gaf
fast = gaf.optimize(model)
y = fast(x)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    from graph_autofusion.api import optimize
    from graph_autofusion.bundles import load
    from graph_autofusion.capturing import capture
    from graph_autofusion.client import Client
    from graph_autofusion.export import export_graph, print_graph
    from graph_autofusion.module import OptimizedModule
    from graph_autofusion.notices import GafWarning
    from graph_autofusion.report import FusionReport

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


# Loaded at first use: most need torch, which no command but those that capture or run a model does;
# `Client` and `load` need the REST client and cryptography, which a process may never use.
_HOMES = {
    "Client": "client",
    "FusionReport": "report",
    "GafWarning": "notices",
    "OptimizedModule": "module",
    "capture": "capturing",
    "export_graph": "export",
    "load": "bundles",
    "optimize": "api",
    "print_graph": "export",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

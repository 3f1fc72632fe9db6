"""graph-autofusion: searches for the fastest way to fuse, tile and run a tensor program.

import graph_autofusion as gaf
fast = gaf.optimize(model)
y = fast(x)
"""

from __future__ import annotations

from graph_autofusion.api import capture, optimize
from graph_autofusion.client import Client
from graph_autofusion.export import export_graph, print_graph
from graph_autofusion.load import load
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

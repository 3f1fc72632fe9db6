"""Lowerings of aten operators to primitives and composites; importing a module registers its rules.

core: bound arguments and the registry · unary · elementwise · activations · casts · views · parts ·
borders · reductions · contractions · norms · pooling · losses ·
indexing (also tensors made of nothing) · scattering
"""

from kernel_gen.frontend.lower import (
    activations,
    borders,
    casts,
    contractions,
    elementwise,
    indexing,
    losses,
    norms,
    parts,
    pooling,
    reductions,
    scattering,
    unary,
    views,
)

__all__ = [
    "activations",
    "borders",
    "casts",
    "contractions",
    "elementwise",
    "indexing",
    "losses",
    "norms",
    "parts",
    "pooling",
    "reductions",
    "scattering",
    "unary",
    "views",
]

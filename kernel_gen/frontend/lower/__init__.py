"""Lowerings of aten operators to primitives and composites; importing a module registers its rules.

core: bound arguments and the registry · elementwise · views · reductions · contractions · norms ·
pooling · losses · indexing (also tensors made of nothing)
"""

from kernel_gen.frontend.lower import (
    contractions,
    elementwise,
    indexing,
    losses,
    norms,
    pooling,
    reductions,
    views,
)

__all__ = [
    "contractions",
    "elementwise",
    "indexing",
    "losses",
    "norms",
    "pooling",
    "reductions",
    "views",
]

"""Lowerings of aten operators to primitives and composites; importing a module registers its rules.

core: bound arguments and the registry · elementwise · views · reductions · contractions · norms ·
pooling · indexing (also tensors made of nothing)
"""

from kernel_gen.frontend.lower import (
    contractions,
    elementwise,
    indexing,
    norms,
    pooling,
    reductions,
    views,
)

__all__ = ["contractions", "elementwise", "indexing", "norms", "pooling", "reductions", "views"]

"""Lowerings of aten operators to primitives and composites; importing a module registers its rules.

core: bound arguments and the registry · elementwise · views · reductions · contractions · norms ·
indexing (also tensors made of nothing)
"""

from kernel_gen.frontend.lower import (
    contractions,
    elementwise,
    indexing,
    norms,
    reductions,
    views,
)

__all__ = ["contractions", "elementwise", "indexing", "norms", "reductions", "views"]

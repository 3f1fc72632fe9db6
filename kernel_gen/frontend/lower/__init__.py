"""Lowerings of aten operators to primitives and composites; importing a module registers its rules.

core: bound arguments and the registry · unary · elementwise · activations · casts · views ·
windows · resizing · parts · borders · reductions · running sums · contractions, also
attention_backward · distances · convolutions · norms · pooling, also adaptive · losses ·
quantisation · indexing (also tensors made of nothing) · scattering · cells of recurrent layers ·
complex_pairs
"""

from kernel_gen.frontend.lower import (
    activations,
    adaptive,
    attention_backward,
    borders,
    casts,
    cells,
    complex_pairs,
    contractions,
    convolutions,
    distances,
    elementwise,
    indexing,
    library,
    losses,
    norms,
    parts,
    pooling,
    quantisation,
    reductions,
    resizing,
    running,
    scattering,
    unary,
    views,
    windows,
)

__all__ = [
    "activations",
    "adaptive",
    "attention_backward",
    "borders",
    "casts",
    "cells",
    "complex_pairs",
    "contractions",
    "convolutions",
    "distances",
    "elementwise",
    "indexing",
    "library",
    "losses",
    "norms",
    "parts",
    "pooling",
    "quantisation",
    "reductions",
    "resizing",
    "running",
    "scattering",
    "unary",
    "views",
    "windows",
]

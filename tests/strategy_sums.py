"""What the order of adding changes: graphs whose sums are off by rounding errors of their terms."""

from __future__ import annotations

import numpy as np

from kernel_gen.ir.arrays import constant_array, numpy_dtype
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.ir.ops import OPS, OpKind
from kernel_gen.ir.types import static_shape
from tests.ir.expanded import expand_graph

_COMPOSITES = frozenset(name for name, op in OPS.items() if op.kind is OpKind.COMPOSITE)
_SUMS = ("sum", "matmul", "convolution")
_ROUNDING = {DType.F32: 2.0**-24, DType.F64: 2.0**-53}  # narrow floats are summed in fp32


def with_other_sums(graph: Graph) -> Graph | None:
    """The static graph with each sum of floats moved, up or down at random, by a rounding error of
    Σ |term|; None where it has no such sum.

    Rounding a sum shows an error of its own size only. Where terms cancel that is the smaller part:
    each partial sum was rounded to its size, in whatever order they were added.
    """
    plain = expand_graph(graph, _COMPOSITES)
    if not any(_is_sum(plain, node) for node in plain.nodes):
        return None
    b, signs = GraphBuilder(), np.random.default_rng(0)
    new = {i.value: b.input(plain.type_of(i.value), i.kind, i.domain) for i in plain.inputs}
    for constant in plain.constants:
        type = plain.type_of(constant.value)
        new[constant.value] = b.constant(constant_array(constant, type))
    for node in plain.nodes:
        new[node.output] = b.apply(node.op, tuple(new[v] for v in node.inputs), dict(node.attrs))
        if _is_sum(plain, node):
            new[node.output] = _moved(b, node, new, signs)
    for output in plain.outputs:
        b.output(new[output.value])
    return b.build()


def _is_sum(graph: Graph, node: Node) -> bool:
    return node.op in _SUMS and graph.type_of(node.output).dtype in _ROUNDING


def _moved(b: GraphBuilder, node: Node, new: dict[int, int], signs: np.random.Generator) -> int:
    type = b.type_of(new[node.output])
    sizes = b.apply(node.op, tuple(b.op("abs", new[v]) for v in node.inputs), dict(node.attrs))
    share = signs.choice([-1.0, 1.0], static_shape(type.shape)) * _ROUNDING[type.dtype]
    error = b.op("mul", sizes, b.constant(np.asarray(share, numpy_dtype(type.dtype))))
    return b.op("add", new[node.output], error)

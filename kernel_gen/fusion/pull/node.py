"""`pull_node`: one element of a node's value, whatever the node's op."""

from __future__ import annotations

from kernel_gen.fusion.pull.convolution import pull_convolution
from kernel_gen.fusion.pull.moves import pull_concat, pull_indexed, pull_pad, pull_view
from kernel_gen.fusion.pull.puller import Guards, Puller
from kernel_gen.fusion.pull.sums import pull_product, pull_reduction
from kernel_gen.fusion.pull.values import pull_cast, pull_source, rounded
from kernel_gen.fusion.region import Primitive
from kernel_gen.fusion.views import Indices, broadcast_index
from kernel_gen.ir.graph import Node
from kernel_gen.ir.ops import OpKind, spec

_EXACT = frozenset((OpKind.VIEW, OpKind.JOIN, OpKind.INDEXED))  # results need no rounding


def pull_node(puller: Puller, primitive: Primitive, at: Indices, guards: Guards) -> int:
    """The statement for element `at` of the primitive's value, rounded where the nest is strict."""
    node = primitive.node
    kind = spec(node.op).kind
    made = _made(puller, primitive, kind, at, guards)
    if puller.strict and kind not in _EXACT and not _is_number(node):
        return rounded(puller, made, puller.dtype(node.output))
    return made


def _made(puller: Puller, primitive: Primitive, kind: OpKind, at: Indices, guards: Guards) -> int:
    node = primitive.node
    match kind:
        case OpKind.CAST:
            return pull_cast(puller, primitive, at, guards)
        case OpKind.SOURCE:
            return pull_source(puller, node, at)
        case OpKind.REDUCTION:
            return pull_reduction(puller, node, at, guards)
        case OpKind.CONTRACTION:
            product = pull_convolution if node.op == "convolution" else pull_product
            return product(puller, node, at, guards)
        case OpKind.JOIN:
            return pull_concat(puller, node, at, guards)
        case OpKind.INDEXED:
            return pull_indexed(puller, node, at, guards)
        case OpKind.VIEW:
            view = pull_pad if node.op == "pad" else pull_view
            return view(puller, node, at, guards)
    return _pull_elementwise(puller, node, at, guards)


def _pull_elementwise(puller: Puller, node: Node, at: Indices, guards: Guards) -> int:
    """Operands are broadcast to the node's shape."""
    result = puller.shape(node.output)
    args = tuple(
        puller.pull(value, broadcast_index(puller.shape(value), result, at), guards)
        for value in node.inputs
    )
    return puller.nest.compute(node.op, args, puller.dtype(node.output).compute)


def _is_number(node: Node) -> bool:
    """Whether the node is a Python number beside a tensor, which eager does not round."""
    return node.op == "full" and node.attr("shape") == ()

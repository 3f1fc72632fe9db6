"""What the library runs as one call: a convolution, a sum with another image, an activation.

    relu(convolution(x, w, b) + r)

oneDNN applies the sum, or most activations, to the product while it is in cache. Its relu and the
activations built on bounds turn NaN into a number, which eager's do not; those follow in place, as
does an activation of the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, Node

APPLIED = frozenset(("sigmoid", "tanh", "hardswish", "silu", "leaky_relu", "gelu"))
"""Activations that oneDNN applies as eager does, NaN included."""

FOLLOWING = frozenset(("relu", "relu6", "hardsigmoid", "clamp"))
"""Activations that run in place on the result."""


@dataclass(frozen=True, slots=True)
class FusedConvolution:
    """Positions of the nodes; `residual` is the value that is added to the convolution's."""

    convolution: int
    addition: int | None = None
    residual: int | None = None
    activation: int | None = None

    @property
    def nodes(self) -> tuple[int, ...]:
        """The positions, ascending as data flows."""
        found = (self.convolution, self.addition, self.activation)
        return tuple(position for position in found if position is not None)

    def is_one_kernel(self, program: Graph) -> bool:
        """Whether nothing follows the library's kernel."""
        if self.activation is None:
            return True
        return self.addition is None and program.nodes[self.activation].op in APPLIED


def fused_convolution(program: Graph, nodes: Sequence[int]) -> FusedConvolution | None:
    """The nodes as one call of the library's; None if they are anything else, or one node."""
    first, *rest = nodes
    if not rest or not is_for_library(program, first):
        return None
    found: FusedConvolution | None = FusedConvolution(first)
    for position in rest:
        found = None if found is None else extended(program, found, position)
    return found


def is_for_library(program: Graph, position: int) -> bool:
    """Whether the node is a convolution of fp32."""
    node = program.nodes[position]
    return node.op == "convolution" and program.type_of(node.output).dtype is DType.F32


def extended(program: Graph, call: FusedConvolution, position: int) -> FusedConvolution | None:
    """The call with the node at `position`, which reads its result, applied to it; else None."""
    node, made = program.nodes[position], program.nodes[call.nodes[-1]].output
    if call.activation is not None or made not in node.inputs:
        return None
    if node.op in APPLIED | FOLLOWING:
        return FusedConvolution(call.convolution, call.addition, call.residual, position)
    if node.op != "add" or call.addition is not None:
        return None
    other = _other(node, made)
    if other is None or program.type_of(other).shape != program.type_of(made).shape:
        return None
    return FusedConvolution(call.convolution, position, other)


def _other(node: Node, value: int) -> int | None:
    left, right = node.inputs
    if left == right:
        return None
    return right if left == value else left

"""Nodes that read a common value and may share the read, though neither reads the other."""

from __future__ import annotations

from kernel_gen.fusion.dag import mask_of
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.ir.ops import OpKind, spec


def sibling_masks(program: Graph) -> list[int]:
    """For each node, as a mask, those that read a value with it and run over as many elements, or
    reduce it too: sums of rows and of columns can share one read."""
    masks = [0] * len(program.nodes)
    for users in program.consumers().values():
        reducing = mask_of(node for node in users if _reduces(program.nodes[node]))
        domains = {node: _domain(program, program.nodes[node]) for node in users}
        sharing: dict[object, int] = {}
        for node, domain in domains.items():
            sharing[domain] = sharing.get(domain, 0) | (1 << node)
        for node, domain in domains.items():
            alike = sharing[domain] | (reducing if reducing >> node & 1 else 0)
            masks[node] |= alike & ~(1 << node)
    return masks


def _domain(program: Graph, node: Node) -> object:
    """The shape that a node's loops run over, for all its outputs."""
    values = node.inputs[:1] if _reduces(node) else node.outputs
    return tuple(program.type_of(value).shape for value in values)


def _reduces(node: Node) -> bool:
    return spec(node.op).kind is OpKind.REDUCTION or node.op in ("mean", "var", "std")

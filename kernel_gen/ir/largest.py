"""The largest elements and their positions: two nodes of a graph, one call of a library's.

v = topk(x, dim=1, k=8)    p = argtopk(x, dim=1, k=8)   ->   v, p = call(x)
"""

from __future__ import annotations

from collections.abc import Iterator

from kernel_gen.ir.graph import Graph


def largest_pairs(program: Graph) -> Iterator[tuple[int, int]]:
    """Positions of each `topk` and of the `argtopk` of the same elements."""
    positions = {
        (node.inputs, node.attrs): place
        for place, node in enumerate(program.nodes)
        if node.op == "argtopk"
    }
    for place, node in enumerate(program.nodes):
        beside = positions.get((node.inputs, node.attrs)) if node.op == "topk" else None
        if beside is not None:
            yield place, beside

"""Reductions of constants, and framework nodes on constants alone, are computed once, at capture.

Before: sort(ne(iota, …)) runs in torch in each call; after: a constant. Elementwise primitives
stay, since kernels compute such masks faster than they read them.
"""

from __future__ import annotations

import dataclasses

import torch

from kernel_gen.frontend.inputs import LITERAL_BYTES, to_numpy
from kernel_gen.frontend.torch_run import constant_tensor, run
from kernel_gen.ir.arrays import array_bytes
from kernel_gen.ir.graph import Constant, Graph
from kernel_gen.ir.ops import OpKind, spec

_MOST_BYTES = 256 << 20  # of what is computed on the way: a file may name any extents
_FOLDED = (OpKind.FRAMEWORK, OpKind.REDUCTION)


def fold_constants(graph: Graph) -> Graph:
    """Replaces deterministic framework nodes and reductions without inputs among their sources by
    constants, as far as a graph may hold these."""
    constant = [] if graph.symbols else _constant_nodes(graph)
    wanted = [i for i in constant if spec(graph.nodes[i].op).kind in _FOLDED]
    if not wanted:
        return graph
    env = {item.value: constant_tensor(item, graph.type_of(item.value)) for item in graph.constants}
    with torch.no_grad():
        run(graph, _needed(graph, wanted), env)
    room = LITERAL_BYTES - sum(len(item.data) for item in graph.constants)
    folded: set[int] = set()
    added: list[Constant] = []
    for i in wanted:
        values = graph.nodes[i].outputs
        size = sum(graph.type_of(value).nbytes for value in values)
        if size <= room:
            room -= size
            folded.add(i)
            added += [Constant(value, array_bytes(to_numpy(env[value]))) for value in values]
    return dataclasses.replace(
        graph,
        nodes=tuple(node for i, node in enumerate(graph.nodes) if i not in folded),
        constants=(*graph.constants, *added),
    )


def _constant_nodes(graph: Graph) -> list[int]:
    """Nodes that depend on no input, draw no random numbers and give no huge results."""
    known = {item.value for item in graph.constants}
    found: list[int] = []
    for i, node in enumerate(graph.nodes):
        if node.attr("code") == "random" or any(value not in known for value in node.inputs):
            continue
        if sum(graph.type_of(v).nbytes for v in node.outputs) <= _MOST_BYTES:
            known.update(node.outputs)
            found.append(i)
    return found


def _needed(graph: Graph, wanted: list[int]) -> list[int]:
    """The wanted nodes and those they read from, in order."""
    producers = graph.producers()
    needed: set[int] = set()
    stack = list(wanted)
    while stack:
        i = stack.pop()
        if i not in needed:
            needed.add(i)
            stack += [producers[v] for v in graph.nodes[i].inputs if v in producers]
    return sorted(needed)

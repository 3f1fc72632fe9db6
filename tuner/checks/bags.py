"""Bags of embeddings that torch runs: the values that say where bags begin. It refuses others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernel_gen.ir.graph import Attr, Graph, Node
from kernel_gen.ir.types import Dim

_TARGETS = ("aten.embedding_bag", "aten._embedding_bag")
_INDICES, _OFFSETS, _CLOSED = 1, 2, 7  # arguments of each form of the operator


@dataclass(frozen=True, slots=True)
class Starts:
    """Where bags begin among `count` positions: ascending, first 0. The last of `closed` ones is
    `count`, where no bag begins."""

    count: int
    closed: bool = False

    def draw(self, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
        found = np.sort(rng.integers(0, self.count, size, endpoint=True))
        found[:1] = 0
        if self.closed:
            found[1:][-1:] = self.count
        return found


def bag_starts(graph: Graph) -> dict[int, Starts]:
    """The values that hold the starts of bags, back to their inputs."""
    found: dict[int, Starts] = {}
    for node in reversed(graph.nodes):
        for _, offsets, count, closed in _bags(graph, node):
            if isinstance(count, int):
                found[offsets] = Starts(count, closed)
        if node.op in ("reshape", "cast") and node.output in found:
            found.setdefault(node.inputs[0], found[node.output])
    return found


def bag_positions(graph: Graph, node: Node) -> Iterator[tuple[int, Dim]]:
    """Values that a bag of embeddings reads as positions, with the extent of what they address."""
    for indices, offsets, count, _ in _bags(graph, node):
        yield indices, graph.type_of(node.inputs[0]).shape[0]
        if isinstance(count, int):
            yield offsets, count + 1


def _bags(graph: Graph, node: Node) -> Iterator[tuple[int, int, Dim, bool]]:
    """Indices, offsets, number of indices, and whether the last offset ends the last bag."""
    if node.op != "framework" or not str(node.attr("target")).startswith(_TARGETS):
        return
    match node.attr("args"):
        case (tuple() as given, _) if len(given) > _CLOSED:
            indices, offsets = (_value(node, given[at]) for at in (_INDICES, _OFFSETS))
            if indices is not None and offsets is not None:
                count = graph.type_of(indices).shape[0]
                yield indices, offsets, count, given[_CLOSED] is True


def _value(node: Node, argument: Attr) -> int | None:
    match argument:
        case ("value", int() as place):
            return node.inputs[place]
    return None

"""Reachability in a program, by bit masks over node indices: bit i stands for `Graph.nodes[i]`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from kernel_gen.ir.graph import Graph


def mask_of(nodes: Iterable[int]) -> int:
    """The mask with the bits of `nodes`."""
    return reduce(lambda mask, node: mask | (1 << node), nodes, 0)


def bits(mask: int) -> Iterator[int]:
    """Set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Dag:
    """Direct and transitive producers and consumers of each node, as masks."""

    def __init__(self, program: Graph) -> None:
        made_by = program.producers()
        count = len(program.nodes)
        self.producers = [
            mask_of(made_by[value] for value in node.inputs if value in made_by)
            for node in program.nodes
        ]
        self.consumers = [0] * count
        self.ancestors = [0] * count
        self.descendants = [0] * count
        for node, direct in enumerate(self.producers):
            for producer in bits(direct):
                self.consumers[producer] |= 1 << node
                self.ancestors[node] |= self.ancestors[producer] | (1 << producer)
        for node in reversed(range(count)):
            for consumer in bits(self.consumers[node]):
                self.descendants[node] |= self.descendants[consumer] | (1 << consumer)

    def closure(self, mask: int) -> int:
        """The smallest convex superset: with all nodes on paths between the given ones."""
        above = below = 0
        for node in bits(mask):
            above |= self.ancestors[node]
            below |= self.descendants[node]
        return mask | (above & below)

    def between(self, one: int, other: int) -> int:
        """The nodes on paths from one of the two to the other."""
        forth = self.descendants[one] & self.ancestors[other]
        return forth | (self.descendants[other] & self.ancestors[one])

    def around(self, mask: int) -> int:
        """Direct producers and consumers of the nodes of `mask` that are not in it."""
        found = 0
        for node in bits(mask):
            found |= self.producers[node] | self.consumers[node]
        return found & ~mask

"""What groups move through memory in their place, which their times alone do not hold.

A kernel that is timed alone finds its operands in the caches. In a program they are where they were
left: what was touched long ago, or is read for the first time in a call, comes from memory, and
what is read late goes there. A relu of 6 MB takes 81 µs alone and 240 to 400 behind a convolution,
which is what moving its bytes takes; a convolution waits for its sums wherever its operands are.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Collection, Iterator

from kernel_gen.fusion.group import Group
from kernel_gen.fusion.region import constant_values
from kernel_gen.fusion.write_back import written_back
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.ops import OpKind, spec


class Traffic:
    """Bytes that groups of `program` move to and from memory, if caches hold `cache_bytes` and
    memory moves `bytes_per_second`.

    Nodes are taken in their order. A value is in the caches if what was touched since its last
    use, that use and this one included, fits there; across calls, if all of the program does.
    """

    def __init__(self, program: Graph, cache_bytes: float, bytes_per_second: float) -> None:
        self._program = program
        self._cache_bytes, self._rate = cache_bytes, bytes_per_second
        self._roots = _roots(program)
        constant = constant_values(program)
        self._nodes = [n for n in range(len(program.nodes)) if _runs(program, n, constant)]
        self._uses: dict[int, list[int]] = {}
        sizes: list[int] = []
        for place, node in enumerate(self._nodes):
            touched = dict(self._touched(node))
            sizes.append(sum(touched.values()))
            for value in touched:
                self._uses.setdefault(value, []).append(place)
        self._before = [0, *itertools.accumulate(sizes)]
        self._results = {self._roots[output.value] for output in program.outputs}
        self._written_back = written_back(program)

    @property
    def is_cached(self) -> bool:
        """Whether the caches hold all that a call touches: then times alone are as in place."""
        return self._before[-1] <= self._cache_bytes

    def us(self, group: Group) -> float:
        """The microseconds that what `group` moves to and from memory takes at least."""
        if self.is_cached or not group.nodes:
            return 0.0
        moved = sum(self._read(group).values()) + sum(self._written(group).values())
        return 1e6 * moved / self._rate

    def writes_back(self, group: Group) -> bool:
        """Whether results of `group` replace inputs."""
        return any(value in self._written_back for value in group.outputs)

    def back_us(self, group: Group, made_there: Collection[int]) -> float:
        """The microseconds of copying results of `group` into the inputs that they replace, but for
        those that are `made_there`."""
        copied = [v for v in group.outputs if v in self._written_back and v not in made_there]
        return 2e6 * sum(map(self._nbytes, copied)) / self._rate

    def _read(self, group: Group) -> dict[int, int]:
        """Bytes per value that come from memory."""
        outside = {self._roots[value] for value in group.inputs}
        found: dict[int, int] = {}
        for node in group.nodes:
            place = bisect_left(self._nodes, node)
            if place == len(self._nodes) or self._nodes[place] != node:
                continue
            for value, nbytes in self._touched(node):
                if value in outside and value not in found:
                    found[value] = nbytes if self._comes_from_memory(value, place) else 0
        return found

    def _written(self, group: Group) -> dict[int, int]:
        """Bytes per value that go to memory."""
        return {
            value: self._nbytes(value)
            for value in map(self._roots.__getitem__, group.outputs)
            if self._goes_to_memory(value)
        }

    def _comes_from_memory(self, value: int, place: int) -> bool:
        uses = self._uses[value]
        earlier = bisect_left(uses, place)
        return earlier == 0 or self._between(uses[earlier - 1], place) > self._cache_bytes

    def _goes_to_memory(self, value: int) -> bool:
        uses = self._uses.get(value, ())
        if len(uses) < 2:
            return value in self._results
        return self._between(uses[0], uses[1]) > self._cache_bytes

    def _between(self, first: int, last: int) -> int:
        return self._before[last + 1] - self._before[first]

    def _touched(self, node: int) -> Iterator[tuple[int, int]]:
        """Values behind views that a node reads and makes, with how many bytes of each."""
        made = self._program.nodes[node]
        for position, value in enumerate(made.inputs):
            seen = value
            if spec(made.op).kind is OpKind.INDEXED and position == 0:
                seen = made.output  # of a table as much as is made of it
            root = self._roots[value]
            yield root, min(self._nbytes(root), self._nbytes(seen))
        for value in made.outputs:
            yield value, self._nbytes(value)

    def _nbytes(self, value: int) -> int:
        return self._program.type_of(value).nbytes


def _roots(program: Graph) -> list[int]:
    """For each value the one that it is a view of, through chains; itself if of none."""
    roots = list(range(len(program.values)))
    for node in program.nodes:
        if spec(node.op).kind is OpKind.VIEW:
            for value in node.outputs:
                roots[value] = roots[node.inputs[0]]
    return roots


def _runs(program: Graph, node: int, constant: frozenset[int]) -> bool:
    """Whether a node is part of each call and touches memory."""
    made = program.nodes[node]
    moves = spec(made.op).kind not in (OpKind.VIEW, OpKind.SOURCE)
    return moves and not constant.issuperset(made.outputs)

"""Parts of a program as programs of their own, for timing them through the framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kernel_gen.ir.graph import Constant, Graph, Input, InputKind, Node, Output
from kernel_gen.ir.types import ValueDomain


class Extraction:
    """Parts of one graph. `domains` has one entry per value of `graph`."""

    def __init__(self, graph: Graph, domains: Sequence[ValueDomain]) -> None:
        self._graph, self._domains = graph, domains
        self._fixed = {constant.value: constant for constant in graph.constants}
        self._kinds = {given.value: given.kind for given in graph.inputs}
        self._digests: dict[Graph, str] = {}

    def digest(self, part: Graph) -> str:
        """`part.digest`, taken once for equal parts: to compare two takes far less."""
        return self._digests.get(part) or self._digests.setdefault(part, part.digest)

    def part(self, nodes: Sequence[int], inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
        """The nodes (indices, ascending) as a graph from `inputs` to `outputs` (values of `graph`).

        Inputs that were parameters, buffers or constants stay what they are; the program's small
        constants come along.
        """
        graph, fixed = self._graph, self._fixed
        numbers: dict[int, int] = {}

        def number(value: int) -> int:
            return numbers.setdefault(value, len(numbers))

        made_inputs = tuple(
            Input(number(v), self._kinds.get(v, InputKind.USER), self._domains[v])
            for v in inputs
            if v not in fixed
        )
        used = {v for v in inputs if v in fixed}
        used |= {v for n in nodes for v in graph.nodes[n].inputs if v in fixed}
        constants = tuple(Constant(number(v), fixed[v].data) for v in sorted(used))
        made_nodes = tuple(_renumbered(graph.nodes[n], number) for n in sorted(nodes))
        made_outputs = tuple(Output(number(v)) for v in outputs)
        values = tuple(graph.type_of(v) for v in numbers)
        return Graph(values, made_inputs, made_nodes, made_outputs, constants, graph.symbols)


def _renumbered(node: Node, number: Callable[[int], int]) -> Node:
    return Node(
        node.op,
        tuple(number(v) for v in node.inputs),
        tuple(number(v) for v in node.outputs),
        node.attrs,
        node.name,
    )

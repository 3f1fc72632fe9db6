"""Graphs whose composites are written as primitives."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Mapping, Sequence

from kernel_gen.ir.expand import expand
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.ir.types import TensorType
from kernel_gen.ir.verify import verify


def expand_graph(graph: Graph, ops: Container[str]) -> Graph:
    """The graph with every composite whose op is in `ops` replaced by its primitives.

    Inputs, outputs and constants keep their order; values are renumbered. The new nodes bear the
    composite's name.
    """
    rewriter = _Rewriter(graph)
    for node in graph.nodes:
        if node.op in ops:
            rewriter.inline(node)
        else:
            rewriter.keep(node)
    return rewriter.finish()


class _Rewriter:
    """Copies a graph node by node; `_new` maps old values to new ones."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._values: list[TensorType] = []
        self._nodes: list[Node] = []
        self._new: dict[int, int] = {}
        for value in [item.value for item in graph.inputs]:
            self._new[value] = self._value(graph.values[value])
        for value in [item.value for item in graph.constants]:
            self._new[value] = self._value(graph.values[value])

    def keep(self, node: Node) -> None:
        types = [self._graph.values[value] for value in node.outputs]
        outputs = self._append(node, self._new, types, node.name)
        self._new.update(zip(node.outputs, outputs, strict=True))

    def inline(self, node: Node) -> None:
        """Copy the composite's primitives; the last value keeps the composite's type."""
        body = expand(node, [self._graph.values[value] for value in node.inputs])
        local = {
            item.value: self._new[value]
            for item, value in zip(body.inputs, node.inputs, strict=True)
        }
        result = body.outputs[0].value
        for inner in body.nodes:
            types = [body.values[value] for value in inner.outputs]
            if inner.output == result:
                types = [self._graph.values[node.output]]
            local[inner.output] = self._append(inner, local, types, node.name)[0]
        self._new[node.output] = local[result]

    def finish(self) -> Graph:
        graph = self._graph
        rewritten = Graph(
            tuple(self._values),
            tuple(dataclasses.replace(x, value=self._new[x.value]) for x in graph.inputs),
            tuple(self._nodes),
            tuple(dataclasses.replace(x, value=self._new[x.value]) for x in graph.outputs),
            tuple(dataclasses.replace(x, value=self._new[x.value]) for x in graph.constants),
            graph.symbols,
        )
        verify(rewritten)
        return rewritten

    def _append(
        self, node: Node, names: Mapping[int, int], types: Sequence[TensorType], name: str
    ) -> tuple[int, ...]:
        inputs = tuple(names[value] for value in node.inputs)
        outputs = tuple(self._value(type) for type in types)
        self._nodes.append(Node(node.op, inputs, outputs, node.attrs, name))
        return outputs

    def _value(self, type: TensorType) -> int:
        self._values.append(type)
        return len(self._values) - 1

"""What is done to a freshly read graph: dead nodes go, index inputs get their domain."""

from __future__ import annotations

import dataclasses

from kernel_gen.ir.graph import Graph, InputKind, Node
from kernel_gen.ir.types import ValueDomain
from kernel_gen.ir.verify import verify

_TRANSPARENT = frozenset(("cast", "reshape", "permute", "expand", "slice", "flip"))


def tidy(graph: Graph) -> Graph:
    """The verified graph without dead nodes and constants, with value domains of indices."""
    result = with_domains(without_dead(graph))
    verify(result)
    return result


def without_dead(graph: Graph) -> Graph:
    """Keeps what the outputs need, all inputs, and random framework nodes (they draw numbers).

    Before: values 0 … n-1 with holes; after: numbered without holes in the same order.
    """
    kept = _live_nodes(graph)
    live = {value for node in kept for value in (*node.inputs, *node.outputs)}
    live |= {item.value for item in graph.inputs} | {item.value for item in graph.outputs}
    constants = [item for item in graph.constants if item.value in live]
    number = {value: i for i, value in enumerate(sorted(live))}
    return dataclasses.replace(
        graph,
        values=tuple(graph.values[value] for value in number),
        inputs=tuple(dataclasses.replace(i, value=number[i.value]) for i in graph.inputs),
        outputs=tuple(dataclasses.replace(o, value=number[o.value]) for o in graph.outputs),
        constants=tuple(dataclasses.replace(c, value=number[c.value]) for c in constants),
        nodes=tuple(
            dataclasses.replace(
                node,
                inputs=tuple(number[value] for value in node.inputs),
                outputs=tuple(number[value] for value in node.outputs),
            )
            for node in kept
        ),
    )


def _live_nodes(graph: Graph) -> list[Node]:
    needed = {item.value for item in graph.outputs}
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        is_random = node.op == "framework" and node.attr("code") == "random"
        if is_random or any(value in needed for value in node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    return kept[::-1]


def with_domains(graph: Graph) -> Graph:
    """Inputs that are positions in a table of n rows get the domain (0, n - 1)."""
    producers = {value: node for node in graph.nodes for value in node.outputs}
    rows: dict[int, int] = {}
    for node in graph.nodes:
        if node.op not in ("take", "gather"):
            continue
        table, index = node.inputs
        dim, source = node.attr("dim"), _source(index, producers)
        extent = graph.values[table].shape[dim] if isinstance(dim, int) else None
        if isinstance(extent, int) and extent > 0:
            rows[source] = min(extent, rows.get(source, extent))
    inputs = []
    for item in graph.inputs:
        is_index = item.kind is InputKind.USER and item.value in rows
        if is_index and not graph.values[item.value].dtype.is_float:
            item = dataclasses.replace(item, domain=ValueDomain(0, rows[item.value] - 1))
        inputs.append(item)
    return dataclasses.replace(graph, inputs=tuple(inputs))


def _source(value: int, producers: dict[int, Node]) -> int:
    """The value whose elements an index is made of, through casts, views and the wrapping of
    negative positions (`where(i < 0, i + n, i)`)."""
    while value in producers:
        node = producers[value]
        if node.op in _TRANSPARENT:
            value = node.inputs[0]
        elif node.op == "where":
            value = node.inputs[2]
        else:
            break
    return value


def with_strides(graph: Graph, strides: dict[int, tuple[int, ...]]) -> Graph:
    """Output values get the strides of eager's results."""
    values = tuple(
        dataclasses.replace(type, strides=strides[value]) if value in strides else type
        for value, type in enumerate(graph.values)
    )
    return dataclasses.replace(graph, values=values)

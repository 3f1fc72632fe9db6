"""Canonical form, text and digest of graphs.

The canonical form numbers values and orders nodes by structure alone: depth first from the outputs,
operands in order. So it does not depend on how the graph was built, on names or on the process.
Framework nodes keep their order among each other, since they may draw from one random stream.
"""

from __future__ import annotations

import dataclasses
import hashlib

from kernel_gen.codec import digest, to_json
from kernel_gen.ir.graph import Constant, Graph, Node
from kernel_gen.ir.ops import OPS, OpKind
from kernel_gen.ir.types import TensorType


def graph_to_json(graph: Graph) -> str:
    """Canonical JSON without display names: equal programs have equal text."""
    return to_json(canonical(graph), labels=False)


def graph_digest(graph: Graph) -> str:
    """SHA-256 (hexadecimal) of the canonical form.

    The sizes at which symbols happened to be captured do not count.
    """
    form = canonical(graph)
    symbols = tuple(dataclasses.replace(symbol, hint=symbol.low) for symbol in form.symbols)
    return digest(dataclasses.replace(form, symbols=symbols))


def canonical(graph: Graph) -> Graph:
    """The same program with canonical order and numbers (names are kept).

    Before: nodes mul(2), exp(0), add(1, 3) …; after: the order of a walk from the outputs, values
    numbered inputs, constants, then results as they appear.
    """
    order = _node_order(graph)
    constants = _constant_order(graph, order)
    number: dict[int, int] = {}
    for value in [*(i.value for i in graph.inputs), *(c.value for c in constants)]:
        number[value] = len(number)
    for position in order:
        for value in graph.nodes[position].outputs:
            number[value] = len(number)
    values: list[TensorType] = [graph.values[value] for value in number]
    return Graph(
        tuple(values),
        tuple(dataclasses.replace(item, value=number[item.value]) for item in graph.inputs),
        tuple(_renumbered(graph.nodes[position], number) for position in order),
        tuple(dataclasses.replace(item, value=number[item.value]) for item in graph.outputs),
        tuple(dataclasses.replace(item, value=number[item.value]) for item in constants),
        tuple(sorted(graph.symbols, key=lambda symbol: int(symbol.name[1:]))),
    )


def _renumbered(node: Node, number: dict[int, int]) -> Node:
    return dataclasses.replace(
        node,
        inputs=tuple(number[value] for value in node.inputs),
        outputs=tuple(number[value] for value in node.outputs),
    )


def _node_order(graph: Graph) -> list[int]:
    """Depth first from the outputs, then from nodes that nothing reads, by their structure."""
    producers = graph.producers()
    before = _effect_predecessors(graph)
    done: dict[int, None] = {}
    roots = [producers[item.value] for item in graph.outputs if item.value in producers]
    for root in roots:
        _visit(graph, producers, before, root, done)
    if len(done) < len(graph.nodes):
        marks = _structure(graph)
        dead = [i for i in range(len(graph.nodes)) if i not in done]
        for root in sorted(dead, key=lambda i: (marks[i], i)):
            _visit(graph, producers, before, root, done)
    return list(done)


def _effect_predecessors(graph: Graph) -> dict[int, int]:
    """Framework node -> the framework node before it."""
    effects = [i for i, node in enumerate(graph.nodes) if _has_effect(node)]
    return dict(zip(effects[1:], effects, strict=False))


def _has_effect(node: Node) -> bool:
    return OPS[node.op].kind is OpKind.FRAMEWORK


def _visit(
    graph: Graph,
    producers: dict[int, int],
    before: dict[int, int],
    root: int,
    done: dict[int, None],
) -> None:
    """Post-order walk with a stack of its own: graphs may be deeper than Python's."""
    stack = [(root, False)]
    while stack:
        position, ready = stack.pop()
        if position in done:
            continue
        if ready:
            done[position] = None
            continue
        stack.append((position, True))
        needed = [producers[v] for v in graph.nodes[position].inputs if v in producers]
        if position in before:
            needed.insert(0, before[position])
        stack.extend((item, False) for item in reversed(needed) if item not in done)


def _structure(graph: Graph) -> list[str]:
    """A digest per node of everything it is computed from; equal marks, equal computations."""
    marks: dict[int, str] = {item.value: f"input {i}" for i, item in enumerate(graph.inputs)}
    for constant in graph.constants:
        marks[constant.value] = _mark(repr(graph.values[constant.value]), constant.data.hex())
    found: list[str] = []
    for node in graph.nodes:
        types = repr([graph.values[value] for value in node.outputs])
        mark = _mark(node.op, repr(node.attrs), types, *(marks[value] for value in node.inputs))
        for i, value in enumerate(node.outputs):
            marks[value] = f"{mark} {i}"
        found.append(mark)
    return found


def _mark(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _constant_order(graph: Graph, order: list[int]) -> list[Constant]:
    """Constants as the nodes, then the outputs, read them; unread ones last, by contents."""
    by_value = {constant.value: constant for constant in graph.constants}
    reads = [value for position in order for value in graph.nodes[position].inputs]
    reads += [item.value for item in graph.outputs]
    found = [by_value[value] for value in dict.fromkeys(reads) if value in by_value]
    read = {constant.value for constant in found}
    rest = [constant for constant in graph.constants if constant.value not in read]
    return found + sorted(rest, key=lambda item: (repr(graph.values[item.value]), item.data))

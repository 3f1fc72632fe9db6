"""Canonical form and digest: what they ignore and what they tell apart."""

from __future__ import annotations

import dataclasses
import random

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from kernel_gen.errors import InvalidInput
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.canonical import canonical
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.ir.serialize import graph_from_json
from kernel_gen.ir.types import Sym, TensorType
from kernel_gen.ir.verify import verify
from tests.strategies import graphs

F32 = TensorType(DType.F32, (4, 8))


def shuffled(graph: Graph, seed: int) -> Graph:
    """The same program: other value numbers, another topological order, other names."""
    rng = random.Random(seed)
    number = list(range(len(graph.values)))
    rng.shuffle(number)
    place = {new: old for old, new in enumerate(number)}
    nodes = [
        Node(
            node.op,
            tuple(number[v] for v in node.inputs),
            tuple(number[v] for v in node.outputs),
            node.attrs,
            name=f"n{rng.random()}",
        )
        for node in _another_order(graph, rng)
    ]
    constants = list(graph.constants)
    rng.shuffle(constants)
    return Graph(
        tuple(graph.values[place[new]] for new in range(len(number))),
        tuple(dataclasses.replace(x, value=number[x.value], name="other") for x in graph.inputs),
        tuple(nodes),
        tuple(dataclasses.replace(x, value=number[x.value]) for x in graph.outputs),
        tuple(dataclasses.replace(x, value=number[x.value]) for x in constants),
        graph.symbols,
    )


def _another_order(graph: Graph, rng: random.Random) -> list[Node]:
    ready = {x.value for x in (*graph.inputs, *graph.constants)}
    left, order = list(graph.nodes), []
    while left:
        node = rng.choice([n for n in left if set(n.inputs) <= ready])
        left.remove(node)
        ready |= set(node.outputs)
        order.append(node)
    return order


@settings(max_examples=60, deadline=None)
@given(graphs(), st.integers(0, 1000))
def test_digest_and_text_ignore_numbers_names_and_order(graph: Graph, seed: int) -> None:
    other = shuffled(graph, seed)
    verify(other)
    assert other.digest == graph.digest
    assert other.to_json() == graph.to_json()
    assert canonical(other) == canonical(graph)


@settings(max_examples=60, deadline=None)
@given(graphs())
def test_text_gives_the_canonical_graph(graph: Graph) -> None:
    text = graph.to_json()
    back = graph_from_json(text)
    assert back == canonical(graph)
    assert back.to_json() == text
    assert back.digest == graph.digest


def _two_branches(first: str, second: str) -> Graph:
    b = GraphBuilder()
    x = b.input(F32, name="x")
    b.output(b.op("add", b.op(first, x), b.op(second, x)))
    return b.build()


def test_digest_tells_programs_apart() -> None:
    assert _two_branches("exp", "sin").digest != _two_branches("sin", "exp").digest
    assert _two_branches("exp", "sin").digest != _two_branches("exp", "cos").digest


def test_digest_sees_constants() -> None:
    found = set()
    for value in (0.0, 1.0):
        b = GraphBuilder()
        b.output(b.op("neg", b.constant(np.full((2,), value, np.float32))))
        found.add(b.build().digest)
    assert len(found) == 2


def test_nodes_that_nothing_reads_count_but_their_order_does_not() -> None:
    def build(*dead: str) -> Graph:
        b = GraphBuilder()
        x = b.input(F32)
        for op in dead:
            b.op(op, x)
        b.output(b.op("neg", x))
        return b.build()

    assert build("exp", "sin").digest == build("sin", "exp").digest
    assert build("exp").digest != build().digest


def test_framework_nodes_keep_their_order() -> None:
    """They may draw from one random stream."""

    def build(*targets: str) -> Graph:
        b = GraphBuilder()
        x = b.input(F32)
        made = {
            target: b.op(
                "framework", x, out_types=[F32], target=target, args="", code="c", sentence=""
            )[0]
            for target in targets
        }
        for target in sorted(targets):
            b.output(made[target])
        return b.build()

    assert build("aten.a", "aten.b").digest != build("aten.b", "aten.a").digest


def test_digest_ignores_the_size_at_capture() -> None:
    def build(hint: int) -> Graph:
        b = GraphBuilder()
        b.symbol("s0", 1, 64, hint)
        b.output(b.op("exp", b.input(TensorType(DType.F32, (Sym("s0"), 4)))))
        return b.build()

    assert build(3).digest == build(9).digest
    assert build(3).to_json() != build(9).to_json()


def test_deep_graph_does_not_recurse() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (2,)))
    for _ in range(5000):
        x = b.op("neg", x)
    b.output(x)
    graph = b.build()
    assert graph_from_json(graph.to_json()).digest == graph.digest


@pytest.mark.parametrize(
    "text", ["", "{}", "null", '{"values":[],"inputs":[{"value":0}],"nodes":[],"outputs":[]}']
)
def test_bad_text_raises_a_typed_error(text: str) -> None:
    with pytest.raises(InvalidInput):
        graph_from_json(text)

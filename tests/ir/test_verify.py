"""The verifier: each malformed graph is refused, with node, rule and values in the message."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from kernel_gen.errors import InvalidGraph, InvalidInput
from kernel_gen.ir import verify as limits
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Constant, Graph, Input, Node, Output, SymbolRange, attrs
from kernel_gen.ir.serialize import graph_from_json
from kernel_gen.ir.types import Sym, TensorType
from kernel_gen.ir.verify import verify
from tests.strategies import graphs

F32 = TensorType(DType.F32, (2, 3))
GOOD = Graph(
    (F32, F32, F32),
    (Input(0),),
    (Node("exp", (0,), (1,), name="first"), Node("add", (0, 1), (2,))),
    (Output(2),),
)


def changed(**fields: Any) -> Callable[[], Graph]:
    return lambda: dataclasses.replace(GOOD, **fields)


def node(*nodes: Node) -> Callable[[], Graph]:
    return changed(nodes=nodes)


EXP, ADD = GOOD.nodes
LAYER_NORM = attrs(axes=1, eps=1e-5, weight=False, bias=False)

MALFORMED: dict[str, tuple[Callable[[], Graph], str]] = {
    "unknown op": (node(Node("frob", (0,), (1,)), ADD), r"node 0 \(frob\): unknown op 'frob'"),
    "arity": (node(Node("exp", (0, 0), (1,)), ADD), r"node 0 \(exp\).*takes 1 operands, not 2"),
    "no operands": (
        node(Node("softmax", (), (1,), attrs(dim=0)), ADD),
        r"node 0 \(softmax\).*takes 1 operands, not 0",
    ),
    "no operands of any number": (
        node(Node("layer_norm", (), (1,), LAYER_NORM), ADD),
        r"node 0 \(layer_norm\).*takes at least one operand",
    ),
    "attribute names": (
        node(Node("exp", (0,), (1,), attrs(dim=1)), ADD),
        r"node 0 \(exp\).*takes attributes \[\], not \['dim'\].*values \[0\]",
    ),
    "not defined yet": (node(ADD, EXP), r"node 0 \(add\): reads value 1 before it is defined"),
    "reads itself": (
        node(EXP, Node("add", (0, 2), (2,))),
        r"node 1 \(add\): reads value 2 before",
    ),
    "no such value": (node(Node("exp", (7,), (1,)), ADD), r"node 0 \(exp\): there is no value 7"),
    "negative value": (node(Node("exp", (-1,), (1,)), ADD), "there is no value -1"),
    "defined twice": (
        node(EXP, Node("add", (0, 1), (1,))),
        r"node 1 \(add\): value 1 is already defined",
    ),
    "input twice": (changed(inputs=(Input(0), Input(0))), "input 1: value 0 is already defined"),
    "never defined": (node(EXP), r"values \[2\] are never defined"),
    "two outputs": (
        node(Node("exp", (0,), (1, 2))),
        r"node 0 \(exp\): has 2 outputs, expected 1",
    ),
    "wrong shape": (
        changed(values=(F32, F32, TensorType(DType.F32, (3, 2)))),
        r"node 1 \(add\): value 2 is f32\[3, 2\], the op gives f32\[2, 3\]",
    ),
    "wrong dtype": (
        changed(values=(F32, TensorType(DType.F64, (2, 3)), F32)),
        r"node 0 \(exp 'first'\): value 1 is f64\[2, 3\], the op gives f32\[2, 3\]",
    ),
    "no such output": (changed(outputs=(Output(3),)), "output 0: there is no value 3"),
    "mutates nothing": (changed(outputs=(Output(2, mutates=1),)), "output 0: mutates input 1"),
    "aliases nothing": (changed(outputs=(Output(2, alias_of=-1),)), "output 0: aliases input -1"),
    "written twice": (
        changed(outputs=(Output(1, mutates=0), Output(2, mutates=0))),
        r"inputs \[0\] are written more than once",
    ),
    "inner strides": (
        changed(values=(F32, dataclasses.replace(F32, strides=(1, 1)), F32)),
        r"value 1: strides \(1, 1\) leave holes or overlap",
    ),
    "negative strides": (
        changed(values=(dataclasses.replace(F32, strides=(-3, 1)), F32, F32)),
        r"value 0: strides \(-3, 1\) are out of range",
    ),
    "symbol without range": (
        changed(values=(TensorType(DType.F32, (Sym("s0"),)), F32, F32)),
        "value 0: symbol s0 has no range",
    ),
    "symbol twice": (
        changed(symbols=(SymbolRange("s0", 1, 4, 2), SymbolRange("s0", 1, 4, 2))),
        "are not unique",
    ),
    "attribute symbol": (
        node(EXP, Node("reshape", (1,), (2,), attrs(shape=("s3", 3)))),
        r"node 1 \(reshape\).*symbol 's3' has no range",
    ),
    "constant bytes": (
        changed(inputs=(), constants=(Constant(0, b"abc"),)),
        r"constant 0: 3 bytes for f32\[2, 3\]",
    ),
    "huge value": (
        changed(values=(TensorType(DType.F32, (2**40, 2**40)), F32, F32)),
        "value 0: .* has too many elements",
    ),
    "framework text": (
        node(Node("framework", (0,), (1,), attrs(args=1, code=2, sentence="", target="t")), ADD),
        r"node 0 \(framework\).*code must be text",
    ),
}


def test_the_good_graph_passes() -> None:
    verify(GOOD)


@pytest.mark.parametrize("kind", MALFORMED)
def test_malformed_graph_is_refused(kind: str) -> None:
    build, message = MALFORMED[kind]
    with pytest.raises(InvalidGraph, match=message):
        verify(build())


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, message in (
        ("MAX_NODES", "2 nodes are above the limit of 1"),
        ("MAX_VALUES", "3 values are above the limit of 1"),
        ("MAX_OPERANDS", "2 operands, limit 1"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(limits, name, 1)
            with pytest.raises(InvalidGraph, match=message):
                verify(GOOD)


def test_too_many_nodes_are_counted_before_any_is_read() -> None:
    text = json.dumps({"nodes": ["no node"] * (limits.MAX_NODES + 1)})
    with pytest.raises(InvalidGraph, match="20001 nodes are above the limit of 20000"):
        graph_from_json(text)


def test_limits_of_constants() -> None:
    mebi = TensorType(DType.U8, (1 << 20,))
    over = TensorType(DType.U8, ((1 << 20) + 1,))
    one = Graph((over,), (), (), (Output(0),), (Constant(0, bytes(over.nbytes)),))
    with pytest.raises(InvalidGraph, match="constant 0: 1048577 bytes, limit 1048576"):
        verify(one)
    data = bytes(1 << 20)
    many = Graph((mebi,) * 17, (), (), (), tuple(Constant(i, data) for i in range(17)))
    with pytest.raises(InvalidGraph, match="constants of 17825792 bytes"):
        verify(many)


_WRONG: list[Any] = [-1, 2**70, 99, 0, None, True, "x", "s9", 1.5, [], {}, [[0]], ["s0", -3]]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_text_never_raises_an_untyped_error(data: st.DataObject) -> None:
    """Any one place of a graph's JSON replaced: either still a graph, or InvalidInput."""
    tree = json.loads(data.draw(graphs(max_nodes=4)).to_json())
    places = _leaves(tree)
    *front, last = data.draw(st.sampled_from(places))
    parent = tree
    for key in front:
        parent = parent[key]
    parent[last] = data.draw(st.sampled_from(_WRONG))
    with contextlib.suppress(InvalidInput):
        verify(graph_from_json(json.dumps(tree)))


def _leaves(tree: Any) -> list[tuple[Any, ...]]:
    """Paths to everything inside a JSON tree."""
    found: list[tuple[Any, ...]] = []
    stack: list[tuple[tuple[Any, ...], Any]] = [((), tree)]
    while stack:
        path, node = stack.pop()
        if path:
            found.append(path)
        if isinstance(node, dict):
            stack += [((*path, key), child) for key, child in node.items()]
        elif isinstance(node, list):
            stack += [((*path, i), child) for i, child in enumerate(node)]
    return found


def test_builder_names_the_op_that_does_not_fit() -> None:
    b = GraphBuilder()
    x, y = b.input(F32), b.input(TensorType(DType.F64, (2, 3)))
    with pytest.raises(InvalidGraph, match=r"add\(f32\[2, 3\], f64\[2, 3\]\): .* one dtype"):
        b.op("add", x, y)
    with pytest.raises(InvalidGraph, match="there is no value 9"):
        b.op("exp", 9)

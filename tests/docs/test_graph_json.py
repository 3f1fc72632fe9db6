"""The page on graphs as JSON: its example runs, and it has every op with its attributes."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import numpy as np
import pytest

from kernel_gen.errors import InvalidGraph, InvalidInput
from kernel_gen.ir.evaluate import evaluate
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.ops import OPS
from kernel_gen.ir.serialize import graph_from_json, read_graph

PAGE = (Path(__file__).parents[2] / "docs" / "graph-json.md").read_text()


@pytest.fixture
def example() -> str:
    found = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found.group(1)


def test_the_example_computes_what_it_says(example: str, tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(example)
    graph: Graph = read_graph(path)
    rng = np.random.default_rng(0)
    x, table, w = (rng.normal(size=shape).astype("f4") for shape in ((4, 6), (50, 6), (3, 6)))
    rows = np.array([0, 49, 7, 7])
    (found,) = evaluate(graph, [x, rows, table, w])
    (constant,) = np.frombuffer(base64.b64decode("AAAAPw=="), "<f4")
    exps = np.exp((x + table[rows]) * constant)
    want = (exps / exps.sum(1, keepdims=True)) @ w.T
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
    assert graph_from_json(graph.to_json()).digest == graph.digest


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('"softmax"', '"softmix"', "softmix"),
        ('[["dim", 1]]', '[["dim", 2]]', "dim"),
        ('[["dim", 1]]', "[]", "attributes"),
        ('"inputs": [8, 3]', '"inputs": [9, 3]', "9"),
        ('"shape": [4, 3]', '"shape": [4, 4]', "4, 3"),
        ('"AAAAPw=="', '"AAAAPw"', "base64"),
        ('"nodes"', '"knots"', "lacks 'nodes'"),
    ],
)
def test_mistakes_are_told_with_their_place(example: str, old: str, new: str, place: str) -> None:
    assert old in example
    with pytest.raises((InvalidGraph, InvalidInput), match=place):
        graph_from_json(example.replace(old, new, 1))


def test_every_op_is_listed_with_its_attributes() -> None:
    listed: dict[str, set[str]] = {}
    for ops, attributes in re.findall(r"^\| (`[^|]*) \|[^|]*\|([^|]*)\|$", PAGE, re.MULTILINE):
        names = set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", attributes)))
        listed |= dict.fromkeys(re.findall(r"`(\w+)`", ops), names)
    fields = {"values", "inputs", "constants", "nodes", "outputs", "symbols"}
    assert {op: set(spec.attrs) for op, spec in OPS.items()} == {
        op: names for op, names in listed.items() if op not in fields
    }

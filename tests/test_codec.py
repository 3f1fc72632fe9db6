"""Canonical JSON: round trips, canonical text, errors that name the place."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import hypothesis.strategies as st
import pytest
from hypothesis import given

from kernel_gen.codec import MAX_DEPTH, digest, from_json, to_json
from kernel_gen.errors import InvalidGraph, InvalidInput
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Attr, Node, attrs
from kernel_gen.ir.index import FloorDiv, Index, Mod, axis_index
from kernel_gen.ir.loopnest import Axis, Compute, IndexValue, LoopNest
from kernel_gen.records import Failure, Job, JobRequest, Measurement, Protocol, Stage, Trial
from kernel_gen.runtime.plan import Plan


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Leaf:
    number: float
    colour: Colour = Colour.RED
    label: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Twig:
    leaves: tuple[Leaf, ...]
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Tree:
    branch: Leaf | Twig
    pair: tuple[int, str]
    extra: dict[str, int] = field(default_factory=dict)
    parent: Twig | None = None


SAMPLE = Tree(Twig((Leaf(1.5), Leaf(-0.0, Colour.BLUE, "x")), b"\0\xff"), (3, "a"), {"k": 1})

_scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(),
    st.text(max_size=5),
)
_attr_values = st.recursive(_scalars, lambda inner: st.lists(inner, max_size=3).map(tuple))


def test_round_trip_of_nested_types() -> None:
    text = to_json(SAMPLE)
    assert from_json(Tree, text) == SAMPLE
    assert to_json(from_json(Tree, text)) == text


def test_text_is_canonical() -> None:
    text = to_json(SAMPLE)
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    assert '"kind":"Twig"' in text  # unions are tagged
    assert "parent" not in text  # defaults are left out


def _same(a: Attr, b: Attr) -> bool:
    """Equality that tells 1 from 1.0 and True, and takes NaN for itself."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


@given(st.dictionaries(st.text(min_size=1, max_size=4), _attr_values, max_size=4))
def test_attributes_keep_value_and_type(values: Mapping[str, Attr]) -> None:
    node = Node("op", (0, 1), (2,), attrs(**values))
    back = from_json(Node, to_json(node))
    assert [key for key, _ in back.attrs] == [key for key, _ in node.attrs]
    assert all(_same(a, b) for (_, a), (_, b) in zip(node.attrs, back.attrs, strict=True))


@pytest.mark.parametrize("number", [math.inf, -math.inf, 0.1, -0.0, 1e300, 5e-324])
def test_floats_survive(number: float) -> None:
    back = from_json(Leaf, to_json(Leaf(number)))
    assert repr(back.number) == repr(number)


def test_integer_in_a_float_field_becomes_a_float() -> None:
    back = from_json(Leaf, '{"number":2}')
    assert isinstance(back.number, float)
    assert to_json(Leaf(2)) == to_json(Leaf(2.0))


def test_labels_do_not_enter_the_digest() -> None:
    plain, named = Leaf(1.0), Leaf(1.0, label="name")
    assert digest(plain) == digest(named)
    assert to_json(plain) != to_json(named)
    assert to_json(named, labels=False) == to_json(plain)
    assert digest(plain) != digest(Leaf(1.5))


def test_nests_round_trip() -> None:
    index = Index(((FloorDiv(axis_index("i"), 3), 2), (Mod(axis_index("i"), 3), 1)), 4)
    statements = (IndexValue(index), Compute("neg", (0,), DType.I64))
    nest = LoopNest((Axis("i", 12),), (), statements, ())
    assert from_json(LoopNest, to_json(nest)) == nest


def test_records_round_trip() -> None:
    measured = Measurement((1.5, 2.0), Protocol(2, 10, 3, "warm"))
    failed = Failure(Stage.BUILD, "no-compile", "x")
    for result in (measured, failed):
        trial = Trial("g", 1, "row", (("tile", 8), ("order", "ij")), result, 1.25)
        assert from_json(Trial, to_json(trial)) == trial


@pytest.mark.parametrize("cls", [Plan, Job, JobRequest, LoopNest, Trial])
def test_every_type_of_the_project_has_a_codec(cls: type) -> None:
    """An empty object is refused for what it lacks, not for want of a codec."""
    with pytest.raises(InvalidInput, match="lacks"):
        from_json(cls, "{}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "not JSON"),
        ("1", "expected an object"),
        ('{"number":NaN}', "NaN is not JSON"),
        ('{"number":"1"}', r"\.number: expected float, got str '1'"),
        ('{"number":true}', r"\.number: expected float, got bool True"),
        ('{"number":1,"colour":"pink"}', r"\.colour: expected one of red, blue"),
        ('{"number":1,"size":2}', "has no field"),
        ("{}", "lacks 'number'"),
        ("[" * 100_000, "nested"),
        ("[" * (MAX_DEPTH + 5) + "]" * (MAX_DEPTH + 5), "nested deeper"),
        ("1" * 5000, "not JSON"),
        ('{"number":' + "9" * 400 + "}", "64 bits|too large|not JSON"),
    ],
)
def test_bad_text_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        from_json(Leaf, text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"branch":{"kind":"Bush"},"pair":[1,"a"]}', r"Tree\.branch: expected kind Leaf or Twig"),
        ('{"branch":{"kind":"Twig","leaves":[{"number":1},{}]},"pair":[1,"a"]}', r"leaves\[1\]"),
        ('{"branch":{"kind":"Leaf","number":1},"pair":[1]}', "list of 2, got 1"),
        ('{"branch":{"kind":"Leaf","number":1},"pair":[1,2]}', r"\.pair\[1\]: expected str"),
        ('{"branch":{"kind":"Twig","leaves":[],"data":"*"},"pair":[1,"a"]}', "base64"),
    ],
)
def test_bad_union_or_tuple_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        from_json(Tree, text)


def test_errors_of_the_type_itself_keep_their_class_and_gain_the_place() -> None:
    with pytest.raises(InvalidGraph, match=r"Node: op: attributes \['b', 'a'\]"):
        from_json(Node, '{"op":"op","inputs":[],"outputs":[],"attrs":[["b",1],["a",1]]}')


def test_wrong_value_is_not_written() -> None:
    with pytest.raises(InvalidInput, match=r"Leaf\.number: expected float, got str"):
        to_json(Leaf("1"))  # type: ignore[arg-type]


def test_text_does_not_depend_on_the_process() -> None:
    code = (
        "from kernel_gen.ir.graph import Node, attrs; from kernel_gen.codec import digest;"
        "print(digest(Node('op', (0,), (1,), attrs(z=1, a=(1.5, None), m='t'))))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1

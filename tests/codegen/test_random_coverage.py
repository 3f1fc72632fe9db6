"""The graphs of long runs hold what they are meant to hold: counted over the first seeds."""

from __future__ import annotations

from collections import Counter

import pytest

from kernel_gen.ir.dtype import DType
from tests.soak.fuzz.cases import FuzzCase, fuzz_case
from tests.soak.fuzz.features import FEATURES, OPS_DRAWN, features, ops

_SEEDS = 800  # of the 5,000 that `make soak` runs


@pytest.fixture(scope="module")
def cases() -> list[FuzzCase]:
    return [fuzz_case(seed) for seed in range(_SEEDS)]


def test_every_op_is_drawn(cases: list[FuzzCase]) -> None:
    drawn = {node.op for case in cases for node in case.graph.nodes}
    assert drawn == OPS_DRAWN


def test_every_feature_is_drawn_more_than_once(cases: list[FuzzCase]) -> None:
    counts = Counter(feature for case in cases for feature in features(case))
    assert {feature for feature, count in counts.items() if count > 1} == FEATURES


def test_every_type_is_read_and_given(cases: list[FuzzCase]) -> None:
    graphs = [case.graph for case in cases]
    read = {graph.type_of(item.value).dtype for graph in graphs for item in graph.inputs}
    given = {graph.type_of(item.value).dtype for graph in graphs for item in graph.outputs}
    assert read == given == set(DType)


def test_ops_meet_many_types(cases: list[FuzzCase]) -> None:
    """Of some 900 pairs there are; the rest comes later."""
    assert len({pair for case in cases for pair in ops(case)}) > 400


def test_a_seed_is_a_graph(cases: list[FuzzCase]) -> None:
    again = fuzz_case(17)
    assert again.graph == cases[17].graph
    assert [a.tobytes() for a in again.inputs] == [a.tobytes() for a in cases[17].inputs]
    assert len({case.graph.digest for case in cases}) > 0.97 * _SEEDS

"""Random graphs: as one nest, node by node, and cut anywhere, nests give the reference's values."""

from __future__ import annotations

import itertools

import hypothesis.strategies as st
import pytest
from fusion_cases import run_groups
from hypothesis import HealthCheck, given, settings

from kernel_gen.executor import grid
from kernel_gen.fusion.region import make_group
from tests.strategies import assert_outputs_match, graphs, inputs_for
from tests.strategy_steps import STEPS

LOWERED = [step for step in STEPS if step != "convolution"]  # the library's
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large]


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=QUIET)
def test_any_cut_of_a_random_graph_equals_the_reference(data):
    graph = data.draw(graphs(steps=LOWERED))
    inputs = data.draw(inputs_for(graph))
    count = len(graph.nodes)
    cuts = sorted(data.draw(st.sets(st.integers(0, count), max_size=3)) | {0, count})
    parts = [range(low, high) for low, high in itertools.pairwise(cuts)]
    groups = [g for part in parts if part and (g := make_group(graph, part)).outputs]
    tile = data.draw(st.sampled_from([None, 1, 3]))
    with pytest.MonkeyPatch.context() as patch:  # such small graphs are not cut otherwise
        for constant in ("_BLOCK_POINTS", "_OPERAND_POINTS", "_LEAST_PRODUCT"):
            patch.setattr(grid, constant, data.draw(st.sampled_from([4, 1 << 20])))
        assert_outputs_match(graph, inputs, run_groups(graph, groups, inputs, tile=tile))


@given(st.data())
@settings(max_examples=20, deadline=None, suppress_health_check=QUIET)
def test_strict_numerics_round_like_eager(data):
    graph = data.draw(graphs(max_nodes=6, steps=LOWERED))
    inputs = data.draw(inputs_for(graph))
    groups = [make_group(graph, range(len(graph.nodes)))]
    assert_outputs_match(graph, inputs, run_groups(graph, groups, inputs, "strict"))

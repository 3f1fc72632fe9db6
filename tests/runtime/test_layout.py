"""Layouts: segments, who owns which value, and the refusal of covers that do not fit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernel_gen.errors import InternalError
from kernel_gen.fusion.group import FusionPlan
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.runtime.aliases import computed_outputs, view_path
from kernel_gen.runtime.assemble import assemble
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.driver_packing import packed_regions
from kernel_gen.runtime.layout import plan_layout
from kernel_gen.runtime.plan import ArenaSlot, Layout, Segment
from tests.runtime.small_plans import (
    SUMMARY,
    TARGET,
    chain_graph,
    f32,
    groups_of,
    kernel_for,
    key_of,
)


def layout_of(graph: Graph, **choices: tuple[int, ...]) -> Layout:
    cover, kernels = groups_of(graph, **choices)
    return plan_layout(graph, cover, kernels)


def test_one_segment_with_an_arena() -> None:
    layout = layout_of(chain_graph())
    assert layout.segments == (Segment((0, 1, 2)),)
    assert layout.constants == (2,)
    assert layout.buffers == (5,)
    assert layout.arena == (ArenaSlot(3, 0, 96), ArenaSlot(4, 128, 96))
    assert layout.arena_bytes == 256


def test_framework_group_cuts_and_its_operands_are_buffers() -> None:
    layout = layout_of(chain_graph(), framework=(1,))
    assert layout.segments == (Segment((0,)), Segment(framework=1), Segment((1,)))
    assert layout.buffers == (3, 5)
    assert layout.arena == ()


def test_arena_is_reused_along_a_chain() -> None:
    b = GraphBuilder()
    value = b.input(f32(256))
    for _ in range(8):
        value = b.op("neg", value)
    b.output(value)
    layout = layout_of(b.build())
    assert len(layout.arena) == 7
    assert layout.arena_bytes == 2048


def test_mutated_buffers_are_no_packable_constants(compiler: Compiler) -> None:
    b = GraphBuilder()
    x = b.input(f32(4))
    state = b.input(f32(4), InputKind.BUFFER)
    b.output(b.op("add", x, state), mutates=1)
    graph = b.build()
    cover, kernels = groups_of(graph, packed=(1,))
    with pytest.raises(InternalError, match="packs value 1, which may change"):
        assemble(graph, graph, key_of(graph), cover, kernels, TARGET, compiler, SUMMARY)


def test_left_out_node_that_changes_is_refused() -> None:
    with pytest.raises(InternalError, match=r"node 0 \(add\) is left out"):
        layout_of(chain_graph(), left_out=(0,))


def test_wrong_order_is_refused() -> None:
    cover, kernels = groups_of(chain_graph())
    turned = FusionPlan(tuple(reversed(cover.groups)))
    with pytest.raises(InternalError, match="step 0 reads values"):
        plan_layout(chain_graph(), turned, list(reversed(kernels)))


def test_value_written_twice_is_refused() -> None:
    cover, kernels = groups_of(chain_graph())
    twice = FusionPlan((cover.groups[0], *cover.groups))
    with pytest.raises(InternalError, match="a second time"):
        plan_layout(chain_graph(), twice, [kernels[0], *kernels])


def test_missing_kernel_is_refused() -> None:
    cover, kernels = groups_of(chain_graph())
    with pytest.raises(InternalError, match="3 fused groups, but 2 kernels"):
        plan_layout(chain_graph(), cover, kernels[:2])


def test_other_interface_is_refused(compiler: Compiler) -> None:
    graph = chain_graph()
    cover, kernels = groups_of(graph)
    other = replace(graph, inputs=graph.inputs[::-1])
    with pytest.raises(InternalError, match="other inputs or outputs"):
        assemble(graph, other, key_of(graph), cover, kernels, TARGET, compiler, SUMMARY)


def test_one_name_for_two_sources_is_refused(compiler: Compiler) -> None:
    graph = chain_graph()
    cover, kernels = groups_of(graph)
    stolen = replace(kernels[1].source, entry=kernels[0].source.entry)
    clash = [kernels[0], replace(kernels[1], source=stolen), kernels[2]]
    with pytest.raises(InternalError, match="are named k_add_24"):
        assemble(graph, graph, key_of(graph), cover, clash, TARGET, compiler, SUMMARY)


def test_equal_packings_are_done_once() -> None:
    """Tied weights: two kernels of one source that pack one constant."""
    b = GraphBuilder()
    x = b.input(f32(4, 4))
    w = b.input(f32(4, 4), InputKind.PARAMETER)
    b.output(b.op("mul", b.op("mul", x, w), w))
    graph = b.build()
    kernels = [kernel_for(graph, node, (w,), (w,)) for node in (0, 1)]
    assert [r.nbytes for r in packed_regions(kernels)] == [64]


def test_kernels_that_only_make_views_of_inputs_are_not_run() -> None:
    b = GraphBuilder()
    x = b.input(f32(4, 6))
    b.output(b.op("reshape", b.op("reshape", x, shape=(24,)), shape=(6, 4)), alias_of=0)
    b.output(b.op("neg", x))
    layout = layout_of(b.build(), framework=(0, 1))
    assert layout.segments == (Segment((0,)),)


def test_view_paths() -> None:
    b = GraphBuilder()
    x = b.input(f32(4, 6))
    turned = b.op("permute", b.op("reshape", x, shape=(6, 4)), dims=(1, 0))
    b.output(turned, alias_of=0)
    b.output(b.op("permute", b.op("neg", x), dims=(1, 0)))
    graph = b.build()
    assert [view_path(graph, output) for output in graph.outputs] == [(0, 1), None]
    assert computed_outputs(graph) == (graph.outputs[1].value,)

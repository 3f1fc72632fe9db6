"""Attention as a candidate: the composite and the softmax by hand, with views around them."""

from __future__ import annotations

import pytest

from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.fusion.candidates import candidates
from kernel_gen.fusion.judge import Candidate
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import DeviceKind, Target
from tests.codegen.attention_graphs import Program, composite, grouped, merged_projection

TARGET = Target(DeviceKind.CPU, "any", "x86-64-v3", vector_bytes=32)


def attention_groups(graph: Graph) -> list[Candidate]:
    found = candidates(graph, templates(TARGET), TARGET)
    return [c for c in found.groups if "attention" in c.templates]


@pytest.mark.parametrize(
    "graph",
    [
        composite(1, 2, 8, 8, 16, causal=True),
        grouped(1, 4, 2, 8, 8, 16),
        merged_projection(2, 8, 2, 16),
    ],
)
def test_the_whole_of_attention_is_a_group(graph: Graph) -> None:
    everything = tuple(range(len(graph.nodes)))
    assert everything in {c.group.nodes for c in attention_groups(graph)}


def test_views_that_attention_alone_reads_belong_to_it() -> None:
    graph = merged_projection(2, 8, 2, 16)
    nodes = {c.group.nodes for c in attention_groups(graph)}
    views = {i for i, node in enumerate(graph.nodes) if node.op in ("slice", "permute", "reshape")}
    behind = {len(graph.nodes) - 2, len(graph.nodes) - 1}  # they follow the attention
    assert len(nodes) == 3
    assert all(views - behind <= set(group) for group in nodes)


def test_two_products_without_a_softmax_share_no_kernel() -> None:
    p = Program(DType.F32)
    x = p.op("matmul", p.x(8, 8), p.x(8, 8))
    graph = p.graph(p.op("matmul", p.op("relu", x), p.x(8, 8)))
    found = candidates(graph, templates(TARGET), TARGET)
    products = {i for i, node in enumerate(graph.nodes) if node.op == "matmul"}
    assert not [c for c in found.groups if products <= set(c.group.nodes)]

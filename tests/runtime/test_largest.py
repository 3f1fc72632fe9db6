"""The largest elements and their positions are one call of torch's, in plans and baseline."""

from __future__ import annotations

import pytest
import torch

from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.frontend.torch_run import TorchProgram
from kernel_gen.fusion.candidates import candidates
from kernel_gen.fusion.group import FusionPlan
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.graph import Graph
from kernel_gen.runtime.assemble import assemble
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.key import plan_key
from kernel_gen.runtime.torch_glue import TorchPlan
from tests.runtime.small_plans import SUMMARY, TARGET, f32


def graph_of(*kept: int) -> Graph:
    """Values of the `kept` largest elements along the first axis, then positions likewise."""
    b = GraphBuilder()
    x = b.input(f32(9, 3))
    for op, k in zip(("topk", "argtopk"), kept, strict=True):
        b.output(b.op(op, x, dim=0, k=k))
    return b.build()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many elements each call of torch's asks for."""
    made: list[int] = []
    whole = torch.topk

    def counted(x: torch.Tensor, k: int, dim: int) -> object:
        made.append(k)
        return whole(x, k, dim)

    monkeypatch.setattr(torch, "topk", counted)
    return made


def test_the_baseline_and_a_plan_make_one_call(compiler: Compiler, calls: list[int]) -> None:
    graph, x = graph_of(4, 4), torch.randn(9, 3)
    expected = x.topk(4, 0)  # a method, which is not counted
    both = [g for g in candidates(graph, templates(TARGET), TARGET).library if len(g.nodes) == 2]
    plan = assemble(
        graph, graph, plan_key(graph, TARGET), FusionPlan(tuple(both)), [], TARGET, compiler,
        SUMMARY,
    )  # fmt: skip
    for found in (TorchProgram(graph)(x), TorchPlan(plan).bind([])([x], 1)):
        assert torch.equal(found[0], expected.values)
        assert torch.equal(found[1], expected.indices)
    assert calls == [4, 4]


def test_other_numbers_of_elements_are_calls_of_their_own(calls: list[int]) -> None:
    graph = graph_of(4, 2)
    assert all(len(g.nodes) == 1 for g in candidates(graph, (), TARGET).library)
    values, positions = TorchProgram(graph)(torch.randn(9, 3))
    assert (values.shape, positions.shape, calls) == ((4, 3), (2, 3), [4, 2])

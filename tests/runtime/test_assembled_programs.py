"""Whole programs with generated kernels: assembled, stored, read back, run and compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.errors import Refusal
from kernel_gen.fusion.group import FrameworkGroup, FusionGroup, FusionPlan
from kernel_gen.fusion.lower import Lowered, Lowering
from kernel_gen.fusion.region import constant_nodes, make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.runtime.assemble import assemble
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.plan import Kernel, Plan
from kernel_gen.runtime.plan_text import plan_to_json
from kernel_gen.runtime.rebuild import differences
from kernel_gen.runtime.serialize import plan_from_json
from kernel_gen.runtime.torch_glue import TorchPlan
from tests.fixtures.tensors import to_array, to_tensor
from tests.runtime.small_plans import SUMMARY, f32, key_of
from tests.strategies import assert_outputs_match, graphs, inputs_for

Array = NDArray[np.generic]
TARGET = host_target("x86-64-v3")


def kernel_of(
    lowering: Lowering, group: FusionGroup, threads: str | None = None
) -> Kernel | Refusal:
    """The first template's first guess for a group, on "one" thread or "all" if that is said."""
    lowered = lowering.lower(group)
    if not isinstance(lowered, Lowered):
        return lowered
    for template in templates(TARGET):
        if template.refuse(lowered.nest, TARGET) is not None:
            continue
        point = dict(template.space(lowered.nest, TARGET).seeds[0])
        point["threads"] = threads or point["threads"]
        schedule = template.schedule(lowered.nest, TARGET, point)
        assert not isinstance(schedule, Refusal)
        symbol = f"k{group.nodes[0]}"
        source = template.generate(lowered.nest, TARGET, schedule, symbol)
        return Kernel(group, lowered.operands, lowered.nest, schedule, source, ("op",))
    return Refusal("no-template", "No template takes it.")


def unfused_plan(
    graph: Graph,
    compiler: Compiler,
    framework: Sequence[int] = (),
    threads: Mapping[int, str] = MappingProxyType({}),
) -> Plan:
    """One kernel per node; `framework` nodes and refused ones run by torch. `threads` says of some
    nodes whether their kernels run on "one" thread or on "all"."""
    lowering, constant = Lowering(graph), constant_nodes(graph)
    groups: list[FusionGroup | FrameworkGroup] = []
    kernels: list[Kernel] = []
    for node in range(len(graph.nodes)):
        if node in constant:
            continue
        group = make_group(graph, (node,))
        kernel = kernel_of(lowering, group, threads.get(node))
        if isinstance(kernel, Kernel) and node not in framework:
            kernels.append(kernel)
            groups.append(group)
        else:
            groups.append(FrameworkGroup(group.nodes, group.inputs, group.outputs, "library", "."))
    cover = FusionPlan(tuple(groups))
    return assemble(graph, graph, key_of(graph), cover, kernels, TARGET, compiler, SUMMARY)


def run(plan: Plan, arrays: Sequence[Array], n_threads: int) -> list[Array]:
    objects = {artifact.sha256: artifact.data for artifact in plan.artifacts}
    plan = plan_from_json(plan_to_json(plan), objects)
    pairs = list(zip(plan.program.inputs, map(to_tensor, arrays), strict=True))
    constants = [tensor for item, tensor in pairs if item.kind is not InputKind.USER]
    bound = TorchPlan(plan).bind(constants)
    inputs = [tensor for item, tensor in pairs if item.kind is InputKind.USER]
    bound(inputs, n_threads)
    return [to_array(tensor) for tensor in bound(inputs, n_threads, checked=True)]


@settings(
    max_examples=15,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_random_programs(compiler: Compiler, data: st.DataObject) -> None:
    graph = data.draw(graphs(max_nodes=6))
    # PyTorch's attention gives zeros, not NaN, for a row whose scores are all NaN or -inf.
    exact = [i for i, node in enumerate(graph.nodes) if node.op != "attention"]
    framework = data.draw(st.sets(st.sampled_from(exact), max_size=2)) if exact else set()
    arrays = data.draw(inputs_for(graph))
    threads = {n: data.draw(st.sampled_from(("one", "all"))) for n in range(len(graph.nodes))}
    plan = unfused_plan(graph, compiler, sorted(framework), threads)
    assume(not _asks_torch_for_positions(plan))
    assert_outputs_match(graph, arrays, run(plan, arrays, data.draw(st.sampled_from((1, 2, 3)))))


def _asks_torch_for_positions(plan: Plan) -> bool:
    """Which of equal elements its topk takes is torch's own affair."""
    parts = [group.nodes for group in plan.cover.groups if isinstance(group, FrameworkGroup)]
    nodes = set().union(constant_nodes(plan.program), *parts)
    return any(plan.program.nodes[n].op == "argtopk" for n in nodes)


@pytest.fixture(scope="module")
def plan(compiler: Compiler) -> Plan:
    b = GraphBuilder()
    x = b.input(f32(8, 32))
    w = b.input(f32(16, 32), InputKind.PARAMETER)
    y = b.op("linear", b.op("layer_norm", x, axes=1, eps=1e-5, weight=False, bias=False), w)
    b.output(b.op("softmax", y, dim=1))
    return unfused_plan(b.build(), compiler)


def test_program_with_norm_product_and_softmax(plan: Plan) -> None:
    x, w = torch.randn(8, 32), torch.randn(16, 32)
    (result,) = TorchPlan(plan).bind([w])([x], 2)
    expected = torch.softmax(torch.nn.functional.layer_norm(x, (32,)) @ w.t(), 1)
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


def test_sources_follow_from_nests_and_schedules(plan: Plan) -> None:
    assert differences(plan) == ()
    source = replace(plan.kernels[0].source, scratch_bytes=1 << 20)
    changed = replace(plan, kernels=(replace(plan.kernels[0], source=source), *plan.kernels[1:]))
    assert [refusal.code for refusal in differences(changed)] == ["source-differs"]
    schedule = replace(plan.kernels[0].schedule, template="none")
    unknown = replace(plan, kernels=(replace(plan.kernels[0], schedule=schedule),))
    assert [refusal.code for refusal in differences(unknown)] == ["no-template"]

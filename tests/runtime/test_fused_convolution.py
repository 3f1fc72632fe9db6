"""Convolutions with what follows them as one call of the library's, against float64."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from kernel_gen.frontend import capture
from kernel_gen.frontend.captured import Captured
from kernel_gen.fusion.apply_rules import apply_rules
from kernel_gen.fusion.group import FrameworkGroup, FusionPlan
from kernel_gen.fusion.library import constant_group
from kernel_gen.fusion.region import constant_nodes, make_group
from kernel_gen.fusion.rules import load_rules
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.fused_convolution import fused_convolution
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.runtime.assemble import assemble
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.key import plan_key
from kernel_gen.runtime.layout import constant_inputs
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.torch_glue import BoundPlan, TorchPlan
from tests.runtime.small_plans import SUMMARY, TARGET, f32

ACTIVATIONS = {
    "relu": ({}, F.relu),
    "relu6": ({}, F.relu6),
    "hardswish": ({}, F.hardswish),
    "hardsigmoid": ({}, F.hardsigmoid),
    "sigmoid": ({}, torch.sigmoid),
    "tanh": ({}, torch.tanh),
    "silu": ({}, F.silu),
    "leaky_relu": ({"slope": 0.1}, lambda x: F.leaky_relu(x, 0.1)),
    "clamp": ({"low": -0.5, "high": None}, lambda x: x.clamp(min=-0.5)),
    "gelu": ({"approximate": "tanh"}, lambda x: F.gelu(x, approximate="tanh")),
}
SETTINGS = {"stride": (2, 1), "padding": (1, 0), "dilation": (1, 2), "groups": 2}


def graph_of(activation: str | None, added: bool, bias: bool = True) -> Graph:
    b = GraphBuilder()
    x, w = b.input(f32(2, 6, 9, 8)), b.input(f32(4, 3, 3, 2), InputKind.PARAMETER)
    operands = [x, w, b.input(f32(4), InputKind.PARAMETER)] if bias else [x, w]
    made = b.op("convolution", *operands, **SETTINGS)
    if added:
        made = b.op("add", b.input(b.type_of(made)), made)
    if activation is not None:
        made = b.op(activation, made, **ACTIVATIONS[activation][0])
    b.output(made)
    return b.build()


def plan_of(graph: Graph, compiler: Compiler) -> Plan:
    group = make_group(graph, range(len(graph.nodes)))
    cover = FusionPlan((FrameworkGroup(group.nodes, group.inputs, group.outputs, "library", "."),))
    key = plan_key(graph, TARGET)
    return assemble(graph, graph, key, cover, [], TARGET, compiler, SUMMARY)


@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
@pytest.mark.parametrize("added", [False, True])
def test_one_call_gives_what_eager_gives(
    compiler: Compiler, activation: str | None, added: bool
) -> None:
    graph = graph_of(activation, added)
    if len(graph.nodes) > 1:
        assert fused_convolution(graph, range(len(graph.nodes))) is not None
    x, r = torch.randn(2, 6, 9, 8), torch.randn(2, 4, 5, 6)
    x[0, 0, 4, 4], x[1, 2, 3, 3] = float("nan"), float("inf")
    w, bias = torch.randn(4, 3, 3, 2), torch.randn(4)
    call = ACTIVATIONS[activation][1] if activation else lambda y: y
    for layout in (torch.contiguous_format, torch.channels_last):
        given = [x, r] if added else [x]
        bound = TorchPlan(plan_of(graph, compiler)).bind([w, bias])
        (result,) = bound([g.contiguous(memory_format=layout) for g in given], 1)
        settings = [SETTINGS[key] for key in ("stride", "padding", "dilation", "groups")]
        y = F.conv2d(x.double(), w.double(), bias.double(), *settings)
        expected = call(y + r if added else y).float()
        torch.testing.assert_close(result, expected, equal_nan=True, rtol=1e-5, atol=1e-5)


def test_the_weight_is_a_snapshot(compiler: Compiler) -> None:
    bound = TorchPlan(plan_of(graph_of("relu", False), compiler)).bind(
        [torch.randn(4, 3, 3, 2), torch.randn(4)]
    )
    assert bound.snapshots == {0}


def test_without_the_library_the_nodes_run_one_by_one(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    w, x = torch.randn(4, 3, 3, 2), torch.randn(2, 6, 9, 8)
    bound = TorchPlan(plan_of(graph_of("relu", False, bias=False), compiler)).bind([w])
    settings = [SETTINGS[key] for key in ("stride", "padding", "dilation", "groups")]
    torch.testing.assert_close(bound([x], 1)[0], F.conv2d(x, w, None, *settings).relu())


@pytest.mark.parametrize("added", [False, True])
def test_only_what_the_library_applies_is_one_kernel(added: bool) -> None:
    for activation, whole in (("relu", False), ("silu", not added), (None, True)):
        graph = graph_of(activation, added)
        if len(graph.nodes) > 1:
            call = fused_convolution(graph, range(len(graph.nodes)))
            assert call is not None
            assert call.is_one_kernel(graph) is whole


class Normed(torch.nn.Module):
    """A convolution, a norm and an activation."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(6, 4, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = F.silu(self.norm(self.conv(x)))
        return result


def test_a_folded_norm_is_folded_again_when_the_plan_is_bound_again(compiler: Compiler) -> None:
    module, x = Normed().eval(), torch.randn(2, 6, 5, 7)
    captured = capture(module, (x,))
    program = apply_rules(captured.graph, load_rules()).program
    constant = constant_nodes(program)
    folded = constant_group(program, frozenset(v for i in constant for v in _made(program, i)))
    left = [i for i in range(len(program.nodes)) if i not in constant]
    group = make_group(program, left)
    library = FrameworkGroup(group.nodes, group.inputs, group.outputs, "library", ".")
    assert folded is not None
    cover = FusionPlan((folded, library))
    key = plan_key(captured.graph, TARGET)
    plan = assemble(program, captured.graph, key, cover, [], TARGET, compiler, SUMMARY)
    for _ in range(2):
        bound, given = _bound(plan, captured, module, x)
        with torch.no_grad():
            torch.testing.assert_close(bound(given, 1)[0], module(x))
        # one of them changed: whoever holds the binding is told to bind anew
        assert len(bound.snapshots) == len(constant_inputs(program))
        with torch.no_grad():
            module.norm.running_var.uniform_(0.5, 2.0)
            module.norm.bias.normal_()


def _made(program: Graph, node: int) -> tuple[int, ...]:
    return program.nodes[node].outputs


def _bound(
    plan: Plan, captured: Captured, module: torch.nn.Module, x: torch.Tensor
) -> tuple[BoundPlan, list[torch.Tensor]]:
    """The plan bound to the module as it is now, and the call's inputs."""
    tensors = captured.bind(module, captured.flatten([x]) or [])
    pairs = list(zip(tensors, plan.program.inputs, strict=True))
    constants = [t for t, item in pairs if item.kind is not InputKind.USER]
    return TorchPlan(plan).bind(constants), [t for t, item in pairs if item.kind is InputKind.USER]

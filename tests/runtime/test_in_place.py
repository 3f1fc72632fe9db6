"""Results written over the input that they replace: where it is right, and only there."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from kernel_gen.codegen.cpu.pointwise import Pointwise
from kernel_gen.errors import Refusal
from kernel_gen.fusion.group import FusionPlan
from kernel_gen.fusion.lower import Lowered, lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.ir.types import TensorType, ValueDomain
from kernel_gen.runtime.assemble import assemble
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.plan import Kernel, Plan
from kernel_gen.runtime.torch_glue import TorchPlan
from tests.runtime.small_plans import SUMMARY, f32, key_of

SHAPE = (37, 53)


def plan_of(graph: Graph, compiler: Compiler, *groups: tuple[int, ...], stream: int = 0) -> Plan:
    """A plan of generated kernels, one per group of nodes (all of them, if none is given)."""
    target, template = host_target(), Pointwise()
    kernels = []
    for number, nodes in enumerate(groups or (tuple(range(len(graph.nodes))),)):
        group = make_group(graph, nodes)
        lowered = lower(graph, group)
        assert isinstance(lowered, Lowered)
        point = {**dict(template.space(lowered.nest, target).seeds[0]), "stream": stream}
        schedule = template.schedule(lowered.nest, target, point)
        source = template.generate(lowered.nest, target, schedule, f"k{number}")
        ops = tuple(graph.nodes[n].op for n in nodes)
        kernels.append(Kernel(group, lowered.operands, lowered.nest, schedule, source, ops))
    cover = FusionPlan(tuple(kernel.group for kernel in kernels))
    return assemble(graph, graph, key_of(graph), cover, kernels, target, compiler, SUMMARY)


def momentum() -> Graph:
    """velocity = velocity · 0.9 + gradient; weight = weight - velocity: both written in place."""
    b = GraphBuilder()
    weight, velocity, gradient = (b.input(f32(*SHAPE)) for _ in range(3))
    factor = b.constant(np.array([0.9], np.float32))
    moved = b.op("add", b.op("mul", velocity, factor), gradient)
    b.output(moved, mutates=1)
    b.output(b.op("sub", weight, moved), mutates=0)
    return b.build()


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_single_element_is_written_by_one_thread(shape: tuple[int, ...]) -> None:
    """old = x; x = x + y: another thread would read the new x as the old one."""
    b = GraphBuilder()
    x, y = b.input(f32(*shape)), b.input(f32(*shape))
    b.output(b.op("add", x, y), mutates=0)
    b.output(b.op("neg", x))
    target, template, graph = host_target(), Pointwise(), b.build()
    lowered = lower(graph, make_group(graph, (0, 1)))
    assert isinstance(lowered, Lowered)
    point = {**dict(template.space(lowered.nest, target).seeds[0]), "threads": "all"}
    schedule = template.schedule(lowered.nest, target, point)
    assert not isinstance(schedule, Refusal)
    source = template.generate(lowered.nest, target, schedule, "k")
    assert source.in_place
    assert "omp parallel" not in source.files[0][1]


@pytest.mark.parametrize("stream", [0, 1])
@pytest.mark.parametrize("threads", [1, 3])
def test_kernels_write_over_what_they_replace(
    compiler: Compiler, stream: int, threads: int
) -> None:
    plan = plan_of(momentum(), compiler, stream=stream)
    assert {target for _, target in plan.layout.overwrites} == {0, 1}
    given = [torch.randn(SHAPE) for _ in range(3)]
    weight, velocity, gradient = given
    memory, versions = [t.data_ptr() for t in given], [t._version for t in given]
    wanted_velocity = velocity * 0.9 + gradient
    wanted = weight - wanted_velocity
    results = TorchPlan(plan).bind([])(given, threads)
    assert results[0] is velocity
    assert results[1] is weight
    torch.testing.assert_close(velocity, wanted_velocity)
    torch.testing.assert_close(weight, wanted)
    assert [t.data_ptr() for t in given] == memory
    moved = [t._version > before for t, before in zip(given, versions, strict=True)]
    assert moved == [True, True, False]


def test_stores_past_the_cache_are_for_results_apart_from_their_inputs(compiler: Compiler) -> None:
    """The lines of an input that is replaced are in the cache: storing past it spares no read."""
    ((_, text),) = plan_of(momentum(), compiler, stream=1).kernels[0].source.files[:1]
    over, apart = text[text.index("if ((const void *)") :].split("else {")
    assert over.count("(const void *)") == 4  # both results, or none
    assert "gaf_st_" in over
    assert "gaf_nt_" not in over
    assert "gaf_nt_" in apart


def test_swapped_values_are_read_before_they_are_written(compiler: Compiler) -> None:
    """x, y = y + 1, x + 1 by one kernel that writes over both."""
    b = GraphBuilder()
    x, y = b.input(f32(*SHAPE)), b.input(f32(*SHAPE))
    one = b.constant(np.array([1.0], np.float32))
    b.output(b.op("add", y, one), mutates=0)
    b.output(b.op("add", x, one), mutates=1)
    plan = plan_of(b.build(), compiler)
    assert len(plan.layout.overwrites) == 2
    first, second = torch.randn(2, *SHAPE)
    wanted = second + 1, first + 1
    TorchPlan(plan).bind([])([first, second], 2)
    assert torch.equal(first, wanted[0])
    assert torch.equal(second, wanted[1])


def test_a_buffer_of_the_model_is_written_in_place(compiler: Compiler) -> None:
    b = GraphBuilder()
    x = b.input(f32(*SHAPE))
    state = b.input(f32(*SHAPE), InputKind.BUFFER)
    b.output(b.op("add", state, x), mutates=1)
    plan = plan_of(b.build(), compiler)
    assert plan.layout.overwrites
    total, one = torch.zeros(SHAPE), torch.ones(SHAPE)
    bound = TorchPlan(plan).bind([total])
    for count in range(1, 4):
        bound([one], 2)
        assert torch.equal(total, count * one)


def returned_besides() -> tuple[Graph, tuple[tuple[int, ...], ...]]:
    b = GraphBuilder()
    x = b.input(f32(*SHAPE))
    after = b.op("neg", x)
    b.output(after, mutates=0)
    b.output(x)
    return b.build(), ()


def read_later() -> tuple[Graph, tuple[tuple[int, ...], ...]]:
    b = GraphBuilder()
    x, y = b.input(f32(*SHAPE)), b.input(f32(*SHAPE))
    b.output(b.op("add", x, y), mutates=0)
    b.output(b.op("sub", x, y))
    return b.build(), ((0,), (1,))


def transposed() -> tuple[Graph, tuple[tuple[int, ...], ...]]:
    b = GraphBuilder()
    x = b.input(f32(40, 40))
    b.output(b.op("add", x, b.op("permute", x, dims=(1, 0))), mutates=0)
    return b.build(), ()


def one_for_all() -> tuple[Graph, tuple[tuple[int, ...], ...]]:
    """A counter that all elements read while one of them writes it."""
    b = GraphBuilder()
    x, count = b.input(f32(*SHAPE)), b.input(f32(1, 1))
    after = b.op("add", count, count)
    b.output(after, mutates=1)
    b.output(b.op("add", x, count))
    return b.build(), ((0,), (1,))


def may_fail() -> tuple[Graph, tuple[tuple[int, ...], ...]]:
    """A position out of range ends the run: the model would then write once more."""
    b = GraphBuilder()
    x, table = b.input(f32(*SHAPE)), b.input(f32(9, SHAPE[1]))
    rows = b.input(TensorType(DType.I64, (SHAPE[0],)), domain=ValueDomain(0, 8))
    b.output(b.op("add", x, b.op("take", table, rows, dim=0)), mutates=0)
    return b.build(), ()


def may_divide_by_zero() -> tuple[Graph, tuple[tuple[int, ...], ...]]:
    b = GraphBuilder()
    kind = TensorType(DType.I32, SHAPE)
    x, y = b.input(kind), b.input(kind)
    b.output(b.op("floor_div", x, y), mutates=0)
    return b.build(), ()


CASES = [returned_besides, read_later, transposed, one_for_all, may_fail, may_divide_by_zero]


def test_a_division_by_a_number_does_not_fail(compiler: Compiler) -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.I32, SHAPE))
    three = b.op("full", shape=(), dtype="i32", value=3)
    b.output(b.op("floor_div", x, three), mutates=0)
    assert plan_of(b.build(), compiler).layout.overwrites == ((2, 0),)


@pytest.mark.parametrize("case", CASES)
def test_where_the_old_value_is_needed_it_stays(compiler: Compiler, case: object) -> None:
    assert callable(case)
    graph, groups = case()
    assert plan_of(graph, compiler, *groups).layout.overwrites == ()

"""Plans run through torch: values, layouts, framework groups, constants, threads."""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest
import torch

from kernel_gen.errors import InternalError, InvalidInput, Unavailable
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import InputKind
from kernel_gen.ir.types import TensorType
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.native import NativePlan
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.torch_glue import BoundPlan, TorchPlan
from tests.runtime.small_plans import chain_graph, f32, plan_of, with_provenance


def bind(plan: Plan, *constants: torch.Tensor) -> BoundPlan:
    return TorchPlan(plan).bind(constants)


@pytest.mark.parametrize("packed", [(), (2,)])
@pytest.mark.parametrize("scratch", [0, 192])
def test_chain_of_kernels(compiler: Compiler, packed: tuple[int, ...], scratch: int) -> None:
    plan = plan_of(chain_graph(), compiler, packed=packed, scratch_bytes=scratch)
    assert len(plan.layout.segments) == 1
    x, y, w = torch.randn(3, 4, 6)
    bound = bind(plan, w)
    for n_threads in (1, 3, 2):
        (result,) = bound([x, y], n_threads)
        assert torch.equal(result, (x + y) * w - x)
    assert bound.snapshots == ({0} if packed else set())


def test_unpacked_weights_are_read_in_place(compiler: Compiler) -> None:
    x, y, w = torch.randn(3, 4, 6)
    bound = bind(plan_of(chain_graph(), compiler), w)
    w.mul_(2)
    assert torch.equal(bound([x, y], 1)[0], (x + y) * w - x)


def test_packed_weights_are_a_snapshot(compiler: Compiler) -> None:
    x, y, w = torch.randn(3, 4, 6)
    bound = bind(plan_of(chain_graph(), compiler, packed=(2,)), w)
    old = w.clone()
    w.mul_(2)
    assert torch.equal(bound([x, y], 1)[0], (x + y) * old - x)


def test_weights_in_another_layout_are_laid_out(compiler: Compiler) -> None:
    x, y, w = torch.randn(3, 4, 6)
    bound = bind(plan_of(chain_graph(), compiler), w.t().contiguous().t())
    assert torch.equal(bound([x, y], 1)[0], (x + y) * w - x)
    assert bound.snapshots == {0}


@pytest.mark.parametrize("framework", [(0,), (1,), (2,), (0, 1), (0, 2), (0, 1, 2)])
def test_framework_groups(compiler: Compiler, framework: tuple[int, ...]) -> None:
    plan = plan_of(chain_graph(), compiler, framework=framework)
    x, y, w = torch.randn(3, 4, 6)
    bound = bind(plan, w)
    for _ in range(3):
        assert torch.equal(bound([x, y], 2)[0], (x + y) * w - x)


def test_framework_result_of_other_layout_is_laid_out_for_kernels(compiler: Compiler) -> None:
    b = GraphBuilder()
    x = b.input(f32(4, 6))
    b.output(b.op("neg", b.op("permute", x, dims=(1, 0))))
    bound = bind(plan_of(b.build(), compiler, framework=(0,)))
    value = torch.randn(4, 6)
    assert torch.equal(bound([value], 1)[0], -value.t())


def test_buffers_are_let_go_after_their_last_use(compiler: Compiler) -> None:
    """Segments that alternate hold no more memory than they need: types share a pool."""
    b = GraphBuilder()
    value = b.input(f32(4, 4))
    for _ in range(6):
        value = b.op("neg", b.op("add", value, value))
    b.output(value)
    bound = bind(plan_of(b.build(), compiler, framework=tuple(range(1, 12, 2))))
    x = torch.randn(4, 4)
    assert torch.equal(bound([x], 1)[0], x * 64)
    (pool,) = {id(pool): pool for step in bound._steps for _, pool in step_takes(step)}.values()
    assert len(pool._buffers) <= 2


def step_takes(step: object) -> list[tuple[int, object]]:
    return getattr(step, "takes", [])


@pytest.mark.parametrize("declared", [True, False])
def test_constant_nodes_run_once_at_bind(compiler: Compiler, declared: bool) -> None:
    b = GraphBuilder()
    x = b.input(f32(2, 3))
    w = b.input(f32(3, 2), InputKind.PARAMETER)
    b.output(b.op("mul", x, b.op("permute", w, dims=(1, 0))))
    graph = b.build()
    plan = (
        plan_of(graph, compiler, constant=(0,))
        if declared
        else plan_of(graph, compiler, left_out=(0,))
    )
    assert plan.layout.folded == (0,)
    assert [len(s.kernels) for s in plan.layout.segments] == [1]
    value, weight = torch.randn(2, 3), torch.randn(3, 2)
    bound = bind(plan, weight)
    assert torch.equal(bound([value], 1)[0], value * weight.t())
    assert bound.snapshots == {0}


def test_graph_constants(compiler: Compiler) -> None:
    b = GraphBuilder()
    x = b.input(f32(2, 3))
    b.output(b.op("add", x, b.constant(np.arange(6, dtype=np.float32).reshape(2, 3))))
    value = torch.randn(2, 3)
    bound = bind(plan_of(b.build(), compiler))
    assert torch.equal(bound([value], 1)[0], value + torch.arange(6.0).reshape(2, 3))


def test_empty_tensors(compiler: Compiler) -> None:
    b = GraphBuilder()
    x = b.input(f32(0, 3))
    b.output(b.op("neg", b.op("add", x, x)))
    (result,) = bind(plan_of(b.build(), compiler))([torch.empty(0, 3)], 1)
    assert result.shape == (0, 3)


def test_scalars(compiler: Compiler) -> None:
    b = GraphBuilder()
    x = b.input(f32())
    b.output(b.op("add", x, x))
    assert bind(plan_of(b.build(), compiler))([torch.tensor(2.5)], 1)[0] == 5


def test_no_kernels_at_all(compiler: Compiler) -> None:
    plan = plan_of(chain_graph(), compiler, framework=(0, 1, 2))
    assert plan.artifacts == ()
    x, y, w = torch.randn(3, 4, 6)
    assert torch.equal(bind(plan, w)([x, y], 1)[0], (x + y) * w - x)


def test_results_of_a_strided_type(compiler: Compiler) -> None:
    """Strides of a result are those of its type, whatever the kernel's order of writing."""
    b = GraphBuilder()
    x = b.input(f32(4, 6))
    b.output(b.op("neg", x))
    graph = b.build()
    types = [TensorType(DType.F32, (4, 6), (1, 4)) for _ in graph.values]
    plan = plan_of(type(graph)(tuple(types), graph.inputs, graph.nodes, graph.outputs), compiler)
    value = torch.randn(6, 4).t()
    (result,) = bind(plan)([value], 1)
    assert result.stride() == (1, 4)
    assert torch.equal(result, -value)


def test_check_says_what_does_not_fit(compiler: Compiler) -> None:
    x, y, w = torch.randn(3, 4, 6)
    bound = bind(plan_of(chain_graph(), compiler), w)
    with pytest.raises(InvalidInput, match="takes 2 inputs, got 1"):
        bound([x], 1, checked=True)
    with pytest.raises(InvalidInput, match=r"input 1: expected torch\.float32"):
        bound([x, y.double()], 1, checked=True)
    with pytest.raises(InvalidInput, match="input 0: expected strides"):
        bound([x.t().contiguous().t(), y], 1, checked=True)
    assert torch.equal(bound([x, y], 1, checked=True)[0], (x + y) * w - x)


def test_binding_checks_constants(compiler: Compiler) -> None:
    plan = plan_of(chain_graph(), compiler)
    with pytest.raises(InvalidInput, match="binds 1 constants, got 0"):
        bind(plan)
    with pytest.raises(InvalidInput, match=r"constant 0: expected torch.float32 \(4, 6\)"):
        bind(plan, torch.randn(6, 4))


def test_failing_kernel_is_an_error_and_the_plan_lives_on(compiler: Compiler) -> None:
    x, y, w = torch.randn(3, 4, 6)
    bound = bind(plan_of(chain_graph(), compiler), w)
    with pytest.raises(InternalError, match="bad argument"):
        bound([x, y], 0)
    assert torch.equal(bound([x, y], 1)[0], (x + y) * w - x)


def test_requirements_are_checked_before_loading(
    compiler: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = with_provenance(plan_of(chain_graph(), compiler), requires=("amx9000",))
    monkeypatch.setattr(NativePlan, "__init__", None)  # loading would fail otherwise
    with pytest.raises(Unavailable, match="the CPU lacks amx9000"):
        TorchPlan(plan)


def test_threads_run_at_once(compiler: Compiler) -> None:
    plan = plan_of(chain_graph(), compiler, packed=(2,), scratch_bytes=64)
    w = torch.randn(4, 6)
    bound = bind(plan, w)
    wrong: list[int] = []

    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        kept = []
        for _ in range(200):
            x, y = torch.randn(2, 4, 6, generator=generator)
            (result,) = bound([x, y], 1 + seed % 3)
            kept = [*kept[-2:], (result, (x + y) * w - x)]
            wrong.extend(1 for got, expected in kept if not torch.equal(got, expected))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_dropped_plan_frees_its_constants(compiler: Compiler) -> None:
    x, y, w = torch.randn(3, 4, 6)
    bound = bind(plan_of(chain_graph(), compiler, packed=(2,)), w)
    bound([x, y], 1)
    gone = weakref.ref(bound)
    del bound
    gc.collect()
    assert gone() is None


def test_results_are_no_inference_tensors(compiler: Compiler) -> None:
    x, y, w = torch.randn(3, 4, 6)
    bound = bind(plan_of(chain_graph(), compiler), w)
    with torch.inference_mode():
        results = [bound([x, y], 1)[0] for _ in range(2)]
    assert not any(result.is_inference() for result in results)
    a = torch.ones(4, 6, requires_grad=True)
    (a * results[0]).sum().backward()
    assert torch.equal(a.grad, results[0])

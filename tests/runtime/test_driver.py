"""The driver of a plan, as functions and as the tables of long plans."""

from __future__ import annotations

import pytest
import torch

from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.graph import InputKind
from kernel_gen.runtime import driver_source
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.plan import Layout
from kernel_gen.runtime.torch_glue import TorchPlan
from tests.runtime.small_plans import chain_graph, f32, groups_of, plan_of


@pytest.fixture(params=["functions", "tables"], autouse=True)
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "tables":
        monkeypatch.setattr(driver_source, "_LONG", 0)
    return str(request.param)


def expected(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x + y) * w - x


@pytest.mark.parametrize(
    "choices", [{}, {"packed": (2,)}, {"framework": (1,)}, {"framework": (0, 2), "packed": (2,)}]
)
def test_steps_find_their_operands(compiler: Compiler, choices: dict[str, tuple[int, ...]]) -> None:
    plan = plan_of(chain_graph(), compiler, **choices)  # type: ignore[arg-type]
    x, y, w = (torch.randn(4, 6) for _ in range(3))
    bound = TorchPlan(plan).bind([w])
    for _ in range(2):
        (found,) = bound([x, y], 2)
        torch.testing.assert_close(found, expected(x, y, w))


def test_empty_results_run_nothing(compiler: Compiler) -> None:
    b = GraphBuilder()
    x, w = b.input(f32(0, 6)), b.input(f32(0, 6), InputKind.PARAMETER)
    b.output(b.op("add", b.op("mul", x, w), x))
    plan = plan_of(b.build(), compiler)
    (found,) = TorchPlan(plan).bind([torch.ones(0, 6)])([torch.ones(0, 6)], 1)
    assert found.shape == (0, 6)


def test_the_length_says_which(form: str) -> None:
    graph = chain_graph()
    _, kernels = groups_of(graph)
    ((_, text),) = driver_source.driver_source(graph, kernels, Layout()).files
    assert ("gaf_steps[]" in text) is (form == "tables")


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_pack_each_constant_into_its_place(compiler: Compiler, threads: int) -> None:
    b = GraphBuilder()
    x = b.input(f32(4, 6))
    weights = [b.input(f32(4, 6), InputKind.PARAMETER) for _ in range(5)]
    value = x
    for number, weight in enumerate(weights):
        value = b.op("mul" if number % 2 else "sub", value, weight)
    b.output(value)
    plan = plan_of(b.build(), compiler, packed=tuple(weights))
    at, *given = torch.randn(6, 4, 6)
    kept = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        bound = TorchPlan(plan).bind(given)
    finally:
        torch.set_num_threads(kept)
    (found,) = bound([at], 1)
    first, second, third, fourth, fifth = given
    torch.testing.assert_close(found, (((at - first) * second) - third) * fourth - fifth)

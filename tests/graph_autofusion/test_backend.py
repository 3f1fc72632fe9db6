"""`torch.compile(model, backend="autofusion")`."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator

import pytest
import torch
from torch import nn
from torch._dynamo.exc import BackendCompilerFailed

from graph_autofusion import programs
from kernel_gen.errors import InvalidInput
from kernel_gen.ir.graph import InputKind
from tests.graph_autofusion.quick_plans import QuickSource


@pytest.fixture(autouse=True)
def _plans(source: QuickSource, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(programs, "_resolver", lambda options: source)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _model() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16)).eval()


def test_the_entry_point_is_installed() -> None:
    points = importlib.metadata.entry_points(group="torch_dynamo_backends")
    assert "autofusion" in {point.name for point in points}
    assert "autofusion" in torch.compiler.list_backends()


@torch.no_grad()
def test_parameters_are_constants(source: QuickSource) -> None:
    model, x = _model(), torch.randn(4, 8)
    fast = torch.compile(model, backend="autofusion", options={"strict": True})
    for _ in range(2):
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    (graph,) = source.asked
    kinds = [item.kind for item in graph.inputs]
    assert kinds.count(InputKind.USER) == 1
    assert kinds.count(InputKind.PARAMETER) == 4
    model[0].weight.mul_(2)
    torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    assert len(source.asked) == 1


@torch.no_grad()
def test_dynamic_sizes(source: QuickSource) -> None:
    model = _model()
    fast = torch.compile(model, backend="autofusion", dynamic=True, options={"strict": True})
    for rows in (3, 5, 3):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    assert len(source.asked) == 2


@pytest.mark.filterwarnings("ignore::graph_autofusion.notices.GafWarning")
def test_training_falls_to_the_framework(source: QuickSource) -> None:
    model, x = _model(), torch.randn(4, 8)
    fast = torch.compile(model, backend="autofusion")
    fast(x).square().sum().backward()
    compiled_grad = model[0].weight.grad.clone()
    model.zero_grad()
    model(x).square().sum().backward()
    torch.testing.assert_close(model[0].weight.grad, compiled_grad)
    assert source.asked == []


@torch.no_grad()
def test_a_graph_break_makes_two_programs(source: QuickSource) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2 + 1
        torch._dynamo.graph_break()
        return torch.relu(y) - 1

    x = torch.randn(4, 8)
    fast = torch.compile(program, backend="autofusion")
    torch.testing.assert_close(fast(x), program(x))
    assert len(source.asked) == 2


def test_an_unknown_option_is_named_with_those_that_there_are() -> None:
    fast = torch.compile(_model(), backend="autofusion", options={"budgte": 5})
    with pytest.raises(BackendCompilerFailed) as raised, torch.no_grad():
        fast(torch.randn(4, 8))
    assert isinstance(raised.value.inner_exception, InvalidInput)
    assert "option 'budgte': expected one of device, budget," in str(raised.value)
    assert "environ" not in str(raised.value.inner_exception)

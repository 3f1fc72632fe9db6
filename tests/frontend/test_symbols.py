"""Dynamic shapes: symbols with ranges, or a clear refusal."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from kernel_gen.errors import InvalidInput, UnsupportedModel
from kernel_gen.frontend import capture
from kernel_gen.frontend.torch_run import TorchProgram
from kernel_gen.ir.types import Sym

Tensor = torch.Tensor


def check(model: Any, captured: Any, *args: Tensor) -> None:
    inputs = captured.bind(model, list(args))
    got = captured.rebuild(inputs, TorchProgram(captured.graph)(*inputs))
    with torch.no_grad():
        torch.testing.assert_close(got, model(*args), rtol=0, atol=0)


def test_batch_is_a_symbol_with_its_range() -> None:
    model = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 4), nn.ReLU())
    batch = Dim("batch", min=2, max=64)
    captured = capture(model, (torch.randn(5, 8),), {"input": {0: batch}})
    (symbol,) = captured.graph.symbols
    assert (symbol.name, symbol.low, symbol.high, symbol.hint) == ("s0", 2, 64, 5)
    out = captured.graph.type_of(captured.graph.outputs[0].value)
    assert out.shape == (Sym("s0"), 4)
    for size in (2, 7, 64):
        check(model, captured, torch.randn(size, 8))
    with pytest.raises(InvalidInput, match="outside 2 … 64"):
        TorchProgram(captured.graph)(*captured.bind(model, [torch.randn(65, 8)]))


def test_two_symbols_in_an_attention_layer() -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

        def forward(self, x: Tensor) -> Tensor:
            q, k, v = self.qkv(x).chunk(3, -1)
            q, k, v = (t.unflatten(-1, (2, 4)).transpose(1, 2) for t in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v)
            return x + self.out(y.transpose(1, 2).flatten(2)).softmax(-1)

    model = Layer()
    shapes = {"x": {0: Dim("b", min=2, max=9), 1: Dim("s", min=2, max=99)}}
    captured = capture(model, (torch.randn(3, 6, 8),), shapes)
    assert [s.name for s in captured.graph.symbols] == ["s0", "s1"]
    for batch, length in ((2, 2), (4, 17)):
        check(model, captured, torch.randn(batch, length, 8))


def test_the_users_names_do_not_matter() -> None:
    def digest(name: str) -> str:
        shapes = ({0: Dim(name, min=2, max=9)},)
        return capture(lambda x: x.relu(), (torch.randn(3, 4),), shapes).graph.digest

    assert digest("batch") == digest("rows")


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.roll(1, 0),
        lambda x: x[-3:-1] + 1,
        lambda x: x.tril() + 1,
        lambda x: x.scatter(0, torch.arange(x.shape[0]).reshape(-1, 1).expand(-1, 4), 1.0),
    ],
)
def test_what_needs_a_symbolic_extent_is_left_to_the_framework(program: Any) -> None:
    captured = capture(program, (torch.randn(6, 4),), ({0: Dim("n", min=4, max=99)},))
    codes = [dict(n.attrs)["code"] for n in captured.graph.nodes if n.op == "framework"]
    assert "symbolic-extent" in codes
    check(program, captured, torch.randn(5, 4))
    check(program, captured, torch.randn(50, 4))


@pytest.mark.parametrize(("classes", "fits"), [(99, True), (98, False)])
def test_positions_along_a_symbol_lie_below_its_largest_extent(classes: int, fits: bool) -> None:
    def program(x: Tensor) -> Tensor:
        return F.one_hot(torch.arange(x.shape[0]), classes) + x.sum().long()

    captured = capture(program, (torch.randn(6, 4),), ({0: Dim("n", min=4, max=99)},))
    assert all(node.op != "framework" for node in captured.graph.nodes) == fits
    check(program, captured, torch.randn(50, 4))


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (lambda x: x.reshape(-1) + 1, "expression"),
        (lambda x: x[:-1] + 1, "expression"),
        (lambda x: x * x.shape[0], "symbolic extent"),
        (lambda x: torch.cat([x, x]), "expression"),
    ],
)
def test_arithmetic_on_symbols_is_refused(program: Any, words: str) -> None:
    with pytest.raises(UnsupportedModel, match=words):
        capture(program, (torch.randn(6, 4),), ({0: Dim("n", min=4, max=99)},))

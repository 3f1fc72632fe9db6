"""Cells of recurrent layers, step by step, as primitives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.frontend.as_eager import assert_as_eager, targets

X = torch.randn(3, 2, 6, generator=torch.Generator().manual_seed(4))
CELLS = {
    "lstm": lambda bias: nn.LSTMCell(6, 5, bias=bias),
    "gru": lambda bias: nn.GRUCell(6, 5, bias=bias),
    "tanh": lambda bias: nn.RNNCell(6, 5, bias=bias),
    "relu": lambda bias: nn.RNNCell(6, 5, bias=bias, nonlinearity="relu"),
}


class Steps(nn.Module):
    """A loop over time, from a state of zeros."""

    def __init__(self, cell: nn.Module) -> None:
        super().__init__()
        self.cell = cell

    def forward(self, x: Tensor) -> Any:
        state, found = None, []
        for step in x:
            state = self.cell(step, state)
            found.append(state)
        return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", CELLS)
def test_cell(name: str, bias: bool, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model = Steps(CELLS[name](bias)).to(dtype)
    assert not targets(assert_as_eager(model, (X.to(dtype),), exact=False))


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_cell_without_a_batch(name: str) -> None:
    torch.manual_seed(0)
    assert not targets(assert_as_eager(Steps(CELLS[name](True)), (X[:, 0],), exact=False))

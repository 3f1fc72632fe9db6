"""Capturing takes our own code steps in proportion to the program."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest
import torch
from torch import nn

import kernel_gen
from kernel_gen.frontend import capture

_OURS = str(Path(kernel_gen.__file__).parent)


class Chain(nn.Module):
    """`blocks` of a product, views, a sum and an op that the framework runs, with weights."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(blocks))
        self.register_buffer("scale", torch.ones(3, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            y = layer(x).view(4, 3).transpose(0, 1)[1:].sum(0)
            x = torch.sort(x + y.mean() + self.scale[1]).values.clamp(0, 1)
        return x


def calls(blocks: int) -> int:
    """Calls of our functions during a capture."""
    count = 0

    def seen(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += frame.f_code.co_filename.startswith(_OURS)

    model = Chain(blocks).requires_grad_(False)
    before = sys.gettrace()
    sys.settrace(seen)  # what gives no function to trace lines with hears of calls only
    try:
        graph = capture(model, (torch.randn(3, 4),)).graph
    finally:
        sys.settrace(before)
    assert len(graph.nodes) >= 10 * blocks
    return count


@pytest.mark.slow
def test_four_times_the_program_takes_four_times_the_steps() -> None:
    calls(2)  # what is made at the first use
    small, large = calls(15), calls(60)
    assert large < 4.4 * small

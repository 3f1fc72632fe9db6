"""The demo's program and how it is timed: LayerNorm -> ReLU -> Linear on [rows, 4096]."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

WIDTH = 4096


def build(rows: int) -> tuple[nn.Module, torch.Tensor]:
    """Model with random weights and its input, the same in every process."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.LayerNorm(WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH)).eval()
    return model, torch.randn(rows, WIDTH)


def interleaved_us(
    first: Callable[[], Any], second: Callable[[], Any], rounds: int = 15
) -> tuple[float, float]:
    """Median microseconds of both, called in turn so that drift of the machine hits both."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(2):
        first(), second()
    for _ in range(rounds):
        for call, taken in zip((first, second), times, strict=True):
            start = time.perf_counter()
            call()
            taken.append((time.perf_counter() - start) * 1e6)
    return statistics.median(times[0]), statistics.median(times[1])

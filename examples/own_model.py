"""The model of docs/tutorial.md: replace `build` by your own.

`gaf tune examples/own_model.py:build --seconds 60` searches for its plan; running this file then
finds the plan and compares it with eager.
"""

from __future__ import annotations

import argparse

import torch
from torch import nn

import graph_autofusion as gaf


class Block(nn.Module):
    """A feed-forward layer with a norm before it and a residual around it."""

    def __init__(self, width: int = 512, inner: int = 2048) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def build() -> tuple[nn.Module, torch.Tensor]:
    """The model in eval mode, and an example input: what `gaf tune` and `gaf submit` call."""
    torch.manual_seed(0)
    return Block().eval(), torch.randn(4, 128, 512)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="budget if there is no plan")
    args = parser.parse_args()
    model, x = build()
    with torch.no_grad():
        fast = gaf.optimize(model, x, budget=args.seconds)
        error = (fast(x) - model(x)).abs().max().item()
    gaf.print_graph(fast)
    report = fast.report
    if report.reason:
        print(f"{report.cache}: {report.reason}")
    else:
        print(f"{report.cache}: {report.fusion_rate:.0%} of the ops share a kernel")
        print(f"speedup: {report.speedup:.2f}x")
    print(f"largest difference from eager: {error:.1e}")


if __name__ == "__main__":
    main()

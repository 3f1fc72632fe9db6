"""LayerNorm, ReLU and Linear as one kernel: the smallest complete use of graph-autofusion.

Run it with `python examples/simple_fusion.py [--seconds 30] [--rows 1024]`, or search from the
command line: `gaf tune examples/simple_fusion.py:build`.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn

import graph_autofusion as gaf


def build_model(width: int = 4096) -> nn.Module:
    """LayerNorm(width) -> ReLU -> Linear(width, width), random weights."""
    torch.manual_seed(0)
    return nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width)).eval()


def build(rows: int = 1024) -> tuple[nn.Module, torch.Tensor]:
    """Model and example input, as `gaf tune examples/simple_fusion.py:build` takes them."""
    return build_model(), torch.randn(rows, 4096)


def median_ms(model: nn.Module, x: torch.Tensor, calls: int = 9) -> float:
    """Median milliseconds of one call after a warm-up."""
    model(x)
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        model(x)
        times.append(time.perf_counter() - start)
    return sorted(times)[calls // 2] * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="budget of the search")
    parser.add_argument("--rows", type=int, default=1024, help="rows of the input")
    args = parser.parse_args()
    model, x = build(args.rows)
    with torch.no_grad():
        fast = gaf.optimize(model, x, budget=args.seconds)
        error = (fast(x) - model(x)).abs().max().item()
        before, after = median_ms(model, x), median_ms(fast, x)
    gaf.print_graph(fast)
    gaf.export_graph(fast, "optimized_graph.svg")
    if fast.report.reason:
        print(f"eager {before:.1f} ms, {fast.report.reason}")
    else:
        print(f"eager {before:.1f} ms, fused {after:.1f} ms, speedup: {before / after:.2f}x")
    print(f"largest difference {error:.1e}")


if __name__ == "__main__":
    main()

"""What a call of an optimised module costs besides its kernels.

    python -m benchmarks.overhead [--seconds 10] [--store URL] [--json]

A plan over at most eight small tensors is called through `OptimizedModule` (all guards), through
its bound plan (output buffers, table of pointers), and in C alone (kernels only); median of
interleaved rounds, microseconds per call.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import graph_autofusion as gaf

_ROUNDS = 30
_CALLS = 2000


class Small(nn.Module):
    """Three inputs and four constants of 32 elements: gelu((x * w + b) * y - z) * v + u."""

    def __init__(self) -> None:
        super().__init__()
        self.w, self.b = nn.Parameter(torch.randn(32)), nn.Parameter(torch.randn(32))
        self.v, self.u = nn.Parameter(torch.randn(32)), nn.Parameter(torch.randn(32))

    def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        inner = (x * self.w + self.b) * y - z
        return nn.functional.gelu(inner) * self.v + self.u


def interleaved_us(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Median microseconds of each call, taken in turn."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(_ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(_CALLS):
                call()
            times[name].append((time.perf_counter() - start) / _CALLS * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


def measure(seconds: float, store: str) -> dict[str, float]:
    """Times of all layers, in microseconds."""
    torch.manual_seed(0)
    model, inputs = Small().eval(), tuple(torch.randn(32) for _ in range(3))
    with torch.no_grad():
        fast = gaf.optimize(model, inputs, budget=seconds, store=store, strict=True)
        fast(*inputs)
        ready = fast._gaf_runner.last.ready  # type: ignore[union-attr]
        bound = ready.bound
        if bound is None:
            raise SystemExit("the plan of the sample is slower than the model; try more seconds")
        context = bound._contexts[-1]
        kept = bound(inputs, torch.get_num_threads())
        kernels = (bound._native.run, bound._handle, context.reference)  # type: ignore[union-attr]
        times = interleaved_us(
            {
                "eager": lambda: model(*inputs),
                "module": lambda: fast(*inputs),
                "guards": lambda: ready.accepts(inputs),
                "bound_plan": lambda: bound(inputs, torch.get_num_threads()),
                "kernels": lambda: kernels[0](kernels[1], kernels[2]),
            }
        )
    del kept
    return {**times, "overhead": times["module"] - times["kernels"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="budget of the search")
    parser.add_argument("--store", help="SQLAlchemy URL; a fresh one if left out")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        default = f"sqlite:///{Path(folder, 'store.sqlite')}"
        times = measure(args.seconds, args.store or default)
    if args.json:
        print(json.dumps(times))
        return
    for name, value in times.items():
        print(f"{name:>12} {value:8.2f} us")


if __name__ == "__main__":
    main()

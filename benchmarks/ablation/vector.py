"""`python -m benchmarks.ablation.vector [NAME…] [--device ascend-sim:910b3] [--trials N] [--json]`.

Vector subgraphs of the suite and small recommendation nets on a simulated NPU: the plan that a
search finds, the plan with our best kernel for each op, and the search's own kernels under the
tiling that a fixed heuristic would pick: the largest tile that fits, on all cores. Times are
simulated and hold the chip's launch.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import graph_autofusion as gaf
from benchmarks.suite.workloads import load_case, rows
from kernel_gen.codegen.ascend.kernel.vector_tiling import LARGEST
from kernel_gen.codegen.registry import templates
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import Refusal
from kernel_gen.ir.target import Target
from kernel_gen.records import Budget, JobRequest, Measurement
from kernel_gen.runtime.key import plan_key
from kernel_gen.runtime.plan import Kernel
from tuner.archive import MemoryArchive
from tuner.child.messages import KernelTask
from tuner.devices.ascend_device import AscendDevice
from tuner.devices.opening import open_device
from tuner.session import Assignment, Session
from tuner.tasks import NestTask

_SECONDS = 600.0
Build = Callable[[], tuple[nn.Module, tuple[Tensor, ...]]]


@dataclass(frozen=True, slots=True)
class Row:
    """One program, in simulated microseconds. `heuristic_us` is None for plans with a kernel that
    has no free tile (matrix products block themselves), `unfused_us` where an op got no kernel in
    time; `failures` are trials that gave no time."""

    name: str
    kernels: int
    fused_us: float
    unfused_us: float | None
    heuristic_us: float | None
    trials: int
    failures: int


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; the exit status."""
    args = _parser().parse_args(arguments)
    device = open_device(args.device)
    assert isinstance(device, AscendDevice)
    try:
        found = [
            measured(name, device, args.device, args.trials) for name in args.names or PROGRAMS
        ]
    finally:
        device.close()
    as_json = json.dumps([dataclasses.asdict(row) for row in found], indent=1)
    print(as_json if args.json else markdown(found))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation.vector")
    parser.add_argument("names", nargs="*", choices=[[], *PROGRAMS], help="all by default")
    parser.add_argument("--device", default="ascend-sim:910b3")
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--json", action="store_true")
    return parser


def markdown(found: Sequence[Row]) -> str:
    """The rows as a table."""
    head = ["program", "kernels", "fused", "one per op", "gain", "largest tile", "gain"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in found:
        if not row.kernels:
            lines.append(f"| {row.name} | no plan was right |" + " – |" * (len(head) - 2))
            continue
        cells = [row.name, str(row.kernels), f"{row.fused_us:.2f}"]
        for other in (row.unfused_us, row.heuristic_us):
            gain = "–" if other is None else f"{other / row.fused_us:.2f}×"
            cells += ["–" if other is None else f"{other:.2f}", gain]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def measured(name: str, device: AscendDevice, device_name: str, trials: int) -> Row:
    """Searches a program and times its kernels under the heuristic's tiles."""
    torch.manual_seed(0)
    model, inputs = PROGRAMS[name]()
    with torch.no_grad():
        graph = gaf.capture(model.eval().requires_grad_(False), inputs)
    request = JobRequest(graph.digest, device_name, Budget(_SECONDS, trials))
    archive = MemoryArchive()
    assignment = Assignment(graph, plan_key(graph, device.target), request)
    plan = Session(assignment, device, archive).run()
    checks = {nest.digest: nest for nest in archive.nests}
    times = [_largest_tile_us(kernel, checks, device) for kernel in plan.kernels]
    known = [time for time in times if time is not None]
    summary = plan.summary
    return Row(
        name,
        len(plan.kernels),
        summary.measured_us,
        summary.unfused_us,
        sum(known) if len(known) == len(times) else None,
        summary.trials,
        summary.failures,
    )


def _largest_tile_us(
    kernel: Kernel, checks: dict[str, NestTask], device: AscendDevice
) -> float | None:
    """Simulated time of a nest's first schedule, tiled by the heuristic."""
    task = next(t for t in checks.values() if t.nest == kernel.nest)
    source = _first(kernel, device.target)
    if source is None:
        return None
    (found,) = device.measure([KernelTask(task.check, source, timeout_s=30.0)])
    return found.result.median_us if isinstance(found.result, Measurement) else None


def _first(kernel: Kernel, target: Target) -> KernelSource | None:
    """The kernel as the template's own first guess has it, with the heuristic in its tiling
    function; None where the template does not choose tiles."""
    template = next(t for t in templates(target) if t.name == kernel.schedule.template)
    if template.name == "cube":
        return None
    point = {**dict(template.space(kernel.nest, target).seeds[0]), "lanes": LARGEST}
    schedule = template.schedule(kernel.nest, target, point)
    if isinstance(schedule, Refusal):
        return None
    return template.generate(kernel.nest, target, schedule, kernel.source.entry)


class CrossLayer(nn.Module):
    """A cross layer of DCN-v2 (Wang et al., 2021) after its product: x0 · y + x."""

    def forward(self, x0: Tensor, y: Tensor, bias: Tensor, x: Tensor) -> Tensor:
        return x0 * (y + bias) + x


class Interaction(nn.Module):
    """Second-order terms of a factorisation machine (Rendle, 2010): ½ Σ ((Σ v)² − Σ v²)."""

    def forward(self, v: Tensor) -> Tensor:
        found: Tensor = 0.5 * (v.sum(1).square() - v.square().sum(1)).sum(-1, keepdim=True)
        return found


class Gated(nn.Module):
    """Squeeze and excitation of feature fields (FiBiNET, Huang et al., 2019), pointwise part."""

    def forward(self, fields: Tensor, gate: Tensor) -> Tensor:
        return (fields * torch.sigmoid(gate).unsqueeze(-1)).flatten(1)


class Attention(nn.Module):
    """Pooling of a history by its softmax (DIN, Zhou et al., 2018)."""

    def forward(self, scores: Tensor, mask: Tensor, history: Tensor) -> Tensor:
        weights = torch.softmax(scores + mask, -1)
        return (weights.unsqueeze(-1) * history).sum(1)


class DenseTower(nn.Module):
    """Dense and sparse features side by side, normalised, with an activation."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(13 + 26 * 8)

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        joined = torch.cat([torch.log1p(dense.abs()), sparse], -1)
        return torch.relu(self.norm(joined))


def _suite(name: str) -> Build:
    def build() -> tuple[nn.Module, tuple[Tensor, ...]]:
        function, inputs, _ = load_case(name)
        return (function if isinstance(function, nn.Module) else _Function(function)), inputs

    return build


class _Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self._function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self._function(*inputs)


_VECTOR = (*rows.BUILDERS, "concat_wide", "gather_add", "rec_tower")
PROGRAMS: dict[str, Build] = {
    **{name: _suite(name) for name in _VECTOR},
    "cross layer": lambda: (
        CrossLayer(),
        (torch.randn(64, 429), torch.randn(64, 429), torch.randn(429), torch.randn(64, 429)),
    ),
    "factorisation machine": lambda: (Interaction(), (torch.randn(64, 26, 16),)),
    "gated fields": lambda: (Gated(), (torch.randn(64, 26, 16), torch.randn(64, 26))),
    "history pooling": lambda: (
        Attention(),
        (torch.randn(32, 50), torch.zeros(32, 50), torch.randn(32, 50, 16)),
    ),
    "dense tower": lambda: (DenseTower(), (torch.randn(64, 13), torch.randn(64, 208))),
}


if __name__ == "__main__":
    sys.exit(main())

"""Plots of a run: bars per workload, and a roofline with each of our kernels. SVG and PNG, the
same bytes for the same figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.plotting import plot_style, save_figure
from benchmarks.suite.peers import OURS
from benchmarks.suite.records import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = {
    OURS: "#c2410c",
    "eager": "#94a3b8",
    "inductor": "#60a5fa",
    "inductor-max": "#1d4ed8",
    "onnxruntime": "#a78bfa",
    "openvino": "#10b981",
    "xla": "#eab308",
}
_OTHER_COLOUR = "#475569"
_COLUMNS = 4
_MARKERS = "os^Dv<>Ph*Xp"
# Kernels that only move data have no operations to show: they stand at this intensity, as high as
# their bytes per second put them.
_LEAST_INTENSITY = 1 / 32


def plot_suite(results: Sequence[Result], contenders: Sequence[str], folder: Path) -> list[Path]:
    """Writes `suite-bars` and, where plans are known, `suite-roofline` into `folder`."""
    written = [*save_figure(_bars(results, contenders), folder / "suite-bars")]
    points = [(r.workload, kernel) for r in results for kernel in r.facts.get("kernels", ())]
    timed = [(name, kernel) for name, kernel in points if kernel["median_us"]]
    if timed and any(r.floor for r in results):
        written += save_figure(_roofline(results, timed), folder / "suite-roofline")
    return written


def _bars(results: Sequence[Result], contenders: Sequence[str]) -> Figure:
    """One panel per workload: median milliseconds of each contender, the floor as a line."""
    rows = max(1, math.ceil(len(results) / _COLUMNS))
    with plot_style() as pyplot:
        figure, panels = pyplot.subplots(
            rows, _COLUMNS, figsize=(3.1 * _COLUMNS, 1.9 * rows + 0.8), squeeze=False,
            layout="constrained",
        )  # fmt: skip
        for panel, result in zip(panels.flat, results, strict=False):
            _panel(panel, result, contenders)
        for panel in panels.flat[len(results) :]:
            panel.axis("off")
        handles = [pyplot.Rectangle((0, 0), 1, 1, color=_colour(name)) for name in contenders]
        handles.append(pyplot.Line2D([], [], color="black", linestyle="--", linewidth=1))
        figure.legend(
            handles, [*contenders, "floor"], loc="outside upper center", ncols=8, frameon=False
        )
        figure.supylabel("median time per call, milliseconds")
    drawn: Figure = figure
    return drawn


def _panel(panel: Axes, result: Result, contenders: Sequence[str]) -> None:
    for place, name in enumerate(contenders):
        timing = result.of(name)
        if timing is None:
            panel.text(place, 0, "×", ha="center", va="bottom", color=_colour(name))
            continue
        low = (timing.median_us - timing.min_us) / 1000
        panel.bar(
            place, timing.median_us / 1000, color=_colour(name), yerr=[[low], [0.0]],
            error_kw={"elinewidth": 0.8, "ecolor": "#334155"},
        )  # fmt: skip
    if result.floor is not None:
        panel.axhline(result.floor.us / 1000, color="black", linestyle="--", linewidth=1)
    panel.set_title(result.workload, fontsize=9)
    panel.set_xticks([])
    panel.set_xlim(-0.7, len(contenders) - 0.3)
    panel.grid(axis="y", color="#e2e8f0", linewidth=0.6)


def _colour(name: str) -> str:
    return COLOURS.get(name, _OTHER_COLOUR)


def _roofline(results: Sequence[Result], points: Sequence[tuple[str, Any]]) -> Figure:
    """Operations per second over operations per byte, with the probed limits."""
    floors = [r.floor for r in results if r.floor]
    compute = max(floor.operations_per_second for floor in floors) / 1e9
    large = [
        r.floor.copy_bytes_per_second
        for r in results
        if r.floor and r.effort and r.effort.read_bytes + r.effort.written_bytes > 64 << 20
    ]
    fastest = max(floor.copy_bytes_per_second for floor in floors) / 1e9
    memory = max(large) / 1e9 if large else fastest
    with plot_style() as pyplot:
        figure, axes = pyplot.subplots(figsize=(10, 6), layout="constrained")
        _roofs(axes, points, compute, {"memory": memory, "cache": fastest})
        workloads = list(dict.fromkeys(name for name, _ in points))
        colours = pyplot.get_cmap("turbo")
        for number, workload in enumerate(workloads):
            mine = [kernel for name, kernel in points if name == workload]
            axes.scatter(
                [_intensity(kernel) for kernel in mine],
                [_gflops(kernel) for kernel in mine],
                s=26, marker=_MARKERS[number % len(_MARKERS)], edgecolors="white", linewidths=0.4,
                color=colours(number / max(1, len(workloads) - 1)), label=workload,
            )  # fmt: skip
        axes.set(xscale="log", yscale="log")
        axes.set_xlabel(
            "arithmetic intensity of the kernel's nest, operations per byte"
            " (data movement alone: at the left edge)"
        )
        axes.set_ylabel("GFLOP/s (operations of the nest over its measured time)")
        axes.grid(color="#e2e8f0", linewidth=0.6, which="major")
        figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    drawn: Figure = figure
    return drawn


def _intensity(kernel: Any) -> float:
    return max(float(kernel["operations"]) / max(float(kernel["nbytes"]), 1.0), _LEAST_INTENSITY)


def _gflops(kernel: Any) -> float:
    return _intensity(kernel) * max(float(kernel["nbytes"]), 1.0) / float(kernel["median_us"]) / 1e3


def _roofs(
    axes: Axes, points: Sequence[tuple[str, Any]], compute: float, copies: dict[str, float]
) -> None:
    intensities = [_intensity(kernel) for _, kernel in points]
    low = min(intensities) / 2
    high = 1.5 * max(*intensities, 4 * compute / min(copies.values()))
    axes.axhline(compute, color="#334155", linewidth=1.2, label=f"FMA, {compute:.0f} GFLOP/s")
    for (name, rate), style in zip(copies.items(), ("-", ":"), strict=False):
        corner = compute / rate
        axes.plot(
            [low, corner], [low * rate, compute], color="#334155", linewidth=1.2, linestyle=style,
            label=f"copies in {name}, {rate:.0f} GB/s",
        )  # fmt: skip
    axes.set_xlim(low, high)

"""What counts as faster than the framework."""

from __future__ import annotations

from kernel_gen.fusion.group import FrameworkGroup, FusionPlan
from kernel_gen.ir.fused_convolution import fused_convolution
from kernel_gen.ir.graph import Graph
from kernel_gen.records import Measurement
from tuner.child.protocol import half_width
from tuner.tasks import computing_nodes

IMPROVED_BELOW = 0.99  # of the baseline's time: less is within the noise of a run


def is_baseline(cover: FusionPlan, program: Graph, graph: Graph) -> bool:
    """Whether a cover of `program` makes the framework's calls for `graph`, and no others: no
    kernels, nothing computed once at load, no convolution packed or fused by the library."""
    return program == graph and all(
        isinstance(group, FrameworkGroup)
        and not (group.is_constant and computing_nodes(program, group.nodes))
        and fused_convolution(program, group.nodes) is None
        for group in cover.groups
    )


def is_improved(cover: FusionPlan, measured: Measurement, baseline: Measurement) -> bool:
    """Whether a plan beats the baseline of the same interleaved run. One that runs everything in
    the framework does so only where the intervals of both medians lie apart."""
    if any(not isinstance(group, FrameworkGroup) for group in cover.groups):
        return measured.median_us < IMPROVED_BELOW * baseline.median_us
    high = measured.median_us * (1 + half_width(measured.samples_us))
    return high < baseline.median_us * (1 - half_width(baseline.samples_us))

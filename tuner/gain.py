"""What a plan and the baseline take, and what counts as faster."""

from __future__ import annotations

from kernel_gen.fusion.group import FrameworkGroup, FusionPlan
from kernel_gen.ir.fused_convolution import fused_convolution
from kernel_gen.ir.graph import Graph
from kernel_gen.records import Measurement
from tuner.child.protocol import half_width, is_disturbed
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


def times_us(measured: Measurement, baseline: Measurement) -> tuple[float, float]:
    """What a plan and the baseline take by one interleaved run: the medians, or the least times if
    other programs disturbed the run.

    Such programs only add, but not alike, as each barrier of a parallel op waits for the core that
    they hold: medians told of 0.6 to 10 times for a plan that gains 3.5, least times of 3.5 to 4.2.
    """
    if is_disturbed(measured) or is_disturbed(baseline):
        return measured.min_us, baseline.min_us
    return measured.median_us, baseline.median_us


def is_improved(cover: FusionPlan, measured: Measurement, baseline: Measurement) -> bool:
    """Whether a plan beats the baseline of the same interleaved run. One that runs everything in
    the framework does so only where the intervals of both medians lie apart."""
    if any(not isinstance(group, FrameworkGroup) for group in cover.groups):
        ours, theirs = times_us(measured, baseline)
        return ours < IMPROVED_BELOW * theirs
    high = measured.median_us * (1 + half_width(measured.samples_us))
    return high < baseline.median_us * (1 - half_width(baseline.samples_us))

"""Which of several plans of one interleaved run to keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_gen.records import Measurement
from kernel_gen.runtime.plan import Plan
from tuner.child.contest import Entry
from tuner.gain import IMPROVED_BELOW, is_improved


@dataclass(frozen=True, slots=True)
class Champion:
    """A plan with what it took, and what the baseline took in the same run."""

    entry: Entry
    plan: Plan
    measured: Measurement
    baseline: Measurement

    @property
    def measured_us(self) -> float:
        return self.measured.median_us

    @property
    def baseline_us(self) -> float:
        return self.baseline.median_us

    @property
    def is_improved(self) -> bool:
        return is_improved(self.entry.cover, self.measured, self.baseline)


def best_of(found: Sequence[Champion], left_alone: Callable[[Entry], int]) -> Champion:
    """The fastest; of improvements as fast within the noise, in quiet moments and in most, the one
    that leaves fewest ops alone."""
    quiet_us = min(champion.measured.quiet_us for champion in found)
    median_us = min(champion.measured_us for champion in found)
    level = [
        champion
        for champion in found
        if champion.is_improved
        and champion.measured.quiet_us * IMPROVED_BELOW <= quiet_us
        and champion.measured_us * IMPROVED_BELOW <= median_us
    ]
    if level:
        return min(level, key=lambda c: (left_alone(c.entry), c.measured_us))
    return min(found, key=lambda champion: champion.measured.quiet_us)

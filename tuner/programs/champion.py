"""Which of several plans of one interleaved run to keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_gen.records import Measurement
from kernel_gen.runtime.plan import Plan
from tuner.child.contest import Entry
from tuner.child.protocol import median_interval
from tuner.covers.problem import Overheads
from tuner.gain import is_improved, times_us


@dataclass(frozen=True, slots=True)
class Champion:
    """A plan with what it took, and what the baseline took in the same run."""

    entry: Entry
    plan: Plan
    measured: Measurement
    baseline: Measurement

    @property
    def times_us(self) -> tuple[float, float]:
        """Of the plan and of the baseline."""
        return times_us(self.measured, self.baseline)

    @property
    def is_improved(self) -> bool:
        return is_improved(self.entry.cover, self.measured, self.baseline)


def best_of(found: Sequence[Champion], left_alone: Callable[[Entry], int]) -> Champion:
    """The fastest; of improvements that are not surely slower than another plan, the one that
    leaves fewest ops alone."""
    level = [
        champion
        for champion in found
        if champion.is_improved
        and not any(_is_slower(champion.measured, other.measured) for other in found)
    ]
    if level:
        return min(level, key=lambda c: (left_alone(c.entry), c.measured.quiet_us))
    return min(found, key=lambda champion: champion.measured.quiet_us)


def _is_slower(one: Measurement, other: Measurement) -> bool:
    """Whether one of two plans of an interleaved run is surely slower: round by round, as what else
    the machine does takes from both in a round. An op alone counts as much as where covers are
    weighed."""
    ratios = [a / b for a, b in zip(one.samples_us, other.samples_us, strict=False)]
    low, _ = median_interval(ratios)
    return low > 1 + Overheads().alone

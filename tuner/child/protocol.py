"""How a time is taken: warm-up, inner repetitions, samples until they agree.

A *sample* is the mean over `inner` calls, chosen so that it lasts at least a millisecond. Samples
are taken until the 95 % confidence interval of their median is narrow, or until a cap. A candidate
that is clearly slower than the incumbent is given up early: its exact time is of no use.

The interval of the median is the distribution-free one between order statistics (Conover,
*Practical Nonparametric Statistics*, ch. 3.2): ranks n/2 ± 0.98·√n.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_gen.records import Measurement, Protocol

Timer = Callable[[int], float]
"""Calls the subject that many times and gives the duration of all calls in microseconds."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When sampling ends. `give_up_ratio`: samples this many times the incumbent end it early."""

    sample_us: float = 1000.0
    min_samples: int = 5
    max_samples: int = 30
    max_seconds: float = 0.2
    half_width: float = 0.03
    give_up_ratio: float = 1.3

    @property
    def give_up_samples(self) -> int:
        """Samples after which a clearly slower candidate is dropped."""
        return 2


_SLOW_SAMPLES = 20.0
_DISTURBED_SPREAD = 0.25  # of the median
_QUARTILES_FROM = 4  # samples

FRAMEWORK_ERROR = "framework-error"  # code of torch's refusal of operands that were drawn
QUICK = Limits()
THOROUGH = Limits(
    min_samples=15, max_samples=60, max_seconds=1.5, half_width=0.02, give_up_ratio=math.inf
)


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median of some samples; below five all of their range."""
    n, ordered = len(samples), sorted(samples)
    reach = 0.98 * math.sqrt(n)
    return ordered[max(0, math.floor(n / 2 - reach))], ordered[min(n - 1, math.ceil(n / 2 + reach))]


def half_width(samples: Sequence[float]) -> float:
    """Half width of the median's 95 % interval over the median; infinite below five samples."""
    if len(samples) < 5:
        return math.inf
    low, high = median_interval(samples)
    median = statistics.median(samples)
    return (high - low) / (2 * median) if median > 0 else math.inf


def is_disturbed(measured: Measurement) -> bool:
    """Whether other programs took part in the samples: they lie further apart than those of an idle
    machine, where quartiles stay within a tenth of the median."""
    samples = measured.samples_us
    if len(samples) >= _QUARTILES_FROM:
        return measured.spread > _DISTURBED_SPREAD
    return max(samples) - min(samples) > _DISTURBED_SPREAD * measured.median_us


def inner_calls(call_us: float, sample_us: float) -> int:
    """Calls per sample for a subject of `call_us`: at least one, at most a hundred thousand."""
    return max(1, min(100_000, math.ceil(sample_us / max(call_us, 1e-3))))


def measure(
    timer: Timer,
    threads: int,
    limits: Limits = QUICK,
    incumbent_us: float | None = None,
    flush: Callable[[], None] | None = None,
) -> Measurement:
    """Time a subject. `flush` empties the caches before each sample (cold mode, one call each)."""
    inner, warmup = warm_up(timer, limits, cold=flush is not None)
    samples: list[float] = []
    start = time.monotonic()
    while not _enough(samples, limits, time.monotonic() - start, incumbent_us):
        if flush is not None:
            flush()
        samples.append(timer(inner) / inner)
    protocol = Protocol(threads, inner, warmup, "warm" if flush is None else "cold")
    return Measurement(tuple(samples), protocol)


def warm_up(timer: Timer, limits: Limits, cold: bool) -> tuple[int, int]:
    """Calls per sample and calls made before the first sample."""
    if cold:
        timer(1)
        return 1, 1
    first_us = timer(1)
    if first_us > _SLOW_SAMPLES * limits.sample_us:
        return 1, 1  # so slow that another warm-up call would cost more than it brings
    inner = inner_calls(timer(1), limits.sample_us)
    if inner == 1:
        return 1, 2
    refined = inner_calls(timer(inner) / inner, limits.sample_us)
    return refined, 2 + inner


def _enough(
    samples: Sequence[float], limits: Limits, seconds: float, incumbent_us: float | None
) -> bool:
    if not samples:
        return False
    n = len(samples)
    if incumbent_us is not None and n >= limits.give_up_samples:
        clearly_worse = min(samples) > limits.give_up_ratio * incumbent_us
        if clearly_worse:
            return True
    if n >= limits.max_samples or seconds >= limits.max_seconds:
        return True
    return n >= limits.min_samples and half_width(samples) < limits.half_width

import math

import pytest

from tuner.child import protocol
from tuner.child.protocol import Limits


def steady(call_us: float) -> protocol.Timer:
    return lambda calls: calls * call_us


def test_inner_calls_make_a_sample_last_a_millisecond() -> None:
    measured = protocol.measure(steady(10.0), threads=2)
    assert measured.protocol.inner == 100
    assert measured.median_us == pytest.approx(10.0)
    assert measured.protocol.threads == 2
    assert measured.protocol.cache == "warm"


def test_a_slow_subject_is_sampled_call_by_call() -> None:
    assert protocol.measure(steady(5000.0), threads=1).protocol.inner == 1


def test_agreeing_samples_end_at_the_minimum() -> None:
    limits = Limits(min_samples=5, max_samples=30)
    assert len(protocol.measure(steady(10.0), 1, limits).samples_us) == 5


def test_noisy_samples_go_on_to_the_cap() -> None:
    calls = iter(range(10_000))
    limits = Limits(max_samples=12, max_seconds=60)
    noisy = protocol.measure(lambda n: n * (1000.0 + 700.0 * (next(calls) % 2)), 1, limits)
    assert len(noisy.samples_us) == 12


def test_a_clearly_slower_candidate_is_given_up() -> None:
    limits = Limits(min_samples=5, give_up_ratio=1.3)
    assert len(protocol.measure(steady(200.0), 1, limits, incumbent_us=100.0).samples_us) == 2
    assert len(protocol.measure(steady(120.0), 1, limits, incumbent_us=100.0).samples_us) == 5


def test_cold_mode_flushes_before_every_sample() -> None:
    flushed: list[int] = []
    measured = protocol.measure(steady(10.0), 1, flush=lambda: flushed.append(1))
    assert measured.protocol.cache == "cold"
    assert measured.protocol.inner == 1
    assert len(flushed) == len(measured.samples_us)


def test_half_width_needs_five_samples() -> None:
    assert protocol.half_width([1.0, 1.0, 1.0, 1.0]) == math.inf
    assert protocol.half_width([1.0] * 5) == 0.0
    assert protocol.half_width([1.0, 1.0, 2.0, 3.0, 3.0]) > 0.2

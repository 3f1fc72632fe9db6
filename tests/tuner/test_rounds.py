"""Runs that other programs disturb."""

from __future__ import annotations

from random import Random

import pytest

from kernel_gen.records import Measurement, Protocol
from tuner.child.protocol import is_disturbed
from tuner.child.rounds import undisturbed


def measured(samples_us: list[float], threads: int = 2) -> Measurement:
    return Measurement(tuple(samples_us), Protocol(threads, 1, 1, "warm"))


def waiting(us: float, seed: int) -> list[float]:
    """An op whose threads wait for time slices of other programs in almost every sample."""
    random = Random(seed)
    return [us + random.uniform(5_000.0, 30_000.0) for _ in range(7)]


def test_an_idle_run_is_what_counts() -> None:
    asked: list[int] = []

    def take(threads: int) -> list[Measurement]:
        asked.append(threads)
        return [measured([10.0, 10.1, 10.2, 10.3, 10.4]), measured([20.0, 20.1, 20.2])]

    assert undisturbed(take, 2) == take(2)
    assert asked == [2, 2]


@pytest.mark.parametrize("seed", range(5))
def test_who_waits_for_other_programs_is_timed_alone(seed: int) -> None:
    def take(threads: int) -> list[Measurement]:
        if threads == 1:
            return [measured([80.0, 81.0, 200.0, 82.0], 1), measured([15.0, 15.5, 16.0, 15.2], 1)]
        return [measured(waiting(60.0, seed)), measured([9.0, 9.1, 900.0, 9.2, 9.3, 700.0])]

    baseline, plan = undisturbed(take, 2)
    assert (baseline.min_us, baseline.protocol.threads) == (80.0, 1)
    assert (plan.min_us, plan.protocol.threads) == (9.0, 2)
    one = undisturbed(lambda threads: [measured(waiting(60.0, seed), threads)], 1)
    assert is_disturbed(one[0])  # there is nothing that waits for less

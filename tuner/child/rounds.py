"""Subjects timed in turn, so that what else the machine does takes from all of them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence

from kernel_gen.records import Measurement, Protocol
from tuner.child.protocol import Limits, Timer, half_width, is_disturbed, warm_up

_LEAST_ROUNDS = 3  # of a contest, however long the programs take, while the budget lasts


def rounds(
    timers: Sequence[Timer], threads: int, limits: Limits, seconds: tuple[float, float]
) -> list[Measurement]:
    """Times of each, in rounds of random order, for `seconds`: the usual, and the most that the
    least number of rounds may take."""
    usual, most = seconds
    begin = time.monotonic()
    warmed = [warm_up(timer, limits, cold=False) for timer in timers]
    start = time.monotonic()
    samples: list[list[float]] = [[] for _ in timers]
    order = list(range(len(timers)))
    shuffle = random.Random(0)

    def has_time() -> bool:
        now = time.monotonic()
        if len(samples[0]) < _LEAST_ROUNDS:
            return not samples[0] or now - begin < most
        return now - start < usual

    while not _settled(samples, limits) and has_time():
        shuffle.shuffle(order)
        for i in order:
            inner, _ = warmed[i]
            samples[i].append(timers[i](inner) / inner)
    return [
        Measurement(tuple(found), Protocol(threads, inner, calls, "warm"))
        for found, (inner, calls) in zip(samples, warmed, strict=True)
    ]


def _settled(samples: Sequence[Sequence[float]], limits: Limits) -> bool:
    count = len(samples[0])
    if count >= limits.max_samples:
        return True
    narrow = all(half_width(found) < limits.half_width for found in samples)
    return count >= limits.min_samples and narrow


def undisturbed(take: Callable[[int], list[Measurement]], threads: int) -> list[Measurement]:
    """What `take` measures with so many threads. Where other programs disturbed that, each subject
    has its run with one thread instead, if it was faster there.

    Threads that meet at the end of each parallel op wait for the one whose core another program
    has, for whole time slices: 24 ms of an op of 15 µs, in every sample of a short run. One thread
    waits for none, and takes no longer than it does on an idle machine.
    """
    found = take(threads)
    if threads == 1 or not any(map(is_disturbed, found)):
        return found
    alone = take(1)
    return [min(pair, key=lambda one: one.min_us) for pair in zip(found, alone, strict=True)]

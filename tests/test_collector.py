"""Garbage is looked for seldom where much is made that stays, and as before afterwards."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from kernel_gen.collector import collecting_seldom
from kernel_gen.frontend import capture

_MANY = """
import gc
from kernel_gen.collector import collect_seldom
collect_seldom()
before = sum(found["collections"] for found in gc.get_stats())
kept = [[] for _ in range(200_000)]
print(sum(found["collections"] for found in gc.get_stats()) - before)
"""


@pytest.fixture
def thresholds() -> Iterator[None]:
    kept = gc.get_threshold()
    yield
    gc.set_threshold(*kept)


@pytest.mark.parametrize("given", [(700, 10, 10), (0, 10, 10), (1_000_000, 5, 5)])
@pytest.mark.usefixtures("thresholds")
def test_a_capture_leaves_the_applications_thresholds(given: tuple[int, int, int]) -> None:
    gc.set_threshold(*given)
    capture(torch.nn.ReLU(), (torch.ones(3),))
    assert gc.get_threshold() == given


@pytest.mark.usefixtures("thresholds")
def test_whoever_collects_less_still_goes_on_so() -> None:
    for given in (0, 10, 10), (1_000_000, 5, 5):
        gc.set_threshold(*given)
        with collecting_seldom():
            assert gc.get_threshold() == given
    gc.set_threshold(700, 10, 10)
    with collecting_seldom():
        assert gc.get_threshold()[0] > 10_000
    assert gc.get_threshold() == (700, 10, 10)


def test_a_process_of_our_own_collects_seldom() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _MANY], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) < 10

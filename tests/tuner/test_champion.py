"""Which plan of an interleaved run is kept."""

from __future__ import annotations

import pytest

from kernel_gen.fusion.group import FusionGroup, FusionPlan
from kernel_gen.records import Measurement, Protocol
from tests.fixtures.searches import wide_plan
from tuner.child.contest import Entry
from tuner.programs.champion import Champion, best_of

BASELINE = (20.0, 20.0, 20.0, 20.0, 20.0)
FEW, MANY = (FusionGroup((0, 1), (0,), (2,)),), (FusionGroup((0,), (0,), (2,)),)


def measured(samples_us: tuple[float, ...]) -> Measurement:
    return Measurement(samples_us, Protocol(1, 1, 1, "warm"))


def champion(groups: tuple[FusionGroup, ...], samples_us: tuple[float, ...]) -> Champion:
    entry = Entry(FusionPlan(groups), ())
    return Champion(entry, wide_plan(4), measured(samples_us), measured(BASELINE))


def left_alone(entry: Entry) -> int:
    return len(entry.cover.groups[0].nodes) % 2


@pytest.mark.parametrize(
    ("few_alone", "many_alone", "kept"),
    [
        pytest.param((10.15,) * 5, (10.0,) * 5, FEW, id="level"),
        pytest.param((11.0,) * 5, (10.0,) * 5, MANY, id="slower"),
        pytest.param((9.0,) * 5 + (12.0,) * 15, (9.0,) * 20, MANY, id="mostly"),
        pytest.param((25.05,) * 5, (25.0,) * 5, MANY, id="no-gain"),
        pytest.param((9.0, 14.0) * 10, (9.0, 9.5) * 10, FEW, id="unsure"),
        pytest.param((10.5, 15.75) * 10, (10.0, 15.0) * 10, MANY, id="slower-in-each-round"),
        pytest.param((11.0,), (10.0,), MANY, id="one-round"),
    ],
)
def test_fewest_alone_of_those_that_are_not_surely_slower(
    few_alone: tuple[float, ...],
    many_alone: tuple[float, ...],
    kept: tuple[FusionGroup, ...],
) -> None:
    found = [champion(FEW, few_alone), champion(MANY, many_alone)]
    assert best_of(found, left_alone).entry.cover.groups == kept

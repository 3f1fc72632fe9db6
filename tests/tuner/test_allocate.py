"""Which nests get trials first."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tuner.allocate import allocate
from tuner.costs import CostBook


@dataclass
class Untried:
    """A nest's search that has tried nothing."""

    tried: int = 0
    size: int = 100
    is_empty: bool = False


@dataclass
class Costs:
    """Predicted times of nests never tried."""

    us: dict[str, float]
    untried: Untried = field(default_factory=Untried)

    def cost_us(self, digest: str) -> float:
        return self.us[digest]

    def search(self, digest: str) -> Untried:
        return self.untried


@pytest.mark.parametrize(
    ("batch", "wanted"), [(2, ["a"]), (6, ["a", "d", "b"]), (12, ["a", "d", "b", "c", "x", "y"])]
)
def test_the_dearest_and_the_cheapest_nests_of_the_cover_come_first(
    batch: int, wanted: list[str]
) -> None:
    times = {"a": 90.0, "b": 50.0, "c": 20.0, "d": 1.0, "x": 900.0, "y": 300.0}
    weights = {"d": 1.0, "c": 1.0, "b": 1.0, "a": 1.0, "y": 0.15, "x": 0.15}
    costs: CostBook = Costs(times)  # type: ignore[assignment]
    assert [share.digest for share in allocate(costs, weights, batch)] == wanted

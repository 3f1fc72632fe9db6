"""Which nests get trials first."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from tuner.nests.allocate import allocate, has_untried
from tuner.nests.costs import CostBook


@dataclass
class Search:
    """A nest's search that has made some trials."""

    tried: int = 0
    size: int = 100
    is_empty: bool = False
    exhausted: bool = False
    promised_us: float | None = None
    last_gain: float = 0.0
    has_suggestion: bool = False


@dataclass
class Costs:
    """Predicted times of nests, and how far their searches are."""

    us: dict[str, float]
    searches: dict[str, Search] = field(default_factory=dict)
    related: frozenset[str] = frozenset()

    def is_related(self, digest: str) -> bool:
        return digest in self.related

    def cost_us(self, digest: str) -> float:
        return self.us[digest]

    def measured_us(self, digest: str) -> float:
        return self.us[digest]

    def predicted_us(self, digest: str) -> float:
        return 10.0

    def search(self, digest: str) -> Search:
        return self.searches.setdefault(digest, Search())


TIMES = {"a": 90.0, "b": 50.0, "c": 20.0, "d": 1.0, "x": 900.0, "y": 300.0, "z": 9.0}
WEIGHTS = {"d": 1.0, "c": 1.0, "b": 1.0, "a": 1.0, "y": 0.15, "x": 0.15}


@pytest.mark.parametrize(
    ("batch", "wanted"), [(1, ["a"]), (3, ["a", "d", "b"]), (9, ["a", "d", "b", "c", "x", "y"])]
)
def test_the_dearest_and_the_cheapest_nests_of_the_cover_come_first(
    batch: int, wanted: list[str]
) -> None:
    costs: CostBook = Costs(TIMES)  # type: ignore[assignment]
    shares = allocate(costs, WEIGHTS, batch)
    assert [share.digest for share in shares] == wanted
    assert {share.count for share in shares} == {1}


def test_no_nest_of_the_cover_gets_a_second_trial_before_each_has_had_one() -> None:
    costs: CostBook = Costs(TIMES, {"a": Search(tried=1), "d": Search(tried=1)})  # type: ignore[assignment]
    assert [share.digest for share in allocate(costs, WEIGHTS, 6)] == ["b", "c", "a", "d", "x", "y"]
    assert has_untried(costs, WEIGHTS)


def test_one_first_trial_does_where_relatives_had_some_and_what_suits_them_is_tried_at_once() -> (
    None
):
    searches = {"a": Search(tried=1), "b": Search(tried=5, has_suggestion=True)}
    costs: CostBook = Costs({"a": 9.0, "b": 3.0}, searches, frozenset("ab"))  # type: ignore[assignment]
    assert [s.digest for s in allocate(costs, {"a": 1.0, "b": 1.0}, 4)] == ["b"]


def test_first_trials_of_nests_that_the_cover_has_not_take_a_share_of_a_batch() -> None:
    costs: CostBook = Costs(TIMES, {name: Search(tried=2) for name in "abcd"})  # type: ignore[assignment]
    shares = allocate(costs, WEIGHTS | {"z": 0.15}, 8)
    assert [(s.digest, s.count) for s in shares[:2]] == [("x", 1), ("y", 1)]
    assert "a" in {s.digest for s in shares[2:]}
    assert "z" not in {s.digest for s in shares[:2]}


def test_a_cover_is_tried_once_its_own_nests_are() -> None:
    searches = {name: Search(tried=1) for name in "abc"} | {"d": Search(exhausted=True)}
    costs: CostBook = Costs(TIMES, searches)  # type: ignore[assignment]
    assert not has_untried(costs, WEIGHTS)


def test_a_nest_at_what_the_best_of_its_schedules_promises_gets_few_trials() -> None:
    searches = {
        "near": Search(tried=4, promised_us=95.0),
        "far": Search(tried=4, promised_us=20.0),
    }
    costs: CostBook = Costs({"near": 100.0, "far": 100.0}, searches)  # type: ignore[assignment]
    shares = {s.digest: s.count for s in allocate(costs, {"near": 1.0, "far": 1.0}, 20)}
    assert shares["far"] > 5 * shares["near"]

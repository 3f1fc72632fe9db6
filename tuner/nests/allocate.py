"""Which nests get the next batch: those where a trial promises the most time saved.

Nests of the cover that had no first trials come first, and those that a relative has something to
show. Then most of a batch goes by gain, and some to first trials of nests that the cover has not.
The gain of a trial is guessed as

    weight · best_us · (room · novelty + recent)

with `weight` how often the nest occurs in the cover, `room` the part of its time above what the
model holds possible, for the nest and for the best of the schedules met, `novelty` falling with the
trials made, and `recent` the last relative improvement: an optimistic bandit whose arms are nests.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuner.nests.costs import CostBook
from tuner.nests.search import NestSearch

_HALF_LIFE_TRIALS = 8
_LEAST_ROOM = 0.05  # the model is no oracle: there may be room where it sees none
_FIRST_TRIALS = 2  # what a nest of the cover gets before gains are compared
_OTHERS = 0.25  # of a batch: first trials of nests that the cover has not


@dataclass(frozen=True, slots=True)
class Share:
    """`count` trials of the nest `digest`."""

    digest: str
    count: int


def allocate(costs: CostBook, weights: Mapping[str, float], batch: int) -> list[Share]:
    """Shares of a batch over the nests in `weights` (occurrences); nests never tried come first.

    An empty list means that there is nothing left to try.
    """
    fresh = [d for d in weights if _is_fresh(costs, d)]
    fresh.sort(key=lambda d: -weights[d] * (costs.cost_us(d) or 0.0))
    wanted = _by_trials(_from_both_ends([d for d in fresh if weights[d] >= 1]), costs)
    others = _by_trials([d for d in fresh if weights[d] < 1], costs)
    if wanted:
        return [Share(digest, 1) for digest in [*wanted, *others][:batch]]
    gains = {d: _gain(costs, d, weight) for d, weight in weights.items()}
    ranked = sorted((d for d in gains if gains[d] > 0), key=lambda d: -gains[d])
    few = max(1, round(_OTHERS * batch)) if ranked else batch
    first = [Share(digest, 1) for digest in others[:few]]
    return first + _proportional(ranked, gains, batch - len(first))


def has_untried(costs: CostBook, weights: Mapping[str, float]) -> bool:
    """Whether a nest of the cover itself (weight 1 and more) still waits for its first trial, or
    for that of a relative's tiling."""
    searches = (costs.search(digest) for digest, weight in weights.items() if weight >= 1)
    return any((not s.tried or s.has_suggestion) and _has_more(s) for s in searches)


def _is_fresh(costs: CostBook, digest: str) -> bool:
    search = costs.search(digest)
    if not _has_more(search):
        return False
    trials = 1 if costs.is_related(digest) else _FIRST_TRIALS
    return search.tried < min(trials, search.size) or search.has_suggestion


def _has_more(search: NestSearch) -> bool:
    return not (search.is_empty or search.exhausted)


def _from_both_ends(digests: Sequence[str]) -> list[str]:
    """First, last, second, last but one: the dearest nests promise most, the cheapest take next to
    no time, and what is never measured is left to the framework."""
    half = -(-len(digests) // 2)
    pairs = itertools.zip_longest(digests[:half], reversed(digests[half:]))
    return [digest for pair in pairs for digest in pair if digest is not None]


def _by_trials(digests: Sequence[str], costs: CostBook) -> list[str]:
    """Those never tried first: a cover is measured throughout before anything in it is measured
    twice."""
    return sorted(digests, key=lambda digest: costs.search(digest).tried)


def _gain(costs: CostBook, digest: str, weight: float) -> float:
    search = costs.search(digest)
    best = costs.measured_us(digest)
    if best is None or search.exhausted:
        return 0.0
    possible_us = max(search.promised_us or 0.0, costs.predicted_us(digest))
    room = max(_LEAST_ROOM, 1 - possible_us / best)
    novelty = 1 / (1 + search.tried / _HALF_LIFE_TRIALS)
    return weight * best * (room * novelty + search.last_gain)


def _proportional(ranked: list[str], gains: Mapping[str, float], batch: int) -> list[Share]:
    """Shares in proportion to the gains, at least two trials each (a pair shares its operands)."""
    total = sum(gains[d] for d in ranked)
    shares: list[Share] = []
    left = batch
    for digest in ranked:
        if left <= 0:
            break
        count = min(left, max(2, round(batch * gains[digest] / total)))
        shares.append(Share(digest, count))
        left -= count
    return shares

"""How good a predictor is, judged by its ranking: a search only needs to know what is faster."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_gen.errors import InvalidInput


def rank_correlation(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Kendall's tau-b of two lists of times, from -1 to 1; ties count on neither side.

    0 where one of the lists is constant. O(n²). Raises InvalidInput for lists that do not match.
    """
    _check(predicted, measured)
    agree = ties_predicted = ties_measured = 0
    pairs = [(i, j) for i in range(len(predicted)) for j in range(i)]
    for i, j in pairs:
        first, second = predicted[i] - predicted[j], measured[i] - measured[j]
        ties_predicted += first == 0
        ties_measured += second == 0
        agree += (first * second > 0) - (first * second < 0)
    scale = (len(pairs) - ties_predicted) * (len(pairs) - ties_measured)
    return float(agree / scale**0.5) if scale else 0.0


def _check(predicted: Sequence[float], measured: Sequence[float]) -> None:
    if len(predicted) != len(measured) or not predicted:
        raise InvalidInput(f"{len(predicted)} predictions for {len(measured)} measurements")

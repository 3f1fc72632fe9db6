"""Metrics of predictors on lists with known answers."""

from __future__ import annotations

import pytest

from cost_models.metrics import rank_correlation
from kernel_gen.errors import InvalidInput


def test_rank_correlation_of_equal_reversed_and_constant_orders():
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 40]) == 1.0
    assert rank_correlation([4, 3, 2, 1], [10, 20, 30, 40]) == -1.0
    assert rank_correlation([1, 1, 1, 1], [10, 20, 30, 40]) == 0.0
    assert rank_correlation([1, 2, 4, 3], [1, 2, 3, 4]) == pytest.approx(4 / 6)


def test_ties_count_on_neither_side():
    assert rank_correlation([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / (2 * 3) ** 0.5)


def test_lists_must_match():
    with pytest.raises(InvalidInput):
        rank_correlation([1], [1, 2])
    with pytest.raises(InvalidInput):
        rank_correlation([], [])

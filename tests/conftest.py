"""Fixtures that several packages' tests share, and the order of tests: fast ones first."""

from __future__ import annotations

import pytest

pytest_plugins = ["tests.fixtures.postgres"]

_LATE = ("postgres", "browser", "slow", "ray")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs servers or much time comes last, so that a plain fault shows in seconds."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    marks = [i for i, name in enumerate(_LATE, 1) if item.get_closest_marker(name)]
    return max(marks, default=0)

"""Fixtures that several packages' tests share, and the order of tests: fast ones first."""

from __future__ import annotations

import signal

import pytest

pytest_plugins = ["tests.fixtures.cann", "tests.fixtures.home", "tests.fixtures.postgres"]

_LATE = ("postgres", "browser", "slow", "ray")


def pytest_configure() -> None:
    """Ctrl-C works in tests and their children also where a shell has started the tests in the
    background, with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs servers or much time comes last, so that a plain fault shows in seconds."""
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    marks = [i for i, name in enumerate(_LATE, 1) if item.get_closest_marker(name)]
    return max(marks, default=0)

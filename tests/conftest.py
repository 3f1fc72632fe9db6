"""Fixtures that several packages' tests share."""

from __future__ import annotations

import signal

pytest_plugins = [
    "tests.fixtures.cann",
    "tests.fixtures.compilers",
    "tests.fixtures.home",
    "tests.fixtures.lowered",
    "tests.fixtures.postgres",
    "tests.units",
]


def pytest_configure() -> None:
    """Ctrl-C works in tests and their children also where a shell has started the tests in the
    background, with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

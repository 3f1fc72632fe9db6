"""Fixtures that several packages' tests share."""

from __future__ import annotations

import gc
import signal

from hypothesis import HealthCheck, settings

from kernel_gen.collector import collect_seldom

pytest_plugins = [
    "tests.fixtures.cann",
    "tests.fixtures.compilers",
    "tests.fixtures.home",
    "tests.fixtures.levels",
    "tests.fixtures.lowered",
    "tests.fixtures.postgres",
    "tests.units",
]


def pytest_configure() -> None:
    """Ctrl-C works in tests and their children also where a shell has started the tests in the
    background, with SIGINT ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


# An example takes as long as the machine's other work lets it.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")


def pytest_collection_finish() -> None:
    """What is imported by now stays. Looking for garbage in it and in what a capture makes, again
    and again, took a twelfth of a model's test."""
    gc.collect()
    gc.freeze()
    collect_seldom()

"""The bar of a search on a terminal."""

from __future__ import annotations

import io

import pytest

from graph_autofusion.progress import tuning_progress
from kernel_gen.records import Budget


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        ({"kind": "state", "state": "queued"}, "queued"),
        (
            {"kind": "progress", "phase": "tune-groups", "done": 3, "total": 9, "best_us": 8.25},
            "tune-groups 3/9, best 8.2 µs",
        ),
    ],
)
def test_it_says_what_a_job_waits_for_or_does(
    monkeypatch: pytest.MonkeyPatch, event: dict[str, object], shown: str
) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with tuning_progress(Budget(5.0)) as show:
        show(event)
    assert shown in terminal.getvalue()

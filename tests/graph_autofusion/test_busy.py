"""Whether others use the machine is read off the kernel's counters of this process's cores."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from graph_autofusion import busy

IDLE = "cpu0 100 0 0 900 0 0 0 0 0 0\ncpu1 100 0 0 900 0 0 0 0 0 0\ncpu7 0 0 0 0 0 0 0 0 0 0\n"
ONE_BUSY = "cpu0 102 0 0 918 0 0 0 0 0 0\ncpu1 118 1 0 901 0 0 0 0 0 0\ncpu7 90 0 0 0 0 0 0 0 0 0\n"
LITTLE = "cpu0 101 0 0 918 1 0 0 0 0 0\ncpu1 101 0 0 918 1 0 0 0 0 0\ncpu7 90 0 0 0 0 0 0 0 0 0\n"


@pytest.mark.parametrize(
    ("later", "found"), [(ONE_BUSY, "this machine is busy (52% of 2 cores)"), (LITTLE, "")]
)
def test_only_own_cores_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, later: str, found: str
) -> None:
    stat = tmp_path / "stat"
    stat.write_text(IDLE)
    monkeypatch.setattr(busy, "_STAT", stat)
    monkeypatch.setattr(busy, "_WATCHED_SECONDS", 0.0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    monkeypatch.setattr(busy.time, "sleep", lambda seconds: stat.write_text(later))
    assert busy.other_work() == found


def test_nothing_is_said_where_nothing_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(busy, "_STAT", tmp_path / "none")
    monkeypatch.setattr(busy, "_WATCHED_SECONDS", 0.0)
    assert busy.other_work() == ""

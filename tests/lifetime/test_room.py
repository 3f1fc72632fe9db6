"""Full file systems are told from others."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernel_gen.lifetime.room import full_folders


@pytest.mark.parametrize(
    ("blocks", "files", "is_full"),
    [
        ((100_000, 4096), (10, 9), False),
        ((3, 4096), (10, 9), True),
        ((100_000, 4096), (10, 0), True),
    ],
    ids=["room", "no bytes", "no files"],
)
def test_what_is_full(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    blocks: tuple[int, int],
    files: tuple[int, int],
    is_full: bool,
) -> None:
    state = SimpleNamespace(
        f_bavail=blocks[0], f_frsize=blocks[1], f_files=files[0], f_favail=files[1]
    )
    monkeypatch.setattr(os, "statvfs", lambda path: state)
    found = full_folders([tmp_path / "not" / "yet"])
    assert found == ([tmp_path] if is_full else [])

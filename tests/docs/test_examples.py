"""The examples run as they stand, on little data and a short budget, each in a home of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LITTLE = {"simple_fusion": ("--rows", "64")}

pytestmark = [pytest.mark.slow, pytest.mark.ray]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GAF_")}
    home = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    command = [sys.executable, str(example), "--seconds", "3", *LITTLE.get(example.stem, ())]
    done = subprocess.run(
        command, cwd=tmp_path, env=kept | home, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    assert "speedup: " in done.stdout or "the model runs itself" in done.stdout
    assert "largest difference" in done.stdout

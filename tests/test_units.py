"""Tests that share something dear run in one worker, whatever pytest makes of their ids."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUITE = """
import json, os, time
from pathlib import Path
import pytest

@pytest.fixture(scope="module")
def shared():
    return None

@pytest.fixture(autouse=True)
def noted(request):
    line = json.dumps([os.environ["PYTEST_XDIST_WORKER"], request.node.name.partition("[")[0]])
    with open(Path(__file__).with_name("ran"), "a") as ran:
        ran.write(line + "\\n")

numbers = pytest.mark.parametrize("number", range(6))

@numbers
def test_alone(number): pass

@numbers
def test_with_fixture(number, shared): pass

@pytest.mark.xdist_group("dear")
@numbers
def test_of_a_group(number): time.sleep(0.2)

@pytest.mark.ray
@numbers
def test_that_is_late(number): pass
"""


def test_units_stay_together_and_late_ones_come_last(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = ray\n")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadgroup"]
    command += ["--record-seconds", "seconds.json", "-p", "xdist"]
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [*command, "-p", "tests.units", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path, env={**own, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    ran = [json.loads(line) for line in (tmp_path / "ran").read_text().splitlines()]
    workers = defaultdict(set)
    for worker, name in ran:
        workers[name].add(worker)
    assert len(ran) == 24
    for name in ("test_with_fixture", "test_of_a_group"):
        assert len(workers[name]) == 1, name
    for own in workers["test_alone"]:
        names = [name for worker, name in ran if worker == own]
        assert names == sorted(names, key=lambda name: name == "test_that_is_late")
    assert json.loads((tmp_path / "seconds.json").read_text())["dear"] >= 1

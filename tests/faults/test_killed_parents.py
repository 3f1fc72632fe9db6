"""Processes killed by SIGKILL take along what they have started, and the next start clears up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel_gen.lifetime.scratch import sweep
from tests.fixtures import samples

pytestmark = [pytest.mark.ray, pytest.mark.slow]
ROOT = Path(__file__).parents[2]
OPTIMIZE = """
import sys, torch
import graph_autofusion as gaf
from torch import nn
model = nn.Sequential(nn.LayerNorm(256), nn.ReLU(), nn.Linear(256, 256)).eval()
gaf.optimize(model, torch.randn(4096, 256), budget=300, store=sys.argv[1], strict=True)
"""


class Family:
    """A command and all processes that it starts, in folders of its own."""

    def __init__(self, folder: Path, temporary: Path, command: list[str]) -> None:
        self.temporary = temporary
        self._mark = uuid.uuid4().hex
        own = {f"XDG_{kind}_HOME": str(folder / kind.lower()) for kind in ("CACHE", "CONFIG")}
        own |= {"TMPDIR": str(self.temporary), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
        own |= {"PYTHONPATH": str(ROOT), "GAF_MARK": self._mark}
        self._log = folder / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **own}
            )

    def members(self) -> list[str]:
        """Its living processes, as `pid command`."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                command = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if f"GAF_MARK={self._mark}".encode() not in (place / "environ").read_bytes():
                    continue
            except OSError:
                continue
            found.append(f"{place.name} {command[:200].strip()}")
        return found

    def kill(self, *names: str) -> None:
        """Kills the members with one of the names, or process ids, at once."""
        for member in self.members():
            if any(name in member for name in names):
                os.kill(int(member.split()[0]), signal.SIGKILL)

    def kill_all(self) -> None:
        self.kill("")
        self.process.wait()

    def wait(self, holds: Callable[[], bool], seconds: float = 120.0) -> None:
        end = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < end, (self.members(), self._log.read_text()[-2000:])
            time.sleep(0.1)

    def runs(self, *names: str) -> bool:
        """Whether a process of each name is among its members."""
        members = self.members()
        return all(any(name in member for member in members) for name in names)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Family]]:
    """Starts a family. Its temporary files lie where Ray's sockets have short paths."""
    started: list[Family] = []
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="t") as temporary:

        def family(*command: str) -> Family:
            started.append(Family(tmp_path, Path(temporary), [sys.executable, *command]))
            return started[0]

        yield family
        for head in started:
            head.kill_all()


def ends_without_a_trace(family: Family) -> None:
    family.wait(lambda: family.members() == [], 60)
    sweep(family.temporary)
    assert list(family.temporary.iterdir()) == []


def test_a_killed_demo_leaves_no_service(start: Callable[..., Family], tmp_path: Path) -> None:
    command = ("-m", "graph_autofusion.cli", "demo", "--seconds", "200")
    family = start(*command, "--output", str(tmp_path / "out"))
    family.wait(lambda: family.runs("serve", "tuner.driver", "raylet", "zygote"))
    family.kill(str(family.process.pid))
    ends_without_a_trace(family)


def test_a_killed_caller_of_optimize_leaves_no_search(
    start: Callable[..., Family], tmp_path: Path
) -> None:
    family = start("-c", OPTIMIZE, f"sqlite:///{tmp_path}/store.sqlite")
    family.wait(lambda: family.runs("tuner.local", "raylet", "zygote"))
    family.kill(str(family.process.pid))
    ends_without_a_trace(family)


def test_a_killed_search_leaves_nothing(start: Callable[..., Family], tmp_path: Path) -> None:
    """Together with the processes that measure for it, so that none can clear up."""
    (tmp_path / "graph.json").write_text(samples.graph().to_json())
    store = ("--store", f"sqlite:///{tmp_path}/store.sqlite", "--seconds", "300")
    family = start("-m", "graph_autofusion.cli", "tune", str(tmp_path / "graph.json"), *store)
    family.wait(lambda: family.runs("tuner.local", "raylet", "_DeviceActor", "zygote"))
    family.kill("tuner.local", "_DeviceActor", "zygote")
    assert family.process.wait(60) != 0
    ends_without_a_trace(family)

"""What a search that is called off has started ends with it, and its folders go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graph_autofusion import local_tuner
from graph_autofusion.cli import app
from kernel_gen.lifetime.scratch import sweep

HOLDER = """
import signal, sys, time
from pathlib import Path
from kernel_gen.lifetime.scratch import Scratch
signal.signal(signal.SIGTERM, signal.SIG_IGN)
scratch = Scratch("device", Path(sys.argv[1]))
print("ready", flush=True)
time.sleep(600)
"""


def test_folders_of_killed_helpers_are_free_when_they_are_swept(tmp_path: Path) -> None:
    root = str(Path(local_tuner.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "GAF_SEARCH": "mark-of-this-test"}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, env=environment
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        local_tuner._kill_marked("mark-of-this-test")
        sweep(tmp_path)
        assert list(tmp_path.iterdir()) == []


def test_sigterm_ends_a_command_in_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = []

    def command(**_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            closed.append(True)

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(app, "app", command)
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert (ended.value.code, closed) == (143, [True])
    assert capsys.readouterr().err == "gaf: ended by SIGTERM\n"
    assert signal.getsignal(signal.SIGTERM) is before

"""What a search that is called off has started ends with it, and its folders go."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from graph_autofusion import local_tuner
from graph_autofusion.cli import app
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.lifetime.scratch import sweep
from kernel_gen.records import Budget, JobRequest
from tests.tuner.tuner_jobs import add_relu_graph

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


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        ("print('no such op', file=sys.stderr); sys.exit(2)", InvalidInput, "^no such op$"),
        ("print('no g++', file=sys.stderr); sys.exit(3)", Unavailable, "^no search here: no g"),
        ("print('all wrong', file=sys.stderr); sys.exit(4)", Unavailable, "search failed: all wr"),
        ("os.kill(os.getpid(), 9)", Unavailable, "killed .SIGKILL.: is there memory enough"),
        ("raise ValueError('a fault')", Unavailable, "search broke off: ValueError: a fault"),
    ],
)
def test_a_search_that_ends_without_a_plan_says_why(
    tmp_path: Path, code: str, kind: type[Exception], says: str
) -> None:
    command = [sys.executable, "-c", f"import os, sys; {code}", "--"]
    with (tmp_path / "log").open("w+b") as words, pytest.raises(kind, match=says):
        local_tuner._run(command, tmp_path, words.fileno(), lambda event: None)


def test_a_search_names_the_folder_that_is_full(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(local_tuner, "_tune_in_child", broken)
    monkeypatch.setattr(local_tuner, "full_folders", lambda folders: list(folders)[:1])
    graph = add_relu_graph()
    request = JobRequest(graph.digest, "cpu", Budget(1.0))
    with pytest.raises(Unavailable, match=f"No space left.*left in {tempfile.gettempdir()}"):
        local_tuner.tune_locally(graph, request, f"sqlite:///{tmp_path}/s.db", print)


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

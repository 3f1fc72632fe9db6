"""What a shell sees of the command: completion, progress on a terminal, exit codes, clean JSON."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graph_autofusion.cli.subject import load_subject
from tests.cli.conftest import Gaf
from tests.fixtures.server import Service

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).with_name("gaf")
DOCUMENTED = (ROOT / "docs" / "cli.md").read_text()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("gaf calib", "calibrate"),
        ("gaf db up", "upgrade"),
        ("gaf plans re", "revoke"),
        ("gaf serve --dev", "--device"),
        ("gaf serve --device c", "cpu"),
        ("gaf jobs --state run", "running"),
        ("gaf tune --numerics st", "strict"),
    ],
)
def test_bash_completes_commands_and_options(words: str, expected: str) -> None:
    place = str(len(words.split()) - 1)
    asked = {"_GAF_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": place}
    done = subprocess.run(
        [SCRIPT], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [expected], "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(shell: str) -> None:
    asked = {"_GAF_COMPLETE": f"source_{shell}"}
    done = subprocess.run(
        [SCRIPT], env=os.environ | asked, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "_GAF_COMPLETE" in done.stdout


def test_exit_codes_are_those_of_the_documentation(gaf: Gaf, service: Service, home: Path) -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", DOCUMENTED, re.MULTILINE)}
    at = ("--service", service.url)
    seen = {
        gaf("jobs", *at).code,
        gaf("jobs", "no-such-job", *at).code,
        gaf("lookup", f"gaf1:{'a' * 32}:static:{'b' * 16}:cpu-x-x86-64-c1", *at).code,
        gaf("devices", "--service", "http://127.0.0.1:9").code,
        gaf("serve", "--device", "gpu").code,
    }
    assert seen | {130, 143} == codes  # those two are another test's: they need signals


@pytest.mark.parametrize("command", [("jobs", "x"), ("lookup", "nonsense"), ("plans",)])
def test_errors_leave_the_json_stream_empty(gaf: Gaf, command: tuple[str, ...]) -> None:
    found = gaf(*command, "--json", "--service", "http://127.0.0.1:9")
    assert found.code in (2, 3)
    assert found.output == ""
    assert found.errors.startswith("gaf: ")


def test_progress_is_on_the_terminal_and_json_in_the_pipe(home: Path) -> None:
    """`gaf calibrate --json` with standard error on a terminal; tests make a machine busy."""
    done, shown = on_terminal("calibrate", "--force", "--json")
    assert done.returncode == 0, shown
    assert set(json.loads(done.stdout)["rates"])
    assert "measuring this machine" in shown


def on_terminal(
    *arguments: str, program: Path = SCRIPT
) -> tuple[subprocess.CompletedProcess[bytes], str]:
    """The command with standard error on a terminal, and what it showed there."""
    ours, theirs = pty.openpty()
    done = subprocess.run([program, *arguments], stdout=subprocess.PIPE, stderr=theirs, check=False)
    os.close(theirs)
    shown = os.read(ours, 1 << 16).decode(errors="replace")
    os.close(ours)
    return done, shown


def test_a_service_that_is_awaited_is_named_meanwhile(home: Path) -> None:
    """One that is away is asked again for two and a half seconds: by all commands side by side."""
    away = "http://127.0.0.1:9"
    key = f"gaf1:{'a' * 32}:static:{'b' * 16}:cpu-x"
    commands = (("devices",), ("jobs",), ("plans",), ("lookup", key))
    with ThreadPoolExecutor(len(commands)) as pool:
        runs = [pool.submit(on_terminal, *c, "--json", "--service", away) for c in commands]
    for command, run in zip(commands, runs, strict=True):
        done, shown = run.result()
        assert (done.returncode, done.stdout) == (3, b""), (command, shown)
        assert f"asking {away}" in shown, command
        assert f"{away} cannot be reached" in shown, command


def test_a_long_capture_shows_that_it_goes_on(home: Path) -> None:
    slow = "lambda x: (time.sleep({}), x + 1)[1]"
    text = "import sys, time, torch, graph_autofusion as gaf; "
    text += f"gaf.optimize({slow}, torch.ones(3), on_miss='eager'); print('right')"
    done, seen = on_terminal("-c", text.format(1.5), program=Path(sys.executable))
    assert done.stdout == b"right\n", seen
    assert "capturing the program" in seen


def test_what_the_users_code_prints_is_no_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loud.py").write_text(
        "import torch\n"
        "print('loaded')\n"
        "def build():\n"
        "    print('built')\n"
        "    return (lambda x: (print('run'), x + 1)[1]), (torch.ones(3),)\n"
    )
    load_subject(f"{tmp_path}/loud.py:build")
    out, err = capsys.readouterr()
    assert out == ""
    assert {"loaded", "built", "run"} <= set(err.split())

"""What a user's program or file does wrong ends with a sentence that names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Gaf

OWN = """
from graph_autofusion import InvalidInput

def weights():
    raise RuntimeError("cannot find weights")

def build():
    return weights()

def told():
    raise InvalidInput("told by gaf")
"""


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("own:build", OWN, "own.py:build raised RuntimeError: cannot find weights (own.py:5)"),
        ("own:told", OWN, "told by gaf"),
        ("zero:build", "\n1 / 0", "zero.py raised ZeroDivisionError: division by zero (zero.py:2)"),
        ("half:build", "def build(:", "half.py raised SyntaxError: invalid syntax (half.py, line"),
        ("lacks:build", "import not_there", "lacks.py raised ModuleNotFoundError: No module"),
    ],
)
def test_what_a_users_own_code_raises_is_a_sentence(
    gaf: Gaf, home: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, says: str
) -> None:
    monkeypatch.chdir(home)
    module, _, function = name.partition(":")
    (home / f"{module}.py").write_text(text)
    found = gaf("tune", f"{module}.py:{function}")
    assert (found.code, found.output) == (2, "")
    assert found.errors.strip().startswith(f"gaf: {says}")
    assert "Traceback" not in found.errors


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("tune", "junk.json"), "junk.json: "),
        (("tune", "junk.pt2"), "junk.pt2 is no valid .pt2 archive"),
        (("tune", "dir.onnx"), "dir.onnx: a folder"),
        (("tune", "."), ".: a folder"),
        (("tune", "torch:get_num_threads", "--dim", "batch=8"), "--dim batch=8: torch:get_num_"),
        (("tune", "junk.pt2", "--dim", "batch=8"), "--dim batch=8: junk.pt2 says all its extents"),
        (("tune", "junk.pt2", "--store", "sqlite:///:memory:"), "store is 'sqlite:///:memory:'"),
        (("submit", "junk.pt2", "--service", "ftp://x"), "expected http://"),
        (("submit", "junk.pt2", "--rules", "none.yaml"), "rules file none.yaml"),
        (("submit", "junk.pt2", "--numerics", "fats"), "numerics 'fats'"),
        (("verify", "exp"), "neither a bundle's folder nor a plan's id"),
        (("verify", "589d8380"), "first 12 characters or more"),
    ],
)
def test_files_and_ids_that_are_none_are_named(
    gaf: Gaf, home: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(home)
    (home / "dir.onnx").mkdir()
    for name in ("junk.json", "junk.pt2"):
        (home / name).write_text("junk")
    found = gaf(*arguments)
    assert (found.code, found.output) == (2, "")
    assert says in found.errors

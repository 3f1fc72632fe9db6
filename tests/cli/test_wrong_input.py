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

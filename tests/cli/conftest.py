"""The `gaf` command in this process, and a service for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from graph_autofusion.cli import main
from kernel_gen.runtime.build import Compiler
from tests.fixtures.server import Service, running, settings


@dataclass(frozen=True, slots=True)
class Result:
    """What a run of the command left."""

    code: int
    output: str
    errors: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON document."""
        return json.loads(self.output)


Gaf = Callable[..., Result]


@pytest.fixture(autouse=True)
def wide_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders of the test's own; wide lines, so that no text is broken."""
    monkeypatch.setenv("COLUMNS", "400")


@pytest.fixture
def gaf(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Gaf:
    def run(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["gaf", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return Result(code if isinstance(code, int) else 0, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def gaf_compiler(kept_compiler: Compiler) -> Compiler:
    return kept_compiler


@pytest.fixture
def service(home: Path) -> Iterator[Service]:
    (home / "service").mkdir()
    db = f"sqlite:///{home}/service/service.sqlite"
    with running(settings(home / "service", db)) as started:
        yield started

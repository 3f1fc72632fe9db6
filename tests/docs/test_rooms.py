"""A newcomer finds each room: all packages have a place in the pages, all paths in pages exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ROOMS = ("kernel_gen", "cost_models", "db", "tuner", "service", "graph_autofusion", "benchmarks")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
_PATH = re.compile(rf"`((?:{'|'.join(ROOMS)}|tests|docs|examples)/[\w/.{{}},]*)`")


def _paths(text: str) -> Iterator[str]:
    """Paths that a page names; a{b,c}d is abd and acd."""
    for path in _PATH.findall(text):
        before, brace, rest = path.partition("{")
        if not brace:
            yield path
            continue
        parts, _, after = rest.partition("}")
        yield from (f"{before}{part}{after}" for part in parts.split(","))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_paths_that_pages_name_exist(page: Path) -> None:
    missing = [path for path in _paths(page.read_text()) if not (ROOT / path).exists()]
    assert not missing


def test_every_package_is_named() -> None:
    pages = [DOCS / "architecture.md", *(DOCS / "pipeline").glob("*.md")]
    named = {path.rstrip("/") for page in pages for path in _paths(page.read_text())}
    packages = {
        init.parent.relative_to(ROOT).as_posix()
        for room in ROOMS
        for init in (ROOT / room).rglob("__init__.py")
    }
    assert not packages - named

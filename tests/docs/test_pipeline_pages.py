"""Each stage has its page and its picture, drawn from a source; links lead somewhere."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PIPELINE = DOCS / "pipeline"
STAGES = ("capture", "fuse", "cover", "schedule", "codegen", "tune", "store", "serve", "load")
PAGES = sorted(page for page in (DOCS, PIPELINE) for page in page.glob("*.md"))


def test_pictures_are_those_that_the_script_draws(tmp_path: Path) -> None:
    script = runpy.run_path(str(PIPELINE / "draw.py"))
    script["main"](tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == set(STAGES)
    for stage in STAGES:
        drawn, kept = ((folder / f"{stage}.svg").read_text() for folder in (tmp_path, PIPELINE))
        assert _boxes(drawn) == _boxes(kept)
        assert f"]({stage}.svg)" in (PIPELINE / f"{stage}.md").read_text()


def _boxes(picture: str) -> list[str]:
    """Words and arrows; positions differ between versions of Graphviz."""
    return sorted(re.findall(r"<(?:title|text)[^>]*>([^<]*)<", picture))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target

"""Figures that pages show are those of the record."""

from __future__ import annotations

from pathlib import Path

from benchmarks.suite.records import results_from_json
from benchmarks.suite.report import ratio_table

ROOT = Path(__file__).parents[2]


def test_the_readme_shows_the_ratios_of_the_suites_record() -> None:
    record = (ROOT / "docs/benchmarks/suite.json").read_text(encoding="utf-8")
    run, results = results_from_json(record)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert ratio_table(results, run["contenders"].split(",")) in readme

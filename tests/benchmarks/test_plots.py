"""Plots of the suite: all panels, missing contenders marked, equal bytes for equal figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.suite.peers import CONTENDERS
from benchmarks.suite.records import Floor, Result, Timing
from benchmarks.suite.reference import Effort

KERNEL = {
    "ops": ["relu"], "template": "rows", "operations": 100, "nbytes": 800, "median_us": 2.0,
}  # fmt: skip


def result(name: str) -> Result:
    timings = [Timing(c, 10.0 + i, 9.0 + i) for i, c in enumerate(CONTENDERS[:-1])]
    return Result(
        name,
        (*timings, Timing(CONTENDERS[-1], missing="not installed")),
        Effort(100 << 20, 100, 10, "float32", 0, 0),
        Floor(8.0, 2.0, 40e9, True, 200e9),
        {"kernels": [KERNEL, {**KERNEL, "median_us": None}]},
    )


def test_equal_figures_give_equal_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from benchmarks.suite.plots import plot_suite

    results = [result(name) for name in ("a", "b", "c", "d", "e")]
    first = plot_suite(results, CONTENDERS, tmp_path / "first")
    second = plot_suite(results, CONTENDERS, tmp_path / "second")
    assert [p.name for p in first] == [
        "suite-bars.svg", "suite-bars.png", "suite-roofline.svg", "suite-roofline.png",
    ]  # fmt: skip
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()


def test_without_plans_there_is_no_roofline(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from benchmarks.suite.plots import plot_suite

    written = plot_suite([Result("a", (Timing("eager", 1.0, 1.0),))], ("eager",), tmp_path)
    assert [path.stem for path in written] == ["suite-bars"] * 2

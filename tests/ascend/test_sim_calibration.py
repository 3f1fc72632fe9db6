"""Simulated times meet the published ones, and the README's table is the one that we compute."""

from __future__ import annotations

import re

import pytest

from tests.ascend.calibration import (
    BEGIN,
    END,
    README,
    Bench,
    Row,
    cube_rows,
    memory_rows,
    table,
    vector_rows,
)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("calibration"))


def _published_table() -> str:
    return README.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].strip()


def _assert_rows(rows: list[Row], tolerance: float) -> None:
    lines = _published_table().splitlines()
    for row in rows:
        assert abs(row.error) <= tolerance, row
        assert table([row]).splitlines()[-1] in lines


def test_add_ladder_within_5_percent(bench: Bench) -> None:
    _assert_rows(vector_rows(bench), 0.05)


@pytest.mark.parametrize("repeats", [8, 16, 32, 128])
def test_add_costs_its_start_and_its_repeats(bench: Bench, repeats: int) -> None:
    assert bench.per_round("vector_add", size=repeats) == pytest.approx(22 + repeats, rel=0.05)
    shared = bench.per_round("vector_add", size=repeats, offset=1)
    assert shared == pytest.approx(22 + 2 * repeats, rel=0.05)


def test_memory_within_15_percent(bench: Bench) -> None:
    _assert_rows(memory_rows(bench), 0.15)


def test_cube_within_5_percent(bench: Bench) -> None:
    _assert_rows(cube_rows(bench), 0.05)


def test_table_marks_what_was_held_out() -> None:
    rows = [line for line in _published_table().splitlines() if line.count("|") == 6][2:]
    marks = [line.split("|")[5].strip() for line in rows]
    assert set(marks) == {"fitted", "held out"}
    assert marks.count("held out") >= 3
    errors = [float(re.sub(r"[%+]", "", line.split("|")[4])) for line in rows]
    assert max(abs(error) for error in errors) <= 15
    cube = [
        error for line, error in zip(rows, errors, strict=True) if "L0" in line or "product" in line
    ]
    assert max(abs(error) for error in cube) <= 5

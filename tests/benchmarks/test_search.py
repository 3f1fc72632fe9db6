"""The course of a search is read from its events, and compared with a recorded one."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from benchmarks.search import __main__ as command
from benchmarks.search.curve import Course, Moment, Recorder, course_from, seconds_to_near, thinned
from benchmarks.suite.records import machine

MOMENTS = (
    Moment(1.0, 0, None, None, None),
    Moment(5.0, 10, 80.0, None, None),
    Moment(10.0, 20, 70.0, 90.0, 100.0),
    Moment(30.0, 40, 60.0, 66.0, 110.0),
)
COURSE = Course("case", 60.0, 61.0, 40, 66.0, 110.0, MOMENTS)


def test_events_become_moments() -> None:
    recorder = Recorder()
    recorder.event(1.0, {"kind": "progress", "phase": "prepare", "done": 0})
    recorder.event(5.0, {"kind": "progress", "done": 10, "best_us": 80.0})
    recorder.event(6.0, {"kind": "log", "message": "hello"})
    recorder.event(10.0, {"kind": "cover", "best_us": 90.0, "baseline_us": 100.0})
    assert recorder.moments[-1] == Moment(10.0, 10, 80.0, 90.0, 100.0)
    assert len(recorder.moments) == 3


def test_time_to_near_best_counts_plans_that_were_run_and_cancels_drift() -> None:
    assert COURSE.relative == pytest.approx(0.6)
    # 90 of 100 is 0.9 of the framework; 66 of 110 is 0.6, though the machine has become slower.
    assert seconds_to_near(COURSE, 0.6) == 30.0
    assert seconds_to_near(COURSE, 0.88) == 10.0
    assert seconds_to_near(COURSE, 0.5) is None


def test_a_result_without_moments_counts_at_its_end() -> None:
    assert seconds_to_near(dataclasses.replace(COURSE, moments=()), 0.6) == 61.0


def test_only_improvements_are_kept() -> None:
    repeated = [MOMENTS[1], dataclasses.replace(MOMENTS[1], seconds=6.0), MOMENTS[2]]
    assert thinned(repeated) == (MOMENTS[1], MOMENTS[2])
    assert thinned([]) == ()


def test_a_record_is_compared_with_and_kept_per_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    best = dataclasses.replace(COURSE, measured_us=50.0, baseline_us=100.0, seconds=1800.0)
    courses = iter([best, COURSE])
    monkeypatch.setattr(command, "search", lambda *_: next(courses))
    monkeypatch.setattr(command, "_default_cases", lambda: {"case": (None, (), "eager")})
    other = [{"model": "other", "course": dataclasses.asdict(COURSE)}]
    record = tmp_path / "search-record.json"
    record.write_text(json.dumps({"courses": other}), encoding="utf-8")
    assert command.main(["--record", "--output", str(tmp_path), "--json"]) == 0
    kept = json.loads(record.read_text(encoding="utf-8"))["courses"]
    assert [row["model"] for row in kept] == ["other", machine()["model"]]
    assert course_from(kept[1]["course"]) == best
    capsys.readouterr()

    assert command.main(["--output", str(tmp_path), "--json", "--write"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["cases"]
    assert row["reference_us"] == pytest.approx(0.5 * 110.0)
    assert row["against_reference"] == pytest.approx(66.0 / 55.0)
    assert row["seconds_to_near_best"] is None
    assert "| never |" in (tmp_path / "search.md").read_text(encoding="utf-8")


def test_without_a_record_the_output_says_so() -> None:
    text = command.markdown([command._row(COURSE, None)], {"bad": "UnsupportedModel: no"})
    assert "no record" in text
    assert "30 (of its own result)" in text
    assert "bad: UnsupportedModel: no" in text


@pytest.mark.slow
def test_a_cases_file_is_searched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = tmp_path / "cases.py"
    cases.write_text(
        "import torch\nCASES = {'one': (lambda x: torch.relu(x * 2 + 1), (torch.ones(4096),),"
        " 'eager')}\n",
        encoding="utf-8",
    )
    arguments = ["--cases", str(cases), "--seconds", "4", "--json", "--output", str(tmp_path)]
    assert command.main(arguments) == 0
    (row,) = json.loads(capsys.readouterr().out)["cases"]
    assert row["best_us"] > 0
    assert row["seconds_to_near_best"] is not None
    assert row["curve"]

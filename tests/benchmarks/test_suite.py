"""The suite measures what it says; timings themselves are no test's business."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from benchmarks.suite import __main__ as suite
from benchmarks.suite.correctness import Expected, judge
from benchmarks.suite.harness import Interrupted, Settings, run_workload
from benchmarks.suite.processes import Zygotes
from benchmarks.suite.records import (
    Floor,
    Result,
    Timing,
    floor_of,
    geomean,
    results_from_json,
    summary,
    to_json,
)
from benchmarks.suite.reference import Effort
from benchmarks.suite.report import markdown
from benchmarks.suite.targets import targets
from benchmarks.suite.worker import reason, time_once

EFFORT = Effort(1000, 500, 4000, "float32", 100, 2000)
FLOOR = Floor(8.0, 2.0, 187.5e6, False, 2e9)
CASES = (
    "import torch\n"
    "CASES = {\n"
    "    'double': (lambda x: x * 2, (torch.ones(64),), 'eager'),\n"
    "    'grow': (lambda x: x.add_(1), (torch.ones(64),), 'eager'),\n"
    "}\n"
)


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    path = tmp_path / "cases.py"
    path.write_text(CASES, encoding="utf-8")
    return path


def result(**times: float) -> Result:
    timings = (*(Timing(name, us, us) for name, us in times.items()), Timing("x", missing="no | y"))
    return Result("w", timings, EFFORT, FLOOR, {}, 3)


def test_a_sample_counts_calls_and_leaves_the_first_one_out() -> None:
    calls: list[int] = []
    sample = time_once(lambda: calls.append(1), seconds=0.0)
    assert len(calls) == 2
    assert sample["us"] > 0
    assert sample["faults"] >= 0


def test_ratios_are_others_over_ours_and_missing_peers_are_named() -> None:
    found = result(autofusion=10.0, eager=20.0)
    assert found.ratio("eager") == 2.0
    assert found.ratio("x") is None
    assert found.floor_share == 0.8
    assert geomean([2.0, 8.0, None]) == pytest.approx(4.0)
    table = markdown([found], ["autofusion", "eager", "x"])
    assert "| missing |" in table
    assert "| w | x | missing | no \\| y |" in table
    assert "| w | 0.010 | 2.00× | – | – | 2.00× | 80% |" in table


def test_a_wrong_contender_is_marked_and_does_not_count() -> None:
    timings = (Timing("autofusion", 10.0, 9.0), Timing("eager", 5.0, 5.0, wrong="off"))
    found = Result("w", timings)
    assert found.ratio("eager") is None
    table = markdown([found], ["autofusion", "eager"])
    assert "**wrong** 0.005" in table
    assert "| w | eager | wrong | off |" in table


def test_the_faster_malloc_setting_counts_and_wrong_in_one_is_wrong() -> None:
    slow = [{"us": 30.0, "faults": 100.0}] * 5
    fast = [{"us": us, "faults": 0.0} for us in (10.0, 11.0, 12.0, 13.0, 14.0)]
    facts = {"default": {"max_error": 0.5, "wrong": "off"}, "no-trim": {"max_error": 0.1}}
    found = summary("eager", {"default": slow, "no-trim": fast}, facts)
    assert (found.median_us, found.min_us, found.faults, found.malloc) == (12.0, 10.0, 0, "no-trim")
    assert found.spread == pytest.approx(0.25)
    assert found.by_malloc_us == {"default": 30.0, "no-trim": 12.0}
    assert (found.wrong, found.max_error) == ("off", 0.5)


def test_a_contender_without_samples_says_why() -> None:
    found = summary("xla", {}, {"default": {"missing": "not installed (jax)"}})
    assert found.missing == "not installed (jax)"


def test_the_floor_is_the_larger_of_memory_and_arithmetic() -> None:
    probes = {"copy": [3.0, 4.0, 5.0], "stream": [2.0, 9.0, 9.0], "fma": [10.0]}
    found = floor_of(EFFORT, probes, {"fma_operations": 100.0, "function_elems": {}})
    assert (found.memory_us, found.streaming) == (4.0, False)
    assert found.compute_us == pytest.approx(4000 / (100 / 10e-6) * 1e6)
    assert found.us == found.compute_us
    assert found.bound == "compute"


def test_functions_add_to_arithmetic_and_may_bound_a_workload() -> None:
    effort = replace(EFFORT, functions={"exp": 500, "erf": 100})
    probes = {"copy": [9.0], "stream": [9.0], "fma": [10.0], "exp": [20.0], "erf": [30.0]}
    elems = {"exp": 1000, "erf": 1000}
    found = floor_of(effort, probes, {"fma_operations": 1e4, "function_elems": elems})
    assert found.functions_us == pytest.approx(10.0 + 3.0)
    assert found.us == pytest.approx(found.functions_us + 4.0)
    assert found.bound == "functions"
    assert replace(found, memory_us=18.0).bound == "memory"
    assert replace(found, compute_us=14.0).bound == "compute"


def test_a_record_is_read_back_as_it_was() -> None:
    found = [result(autofusion=10.0, eager=20.0)]
    run, back = results_from_json(to_json({"threads": 2}, found, targets(found)))
    assert run == {"threads": 2}
    assert back == found


def test_targets_say_met_missed_or_not_measured(tmp_path: Path) -> None:
    fast = Result(
        "ln_relu_mm",
        tuple(Timing(n, us, us) for n, us in (("autofusion", 9.0), ("eager", 20.0))),
        EFFORT,
        FLOOR,
        {"optimize_seconds": 1.0, "capture_seconds": 0.9, "cache": "hit", "trials": 0}
        | {"arena_bytes": 1600},
    )
    record = tmp_path / "search.json"
    row = {"case": "bert_layer", "reference_us": 10.0, "seconds_to_near_best": 40.0}
    record.write_text(json.dumps({"cases": [row]}), encoding="utf-8")
    found = {t.figure: t for t in targets([fast], overhead_us=12.0, search=record)}
    assert found["time against floor"].met is True
    assert found["geomean against the best of all peers"].met is True
    assert found["geomean against the faster of Inductor's modes"].met is None
    assert found["LayerNorm+ReLU+Linear against unfused eager"].found == "55% less"
    assert found["optimize() on a known graph"].met is True
    assert found["arena and outputs"].met is False
    assert found["call overhead, plan of at most 8 tensors"].met is False
    assert found["tuning one BERT layer, empty database"].met is True


def test_errors_see_shapes_dtypes_specials_and_jumps() -> None:
    nan = torch.tensor([1.0, math.nan])
    ones = torch.ones(2)

    def wrong(got: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor | None = None) -> str:
        return judge([got], Expected((eager,), (eager if exact is None else exact,))).wrong

    assert not wrong(nan, nan)
    assert not wrong(ones * (1 + 1e-6), ones)
    assert "2 of 2 elements" in wrong(torch.tensor([1.0, 1.5]) * 2, ones)
    assert "float64" in wrong(ones, ones.double())
    assert "(1, 2)" in wrong(ones[None], ones)
    assert wrong(ones, nan)
    assert wrong(torch.tensor([1, 3]), torch.tensor([1, 2]))
    # Eager jumps in one element of the exact result: four may differ, five may not.
    exact = torch.zeros(100, dtype=torch.float64)
    eager = torch.zeros(100)
    eager[0] = 1.0
    for count, bad in ((4, False), (5, True)):
        got = torch.zeros(100)
        got[1 : 1 + count] = 1.0
        assert bool(wrong(got, eager, exact)) is bad


def test_the_oracle_fp64_is_stricter() -> None:
    exact = torch.ones(4, dtype=torch.float64)
    near = torch.ones(4) * (1 + 5e-5)
    assert not judge([near], Expected((torch.ones(4),), (exact,))).wrong
    assert judge([near], Expected((torch.ones(4),), (exact,), "fp64")).wrong


def test_reasons_are_one_line() -> None:
    assert reason(ModuleNotFoundError("No module named 'jax'", name="jax")) == "not installed (jax)"
    assert reason(ValueError("a\n\n  b")) == "ValueError: a b"


@pytest.fixture(scope="module")
def zygotes() -> Iterator[Zygotes]:
    """Processes that have imported torch and the peers: seconds of work."""
    with Zygotes(1) as started:
        yield started


@pytest.mark.slow
def test_a_workload_is_run_interleaved_in_processes(cases: Path, zygotes: Zygotes) -> None:
    settings = Settings(("eager", "onnxruntime"), threads=1, rounds=2, least_rounds=1, cases=cases)
    told: list[str] = []
    found = run_workload("grow", settings, zygotes, told.append)
    eager = found.of("eager")
    assert eager is not None, found.timings
    assert set(eager.by_malloc_us) == {"default", "no-trim"}
    assert found.effort is not None
    assert (found.effort.read_bytes, found.effort.written_bytes) == (256, 256)
    assert found.floor is not None
    assert found.rounds == 2
    assert told[-1] == "round 2"
    for timing in found.timings:
        assert timing.counts or "not installed" in timing.missing


@pytest.mark.slow
def test_ctrl_c_keeps_what_was_measured(cases: Path, zygotes: Zygotes) -> None:
    def stop(done: str) -> None:
        if done == "round 1":
            raise KeyboardInterrupt

    settings = Settings(("eager",), threads=1, rounds=3, cases=cases)
    with pytest.raises(Interrupted) as caught:
        run_workload("double", settings, zygotes, stop)
    kept = caught.value.result
    assert kept is not None
    assert not kept.complete
    assert kept.of("eager") is not None


@pytest.mark.slow
def test_a_cases_file_is_run_as_json_and_resumed(
    cases: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "out"
    arguments = ["--cases", str(cases), "--json", "--output", str(output), "--no-plots"]
    arguments += ["--contenders", "eager", "--rounds", "1", "--threads", "1"]
    assert suite.main(["double", *arguments]) == 0
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert row["workload"] == "double"
    assert row["timings"][0]["median_us"] > 0
    assert "# Results of the suite" in (output / "suite.md").read_text(encoding="utf-8")

    ran: list[str] = []

    def record(name: str, *_: object) -> Result:
        ran.append(name)
        return Result(name, (Timing("eager", 1.0, 1.0),))

    monkeypatch.setattr(suite, "run_workload", record)
    monkeypatch.setattr(suite, "Zygotes", lambda threads: nullcontext())  # nothing runs in them
    assert suite.main([*arguments, "--resume"]) == 0
    assert ran == ["grow"]
    rows = json.loads((output / "suite.json").read_text(encoding="utf-8"))["results"]
    assert [row["workload"] for row in rows] == ["double", "grow"]
    assert suite.main(["grow", *arguments, "--resume"]) == 0  # what it does not name stays
    rows = json.loads((output / "suite.json").read_text(encoding="utf-8"))["results"]
    assert [row["workload"] for row in rows] == ["double", "grow"]
    with pytest.raises(SystemExit, match="threads"):
        suite.main([*arguments[:-1], "2", "--resume"])


@pytest.mark.slow
def test_a_workload_that_eager_cannot_run_is_reported(
    tmp_path: Path,
    zygotes: Zygotes,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(suite, "Zygotes", lambda threads: nullcontext(zygotes))
    path = tmp_path / "cases.py"
    path.write_text(
        "def bad(x):\n    raise ValueError('no such luck')\nimport torch\n"
        "CASES = {'bad': (bad, (torch.ones(2),), 'eager')}\n",
        encoding="utf-8",
    )
    assert suite.main(["--cases", str(path), "--contenders", "eager"]) == 0
    assert "no such luck" in capsys.readouterr().out


def test_rounds_are_cut_to_fit_the_time_but_never_to_none() -> None:
    settings = Settings(("eager",), seconds=20.0)
    clock = suite._Clock(600.0)
    assert suite._fitted(settings, clock.seconds_for_rounds(5)).seconds == 20.0
    clock.count(200.0, of_rounds=20.0)
    clock.count(200.0, of_rounds=20.0)
    short = suite._fitted(settings, clock.seconds_for_rounds(4))
    assert 0 < short.seconds < 20.0
    assert short.least_rounds == 3
    assert clock.seconds_for_rounds(100) == 0.0


def test_unknown_names_are_refused() -> None:
    with pytest.raises(SystemExit, match="nonsense"):
        suite.main(["nonsense"])
    with pytest.raises(SystemExit, match="tvm"):
        suite.main(["rec_tower", "--contenders", "tvm"])

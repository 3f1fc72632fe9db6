"""The benchmark harness measures what it says; timings themselves are no test's business."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.suite.__main__ import geomean, markdown
from benchmarks.suite.harness import Result, Timing
from benchmarks.suite.worker import max_error, time_once
from benchmarks.suite.workloads import BUILDERS, load_case

SMALL = ("softmax_mask", "rec_tower", "swiglu", "ln_gelu")


@pytest.mark.parametrize("name", SMALL)
def test_a_workload_is_the_same_in_every_process(name: str) -> None:
    first, second = load_case(name), load_case(name)
    with torch.no_grad():
        assert max_error(first[0](*first[1]), second[0](*second[1])) == 0.0


def test_the_suite_has_the_workloads_it_is_quoted_for() -> None:
    assert {"ln_relu_mm", "bert_base_2l", "trans_add_relu", *SMALL} <= set(BUILDERS)


def test_errors_see_shapes_dtypes_and_specials() -> None:
    nan = torch.tensor([1.0, math.nan])
    assert max_error(nan, nan.clone()) == 0.0
    assert max_error(torch.ones(2), torch.tensor([1.0, 1.5])) == 0.5
    assert max_error(torch.ones(2), torch.ones(2, dtype=torch.float64)) == math.inf
    assert max_error(torch.ones(2), torch.ones(1, 2)) == math.inf
    assert max_error(torch.ones(2), nan) == math.inf


def test_a_sample_counts_calls() -> None:
    calls: list[int] = []
    sample = time_once(lambda: calls.append(1))
    assert len(calls) >= 2
    assert sample["us"] > 0
    assert sample["faults"] >= 0


def test_ratios_are_others_over_ours_and_missing_peers_are_named() -> None:
    result = Result(
        "w",
        (Timing("autofusion", 10.0, 9.0), Timing("eager", 20.0, 19.0), Timing("x", missing="no")),
    )
    assert result.ratio("eager") == 2.0
    assert result.ratio("x") is None
    assert geomean([2.0, 8.0, None]) == pytest.approx(4.0)
    table = markdown([result], ["autofusion", "eager", "x"])
    assert "| 2.00 | – |" in table
    assert "missing" in table


@pytest.mark.slow
def test_a_cases_file_is_run_as_json(tmp_path: Path) -> None:
    cases = tmp_path / "cases.py"
    cases.write_text(
        "import torch\nCASES = {'double': (lambda x: x * 2, (torch.ones(64),), 'eager')}\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "benchmarks.suite", "--cases", str(cases), "--json"]
    command += ["--contenders", "eager", "--rounds", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    (row,) = json.loads(done.stdout)["results"]
    assert row["workload"] == "double"
    assert row["timings"][0]["median_us"] > 0

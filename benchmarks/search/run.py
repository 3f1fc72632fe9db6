"""Runs one search in an empty store and watches it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import graph_autofusion as gaf
from benchmarks.search.curve import Course, Recorder, thinned
from benchmarks.suite.workloads import Case
from graph_autofusion.local_tuner import tune_locally
from kernel_gen.records import Budget, JobRequest

Tell = Callable[[float, Any], None]


def search(name: str, case: Case, seconds: float, tell: Tell = lambda *_: None) -> Course:
    """Tunes `case` for `seconds` with an empty database; the clock starts with the tuner's process.

    `tell` sees the seconds so far and each event. Raises what `gaf.capture` and the tuner raise.
    """
    model, inputs, _ = case
    recorder = Recorder()
    with tempfile.TemporaryDirectory(prefix="gaf-search-") as folder, torch.no_grad():
        store = f"sqlite:///{Path(folder, 'store.sqlite')}"
        graph = gaf.capture(model, inputs)
        request = JobRequest(graph.digest, "cpu", Budget(seconds))
        start = time.perf_counter()

        def on_event(event: dict[str, Any]) -> None:
            recorder.event(time.perf_counter() - start, event)
            tell(time.perf_counter() - start, event)

        tune_locally(graph, request, store, on_event)
        taken = time.perf_counter() - start
        report = gaf.optimize(model, inputs, budget=seconds, store=store, strict=True).report
    trials = recorder.moments[-1].trials if recorder.moments else 0
    return Course(
        case=name,
        budget_seconds=seconds,
        seconds=taken,
        trials=trials,
        measured_us=report.measured_us or 0.0,
        baseline_us=report.baseline_us or 0.0,
        moments=thinned(recorder.moments),
    )

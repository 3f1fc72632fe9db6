"""This project: `gaf.optimize` with the store; a plan that is in the store is used as it is.

GAF_BENCH_BUDGET are the seconds that a search may take for a plan that is not (default 60).
"""

from __future__ import annotations

import dataclasses
import gc
import os
import time
from typing import Any

import graph_autofusion as gaf
from benchmarks.suite.peers.work import Built, Work, call_in_place
from benchmarks.suite.roofline import kernel_points
from kernel_gen.runtime.plan import Plan

DEFAULT_BUDGET_SECONDS = 60.0


def build(work: Work) -> Built:
    budget = float(os.environ.get("GAF_BENCH_BUDGET", DEFAULT_BUDGET_SECONDS))
    gaf.capture(work.model, work.inputs)  # imports what captures need: not counted
    gc.collect()  # else one of 0.2 s falls into one of the two times
    start = time.perf_counter()
    gaf.capture(work.model, work.inputs)
    capture_seconds = time.perf_counter() - start
    gc.collect()
    start = time.perf_counter()
    optimized = gaf.optimize(work.model, work.inputs, budget=budget, strict=True)
    optimize_seconds = time.perf_counter() - start
    report = optimized.report
    facts = {
        "capture_seconds": capture_seconds,
        "optimize_seconds": optimize_seconds,
        **{name: getattr(report, name) for name in _REPORTED},
        "unfused": [dataclasses.asdict(entry) for entry in report.unfused],
        **_plan_facts(optimized.plan),
    }
    return call_in_place(work, optimized, **facts)


_REPORTED = (
    "cache",
    "key",
    "fusion_rate",
    "measured_us",
    "baseline_us",
    "unfused_us",
    "improved",
    "trials",
    "tuning_seconds",
)


def _plan_facts(plan: Plan) -> dict[str, Any]:
    return {
        "arena_bytes": plan.layout.arena_bytes,
        "in_place_bytes": sum(plan.program.type_of(v).nbytes for v, _ in plan.layout.overwrites),
        "packed_bytes": plan.layout.packed_bytes,
        "segments": len(plan.layout.segments),
        "kernels": [dataclasses.asdict(point) for point in kernel_points(plan)],
    }

"""One measuring process: holds a workload in all its contenders and times them on command.

It reads a command per line from standard input ("round", "quit") and answers a JSON line. A round
times each contender once, in turn, so that drift of the machine hits all alike. Outputs are
dropped after each call: every contender has to come up with fresh ones.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.suite.workloads import Case, load_case

Run = Callable[[], Any]
SAMPLE_SECONDS = 0.05


def load_cases(path: Path) -> dict[str, Case]:
    """CASES of a Python file of the cases form."""
    spec = importlib.util.spec_from_file_location("cases_file", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cases: dict[str, Case] = module.CASES
    return cases


def _eager(case: Case) -> Run:
    model, inputs, _ = case
    return lambda: model(*inputs)


def _inductor(mode: str) -> Callable[[Case], Run]:
    def build(case: Case) -> Run:
        import torch._inductor.config as config

        config.freezing = True
        model, inputs, _ = case
        compiled = torch.compile(model, mode=None if mode == "default" else mode)
        return lambda: compiled(*inputs)

    return build


def _autofusion(case: Case) -> Run:
    import graph_autofusion as gaf

    model, inputs, _ = case
    budget = float(os.environ.get("GAF_BENCH_BUDGET", "60"))
    optimized = gaf.optimize(model, inputs, budget=budget, strict=True)
    return lambda: optimized(*inputs)


CONTENDERS: dict[str, Callable[[Case], Run]] = {
    "autofusion": _autofusion,
    "eager": _eager,
    "inductor": _inductor("default"),
    "inductor-max": _inductor("max-autotune-no-cudagraphs"),
}


def time_once(run: Run) -> dict[str, float]:
    """Mean microseconds and minor page faults per call, over at least SAMPLE_SECONDS."""
    calls = 0
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    start = now = time.perf_counter()
    while now - start < SAMPLE_SECONDS or calls < 2:
        run()
        calls += 1
        now = time.perf_counter()
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    return {"us": (now - start) / calls * 1e6, "faults": faults / calls}


def leaves(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if torch.is_tensor(leaf)]


def max_error(got: Any, want: Any) -> float:
    """Largest absolute difference, NaN equal to NaN; infinite where shape or dtype differ."""
    worst = 0.0
    for a, b in zip(leaves(got), leaves(want), strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return float("inf")
        if a.numel():
            same = (a == b) | ((a != a) & (b != b))
            gap = torch.where(same, 0.0, (a.double() - b.double()).abs())
            worst = max(worst, gap.nan_to_num(float("inf")).max().item())
    return worst


def prepare(case: Case, names: list[str]) -> tuple[dict[str, Run], dict[str, Any]]:
    """The contenders that could be built, warmed up, and facts: errors, set-up seconds."""
    runs: dict[str, Run] = {}
    facts: dict[str, Any] = {}
    want = case[0](*case[1])
    for name in names:
        start = time.perf_counter()
        try:
            run = CONTENDERS[name](case)
            error = max_error(run(), want)
            run()
        except Exception as problem:  # noqa: BLE001 - a peer that fails is reported as missing
            facts[name] = {"missing": f"{type(problem).__name__}: {problem}"[:300]}
            continue
        runs[name] = run
        facts[name] = {"max_error": error, "setup_s": round(time.perf_counter() - start, 3)}
    return runs, facts


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("workload")
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--contenders", required=True)
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries that print must not disturb the answers
    case = load_cases(args.cases)[args.workload] if args.cases else load_case(args.workload)
    with torch.no_grad():
        runs, facts = prepare(case, args.contenders.split(","))
        print(json.dumps(facts), file=answers, flush=True)
        for line in sys.stdin:
            if line.strip() != "round":
                break
            samples = {name: time_once(run) for name, run in runs.items()}
            print(json.dumps(samples), file=answers, flush=True)


if __name__ == "__main__":
    main()

"""`python -m benchmarks.suite [WORKLOAD…] [--cases FILE] [--json] [--output DIR]`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.suite.harness import Result, run_workload
from benchmarks.suite.worker import CONTENDERS, load_cases
from benchmarks.suite.workloads import BUILDERS


def main() -> None:
    args = _arguments()
    names = args.workloads or list(load_cases(args.cases) if args.cases else BUILDERS)
    contenders = args.contenders.split(",")
    results = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        results.append(
            run_workload(
                name, contenders, cases=args.cases, rounds=args.rounds, threads=args.threads
            )
        )
    table = markdown(results, contenders)
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)
        (args.output / "suite.md").write_text(table, encoding="utf-8")
        (args.output / "suite.json").write_text(to_json(results), encoding="utf-8")
    print(to_json(results) if args.json else table)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suite", description=__doc__)
    parser.add_argument("workloads", nargs="*", help="names; all if none are given")
    parser.add_argument("--cases", type=Path, help="a Python file with CASES")
    parser.add_argument("--contenders", default=",".join(CONTENDERS))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--output", type=Path, help="folder for suite.md and suite.json")
    return parser.parse_args()


def to_json(results: Sequence[Result]) -> str:
    """All results, with the ratio of each contender to ours."""
    rows = []
    for result in results:
        row = dataclasses.asdict(result)
        row["ratios"] = {t.contender: result.ratio(t.contender) for t in result.timings}
        rows.append(row)
    return json.dumps({"results": rows}, indent=1)


def markdown(results: Sequence[Result], contenders: Sequence[str]) -> str:
    """One row per workload: median (min) in milliseconds, and the ratios to ours."""
    others = [name for name in contenders if name != "autofusion"]
    head = ["workload", *contenders, *(f"{name} / ours" for name in others)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for result in results:
        times = [_cell(result, name) for name in contenders]
        ratios = [_ratio(result.ratio(name)) for name in others]
        lines.append("| " + " | ".join([result.workload, *times, *ratios]) + " |")
    means = [_ratio(geomean([r.ratio(name) for r in results])) for name in others]
    blank = [""] * len(contenders)
    lines.append("| " + " | ".join(["**geomean**", *blank, *means]) + " |")
    return "\n".join(lines) + "\n"


def geomean(ratios: Sequence[float | None]) -> float | None:
    """Geometric mean of those that are there."""
    known = [ratio for ratio in ratios if ratio is not None]
    return statistics.geometric_mean(known) if known else None


def _cell(result: Result, contender: str) -> str:
    timing = result.of(contender)
    if timing is None:
        return "missing"
    return f"{timing.median_us / 1000:.3f} ({timing.min_us / 1000:.3f})"


def _ratio(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}"


if __name__ == "__main__":
    main()

"""`python -m benchmarks.search [CASE…] [--cases FILE] [--seconds 60] [--record] [--json]`.

How good a search is after how long: tunes each case in an empty store, prints the best latency over
time and the time to within 5 % of the best of a recorded longer search. `--record --seconds 1800`
makes such a record, `search-record.json` in `--output`. Without one for a case and this kind of
machine, the search's own result stands for the best, and the output says so.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from benchmarks.plotting import plot_style, save_figure
from benchmarks.search.curve import Course, course_from, seconds_to_near
from benchmarks.search.run import search
from benchmarks.suite.records import machine
from benchmarks.suite.workloads import Case, load_cases
from benchmarks.suite.workloads.models import bert_layer
from kernel_gen.errors import GafError

DEFAULT_OUTPUT = Path("docs/benchmarks")
_RECORD, _INTERRUPTED, _FAILED = "search-record.json", 130, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; the exit status: 130 after Ctrl-C, 1 where a case could not be tuned."""
    args = _parser().parse_args(arguments)
    cases = load_cases(args.cases) if args.cases else _default_cases()
    names = args.names or list(cases)
    if unknown := sorted(set(names) - set(cases)):
        raise SystemExit(f"no case {', '.join(unknown)}; there are {', '.join(cases)}")
    record = _read_record(args.output / _RECORD)
    found, failed, status = _search_all(names, cases, args.seconds)
    rows = [_row(course, None if args.record else record.get(course.case)) for course in found]
    data = {"machine": machine(), "cases": rows, "failed": failed}
    if args.record:
        _write_record(args.output / _RECORD, {**record, **{c.case: c for c in found}})
    elif found and args.write:
        _write(args.output, data, found, record)
    print(json.dumps(data, indent=1) if args.json else markdown(rows, failed))
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("names", nargs="*", help="cases; all if none are given")
    parser.add_argument("--cases", type=Path, help="a Python file with CASES (default: bert_layer)")
    parser.add_argument("--seconds", type=float, default=60.0, help="budget of each search")
    parser.add_argument("--record", action="store_true", help="keep the results as the best known")
    parser.add_argument("--output", type=Path, default=DEFAULT_OUTPUT, help="folder of the record")
    parser.add_argument("--write", action="store_true", help="write search.json, .md and plot too")
    parser.add_argument("--json", action="store_true")
    return parser


def _default_cases() -> dict[str, Case]:
    import torch

    torch.manual_seed(0)
    model, inputs = bert_layer()
    return {"bert_layer": (model.eval().requires_grad_(False), inputs, "eager")}


def _search_all(
    names: Sequence[str], cases: Mapping[str, Case], seconds: float
) -> tuple[list[Course], dict[str, str], int]:
    """The courses, what failed by case, and the exit status; Ctrl-C keeps what is there."""
    found: list[Course] = []
    failed: dict[str, str] = {}
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=seconds * len(names))
        for number, name in enumerate(names):

            def tell(spent: float, event: Mapping[str, Any], number: int = number) -> None:
                progress.update(task, completed=seconds * number + min(spent, seconds))

            progress.update(task, description=name)
            try:
                found.append(search(name, cases[name], seconds, tell))
            except GafError as error:
                failed[name] = f"{type(error).__name__}: {error}"
            except KeyboardInterrupt:
                return found, failed, _INTERRUPTED
    return found, failed, _FAILED if failed else 0


def _row(course: Course, best: Course | None) -> dict[str, Any]:
    """What is printed of a course. `reference_us` is the recorded best at this run's speed of the
    framework, None without a record."""
    relative = course.relative if best is None else min(best.relative, course.relative)
    reference = None if best is None else best.relative * course.baseline_us
    return {
        "case": course.case,
        "budget_seconds": course.budget_seconds,
        "seconds": course.seconds,
        "trials": course.trials,
        "best_us": course.measured_us,
        "baseline_us": course.baseline_us,
        "reference_us": reference,
        "reference_seconds": None if best is None else best.seconds,
        "against_reference": None if not reference else course.measured_us / reference,
        "seconds_to_near_best": seconds_to_near(course, relative),
        "curve": [dataclasses.asdict(moment) for moment in course.moments],
    }


def _read_record(path: Path) -> dict[str, Course]:
    """Recorded courses of this kind of machine, by case."""
    if not path.exists():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))["courses"]
    model = machine()["model"]
    return {row["course"]["case"]: course_from(row["course"]) for row in rows
            if row["model"] == model}  # fmt: skip


def _write_record(path: Path, courses: Mapping[str, Course]) -> None:
    """Replaces this machine's courses, keeps those of others."""
    model = machine()["model"]
    kept = json.loads(path.read_text(encoding="utf-8"))["courses"] if path.exists() else []
    rows = [row for row in kept if row["model"] != model]
    rows += [{"model": model, "course": dataclasses.asdict(c)} for c in courses.values()]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"courses": rows}, indent=1) + "\n", encoding="utf-8")


def _write(
    folder: Path, data: Mapping[str, Any], found: Sequence[Course], record: Mapping[str, Course]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = "# Search quality\n\n" + markdown(data["cases"], data["failed"])
    (folder / "search.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    (folder / "search.md").write_text(text, encoding="utf-8")
    try:
        save_figure(plot(found, record), folder / "search")
    except ModuleNotFoundError as error:
        print(f"no plot: {error.name} is not installed", file=sys.stderr)


def markdown(rows: Sequence[Mapping[str, Any]], failed: Mapping[str, str]) -> str:
    """One row per case."""
    head = (
        "| case | framework ms | best ms | recorded best ms | best / recorded | trials | seconds |"
    )
    lines = [head + " seconds to within 5 % |", "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        near = row["seconds_to_near_best"]
        own = "" if row["reference_us"] else " (of its own result)"
        cells = [
            row["case"],
            f"{row['baseline_us'] / 1000:.3f}",
            f"{row['best_us'] / 1000:.3f}",
            f"{row['reference_us'] / 1000:.3f}" if row["reference_us"] else "no record",
            f"{row['against_reference']:.3f}" if row["against_reference"] else "–",
            str(row["trials"]),
            f"{row['seconds']:.0f}",
            ("never" if near is None else f"{near:.0f}") + own,
        ]
        lines.append("| " + " | ".join(cells) + " |")
    lines += [f"\n{name}: {why}" for name, why in failed.items()]
    return "\n".join(lines) + "\n"


def plot(found: Sequence[Course], record: Mapping[str, Course]) -> Any:
    """Latency over the framework's, by seconds: estimated from kernels, and of plans run whole."""
    with plot_style() as pyplot:
        figure, panels = pyplot.subplots(
            len(found), 1, figsize=(7, 2.9 * len(found)), squeeze=False, layout="constrained"
        )
        for panel, course in zip(panels.flat, found, strict=True):
            _panel(panel, course, record.get(course.case))
        panels.flat[-1].set_xlabel("seconds since the search was asked for")
    return figure


def _panel(panel: Any, course: Course, best: Course | None) -> None:
    base = course.baseline_us or 1.0
    for name, colour, values in (
        ("best cover, by its kernels' times", "#60a5fa", [m.estimated_us for m in course.moments]),
        ("best plan, run whole", "#c2410c", [m.measured_us for m in course.moments]),
    ):
        points = [(m.seconds, v / base) for m, v in zip(course.moments, values, strict=True) if v]
        if points:
            points.append((course.seconds, points[-1][1]))  # what was best stays so to the end
            panel.step(
                *zip(*points, strict=True), where="post", color=colour, label=name, marker="."
            )
    if best is not None:
        label = f"recorded best of {best.seconds / 60:.0f} min, + 5 %"
        panel.axhspan(best.relative, 1.05 * best.relative, color="#bbf7d0", label=label)
    panel.set_xlim(0, course.seconds)
    panel.set_title(course.case, fontsize=9)
    panel.set_ylabel("latency, framework = 1")
    panel.grid(color="#e2e8f0", linewidth=0.6)
    panel.legend(frameon=False, fontsize=8)


if __name__ == "__main__":
    sys.exit(main())

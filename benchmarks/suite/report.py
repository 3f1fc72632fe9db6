"""The Markdown of a run: times, ratios, floors, targets, and what is missing or wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.suite.peers import OURS
from benchmarks.suite.records import Result, Timing, geomean
from benchmarks.suite.targets import INDUCTORS, PEERS, Target


def markdown(
    results: Sequence[Result],
    contenders: Sequence[str],
    run: Mapping[str, Any] | None = None,
    targets: Sequence[Target] = (),
) -> str:
    """The whole page."""
    parts = [_head(run)] if run else []
    parts += [
        "## Times\n",
        _times(results, contenders),
        "## Ratios\n",
        ratio_table(results, contenders),
    ]
    if any(r.floor for r in results):
        parts += ["## Floors\n", _floors(results)]
    parts += [_failures(results)]
    if targets:
        parts += ["## Targets\n", target_table(targets)]
    return "\n".join(part for part in parts if part)


def _head(run: Mapping[str, Any]) -> str:
    machine = run["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    return (
        f"Written by `python -m benchmarks.suite` on {run['date']}: {machine['model']} "
        f"({machine['isa']}), {run['threads']} threads; {versions}. [How it is taken](README.md).\n"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _times(results: Sequence[Result], contenders: Sequence[str]) -> str:
    """Median (minimum) in milliseconds, spread, and faults per call where there are any."""
    rows = []
    for result in results:
        known = {timing.contender: timing for timing in result.timings}
        rows.append([_name(result), *(_cell(known.get(name)) for name in contenders)])
    note = "Milliseconds per call: median (minimum) ± spread, minor faults where there are any.\n"
    return note + "\n" + _table(["workload", *contenders], rows)


def _name(result: Result) -> str:
    return result.workload if result.complete else f"{result.workload} (cut short)"


def _cell(timing: Timing | None) -> str:
    if timing is None:
        return "–"
    if timing.missing:
        return "missing"
    faults = f", {timing.faults:.0f} f" if timing.faults >= 0.5 else ""
    text = (
        f"{timing.median_us / 1000:.3f} ({timing.min_us / 1000:.3f}) ± {timing.spread:.0%}{faults}"
    )
    return f"**wrong** {text}" if timing.wrong else text


def ratio_table(results: Sequence[Result], contenders: Sequence[str]) -> str:
    """Our time, how many times longer the others take, and our share of the floor. The README shows
    this table as it stands."""
    others = [name for name in contenders if name != OURS]
    groups = [*((name,) for name in others), INDUCTORS, PEERS]
    head = ["workload", "ours, ms", *others, "best Inductor", "best peer", "of the floor"]
    rows = [
        [
            _name(r),
            f"{ours.median_us / 1000:.3f}" if (ours := r.of(OURS)) else "–",
            *(_ratio(r.fastest(group)) for group in groups),
            "–" if r.floor_share is None else f"{r.floor_share:.0%}",
        ]
        for r in results
    ]
    means = [_ratio(geomean([r.fastest(group) for r in results])) for group in groups]
    return _table(head, [*rows, ["**geomean**", "", *means, ""]])


def _ratio(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}×"


def _floors(results: Sequence[Result]) -> str:
    rows = []
    for r in results:
        if r.floor is None or r.effort is None:
            continue
        moved = (r.effort.read_bytes + r.effort.written_bytes) / 1e6
        rows.append(
            [
                _name(r),
                r.floor.bound,
                f"{moved:.2f}",
                f"{r.floor.copy_bytes_per_second / 1e9:.1f}"
                + (" (streaming)" if r.floor.streaming else ""),
                f"{r.effort.operations / 1e9:.3f}",
                f"{r.floor.operations_per_second / 1e9:.0f}",
                f"{r.floor.functions_us / 1000:.3f}",
                f"{r.floor.us / 1000:.3f}",
                "–" if r.floor_share is None else f"{r.floor_share:.0%}",
            ]
        )
    head = [
        "workload", "bound by", "MB", "copy GB/s", "GFLOP", "FMA GFLOP/s", "functions ms",
        "floor ms", "share",
    ]  # fmt: skip
    return _table(head, rows)


def _failures(results: Sequence[Result]) -> str:
    """Why a contender is missing or wrong, by workload."""
    rows = []
    for result in results:
        for timing in result.timings:
            for word, text in (("missing", timing.missing), ("wrong", timing.wrong)):
                if text:
                    rows.append([result.workload, timing.contender, word, _escaped(text)])
    if not rows:
        return ""
    return "## Missing and wrong\n\n" + _table(["workload", "contender", "", "reason"], rows)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def target_table(targets: Sequence[Target]) -> str:
    """Each target with what was found."""
    words = {True: "met", False: "missed", None: "–"}
    return _table(
        ["figure", "target", "found", ""],
        [[t.figure, t.target, _escaped(t.found), words[t.met]] for t in targets],
    )

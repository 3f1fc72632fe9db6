"""`print_graph` and `export_graph`: what became one kernel, for people and for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from graph_autofusion.report import (
    FusionReport,
    GroupReport,
    generated_rate,
    report_of,
    why_unused,
)
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.lifetime.scratch import Scratch
from kernel_gen.runtime.boxes import show_us
from kernel_gen.runtime.dot import plan_to_dot
from kernel_gen.runtime.picture import plan_picture
from kernel_gen.runtime.plan import Plan

_SUFFIXES = (".dot", ".svg", ".png", ".json", ".trace")


def _parts(subject: object) -> tuple[Plan, FusionReport]:
    if isinstance(subject, Plan):
        return subject, report_of(subject, "hit")
    from graph_autofusion.module import OptimizedModule  # loads torch, which a plan goes without

    if isinstance(subject, OptimizedModule):
        return subject.plan, subject.report
    plan = getattr(subject, "plan", None)
    if isinstance(plan, Plan):
        return plan, report_of(plan, "hit")
    raise InvalidInput(f"{type(subject).__name__} has no plan; pass what gaf.optimize returned")


def print_graph(subject: object, file: TextIO | None = None) -> None:
    """Prints which ops became one kernel, with times, and what was refused; first of all, whether
    the plan is not used because it is no gain. Equal groups without a time share a line.

    `subject` is what `optimize` or `load` returned, or a Plan. Raises InvalidInput without a plan.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    plan, report = _parts(subject)
    table = Table()
    for column in ("#", "ops", "runs as"):
        table.add_column(column)
    table.add_column("simulated time" if report.simulated else "time", justify="right")
    if report.simulated:
        table.add_column("bounding pipe")
    for number, group, count in _folded(report.groups):
        time = "" if group.measured_us is None else show_us(group.measured_us)
        cells: list[str | Text] = [
            str(number),
            Text(_ops(group, count)),
            Text(group.template),
            time,
        ]
        if report.simulated:
            cells.append(_busiest(group))
        table.add_row(*cells)
    console = Console(file=file)
    if why := why_unused(plan):
        told = f"not used, no gain: gaf.optimize runs the model itself, as {why}"
        console.print(Text(told), soft_wrap=True)
    console.print(Text(f"plan {report.key}"), soft_wrap=True)
    console.print(table)
    console.print(Text(_summary(plan, report)), soft_wrap=True)
    for line in report.unfused_lines:
        console.print(Text(line), soft_wrap=True)


def _busiest(group: GroupReport) -> str:
    name = group.bounding_pipe
    return "" if name is None else f"{name} {dict(group.pipes)[name]:.0%}"


def _folded(groups: Sequence[GroupReport]) -> list[tuple[int, GroupReport, int]]:
    """(number of the first, group, how many): groups that were not timed and look the same are one
    line; each timed one has its own."""
    first: dict[object, int] = {}
    counts: dict[int, int] = {}
    for number, group in enumerate(groups):
        key = number if group.measured_us is not None else (group.ops, group.template)
        place = first.setdefault(key, number)
        counts[place] = counts.get(place, 0) + 1
    return [(number, groups[number], count) for number, count in counts.items()]


def _ops(group: GroupReport, count: int) -> str:
    text = " + ".join(group.ops)
    if count == 1:
        return text
    return f"{text} ×{count}" if len(group.ops) == 1 else f"({text}) ×{count}"


def _summary(plan: Plan, report: FusionReport) -> str:
    if report.measured_us is None or report.baseline_us is None:
        return f"fusion rate {report.fusion_rate:.0%}"
    kind = "simulated " if report.simulated else ""
    after, before = show_us(report.measured_us, kind), show_us(report.baseline_us, kind)
    if why_unused(plan):
        text = f"fusion rate {generated_rate(plan):.0%}"
        return f"{text}, {before} by the framework, {after} by the plan" if plan.kernels else text
    text = f"fusion rate {report.fusion_rate:.0%}"
    name = "one kernel per op" if report.simulated else "before"
    text += f", {before} {name}, {after} after"
    return text if report.speedup is None else f"{text}, speedup {report.speedup:.2f}x"


def export_graph(subject: object, path: str | Path) -> Path:
    """Writes the program with its groups to `path`: .dot, .svg, .png or .json by suffix; or, of a
    plan for a simulated NPU, .trace: when each pipe of each core is busy, for Perfetto.

    `subject` as for `print_graph`. Raises InvalidInput for another suffix, without a plan, and for
    a .png of more than 600 ops; Unavailable if the file cannot be written, or needs Graphviz and
    there is none.
    """
    target = Path(path)
    plan, report = _parts(subject)
    match target.suffix:
        case ".json":
            _write(target, report.to_json().encode())
        case ".dot":
            _write(target, plan_to_dot(plan).encode())
        case ".svg" | ".png":
            _write(target, plan_picture(plan, target.suffix[1:]))
        case ".trace":
            from kernel_gen.runtime.ascend.trace import plan_trace

            _write(target, json.dumps(plan_trace(plan)).encode())
        case other:
            raise InvalidInput(f"suffix {other!r}: expected one of {', '.join(_SUFFIXES)}")
    return target


def _write(path: Path, data: bytes) -> None:
    """Writes a file whole or not at all: what was there stays where the disk is full."""
    try:
        with Scratch("export", path.absolute().parent, ".gaf-writing-") as folder:
            (folder / path.name).write_bytes(data)
            os.replace(folder / path.name, path)
    except OSError as error:
        raise Unavailable(f"cannot write {path}: {error.strerror}") from error

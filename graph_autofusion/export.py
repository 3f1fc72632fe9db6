"""`print_graph` and `export_graph`: what became one kernel, for people and for programs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TextIO

from graph_autofusion.report import FusionReport, GroupReport, report_of
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.lifetime.scratch import Scratch
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
    """Prints which ops became one kernel, with times in microseconds, and what was refused.

    `subject` is what `optimize` or `load` returned, or a Plan. Raises InvalidInput without a plan.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    _, report = _parts(subject)
    table = Table()
    for column in ("#", "ops", "runs as"):
        table.add_column(column)
    table.add_column("simulated µs" if report.simulated else "µs", justify="right")
    if report.simulated:
        table.add_column("bounding pipe")
    for number, group in enumerate(report.groups):
        time = "" if group.measured_us is None else f"{group.measured_us:.1f}"
        cells: list[str | Text] = [
            str(number),
            Text(" + ".join(group.ops)),
            Text(group.template),
            time,
        ]
        if report.simulated:
            cells.append(_busiest(group))
        table.add_row(*cells)
    console = Console(file=file)
    console.print(Text(f"plan {report.key}"), soft_wrap=True)
    console.print(table)
    console.print(Text(_summary(report)), soft_wrap=True)
    for line in report.unfused_lines:
        console.print(Text(line), soft_wrap=True)


def _busiest(group: GroupReport) -> str:
    name = group.bounding_pipe
    return "" if name is None else f"{name} {dict(group.pipes)[name]:.0%}"


def _summary(report: FusionReport) -> str:
    text = f"fusion rate {report.fusion_rate:.0%}"
    if report.speedup is not None:
        before = "one kernel per op" if report.simulated else "before"
        unit = "simulated µs" if report.simulated else "µs"
        text += (
            f", {report.baseline_us:.1f} {unit} {before}, {report.measured_us:.1f} {unit} after, "
            f"speedup {report.speedup:.2f}x"
        )
    return text


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

"""Pictures of a program in Graphviz's language: ops as boxes, groups as coloured frames.

Names come from users, so all of them are escaped; no HTML label is ever written.
"""

from __future__ import annotations

import colorsys
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.fusion.group import FrameworkGroup, FusionPlan, Group
from kernel_gen.ir.graph import Graph
from kernel_gen.records import Measurement
from kernel_gen.runtime.boxes import Box, Boxes, Kind, show_us
from kernel_gen.runtime.plan import Plan

_LONGEST_NAME = 60
_RENDER_SECONDS = 30
_GOLDEN_ANGLE = 0.381966  # hues of neighbours in execution order stay far apart
_FRAMEWORK_FILL = "#e5e7eb"
_LOOKS = {
    Kind.OP: "",
    Kind.INPUT: "shape=ellipse, style=filled, ",
    Kind.CONSTANT: "shape=note, style=filled, ",
    Kind.OUTPUT: 'shape=ellipse, style=filled, fillcolor="#dbeafe", ',
}
_HEADER = """\
digraph program {
  rankdir=TB; compound=true; nodesep=0.25; ranksep=0.35; bgcolor="transparent";
  fontname="Helvetica"; fontsize=11;
  node [shape=box, style="rounded,filled", fillcolor="#ffffff", color="#6b7280",
        fontname="Helvetica", fontsize=11, fontcolor="#111827", margin="0.12,0.06"];
  edge [color="#6b7280", fontname="Helvetica", fontsize=9, fontcolor="#4b5563", arrowsize=0.6];
"""


def plan_to_dot(plan: Plan) -> str:
    """The program of a plan with its cover; kernels carry their measured time."""
    return to_dot(plan.program, plan.cover, plan_times(plan))


def plan_times(plan: Plan) -> dict[Group, str]:
    """What kernels were measured to take, with the unit."""
    return {
        kernel.group: show_us(kernel.measurement.median_us, _kind(kernel.measurement))
        for kernel in plan.kernels
        if kernel.measurement is not None
    }


def _kind(measured: Measurement) -> str:
    return "simulated " if measured.protocol.simulated else ""


def to_dot(
    program: Graph,
    cover: FusionPlan | None = None,
    notes: Mapping[Group, str] | None = None,
) -> str:
    """A program in Graphviz's language; with a cover, one coloured frame per group.

    `notes` are short texts shown beside the name of a group.
    """
    boxes = Boxes(program, cover)
    lines = [_HEADER, *(_box(box) for box in boxes.inputs())]
    for number, group in enumerate(cover.groups if cover else ()):
        lines.extend(_frame(number, group, (notes or {}).get(group, ""), boxes))
    lines.extend(_box(box) for box in (*boxes.loose(), *boxes.outputs()))
    for source, reader, value in boxes.links():
        # Blanks keep the text off the arrow where the reader's font is wider than Graphviz's.
        label = _label(f"  {boxes.type_label(value)}  ")
        lines.append(f"  {source} -> {reader} [label={label}];")
    return "\n".join([*lines, "}", ""])


def render(dot: str, kind: str) -> bytes:
    """The picture as "svg" or "png", drawn by Graphviz or the graphviz-pure package.

    Raises Unavailable if neither is installed or the drawing takes too long.
    """
    if kind not in ("svg", "png"):
        raise InvalidInput(f"picture {kind!r}: expected svg or png")
    command = [_program(), f"-T{kind}"]
    try:
        done = subprocess.run(
            command, input=dot.encode(), capture_output=True, timeout=_RENDER_SECONDS, check=True
        )
    except subprocess.TimeoutExpired as error:
        raise Unavailable(f"drawing took more than {_RENDER_SECONDS} s; use .dot") from error
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"{command[0]}: {error.stderr.decode()[:300]}") from error
    return done.stdout


def _program() -> str:
    beside = Path(sys.executable).parent / "graphviz-pure"
    found = shutil.which("graphviz-pure") or (str(beside) if beside.exists() else None)
    found = found or shutil.which("dot")
    if found is None:
        raise Unavailable("no Graphviz: install the graphviz-pure package, or use .dot")
    return found


def quote(text: str) -> str:
    """A string of Graphviz's language: `a"b\\` -> `"a\\"b\\\\"`. Control characters are dropped."""
    escaped = shown(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def shown(text: str) -> str:
    """A user's text as pictures show it: not too long, and without control characters."""
    short = text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"
    return "".join(char if char.isprintable() else " " for char in short)


def _label(*lines: str) -> str:
    """Lines of a label, each escaped by itself."""
    return '"' + "\\n".join(quote(line)[1:-1] for line in lines if line) + '"'


def _box(box: Box, indent: str = "  ") -> str:
    return f"{indent}{box.name} [{_LOOKS[box.kind]}label={_label(*box.lines)}];"


def _frame(number: int, group: Group, note: str, boxes: Boxes) -> list[str]:
    return [
        f"  subgraph cluster_{number} {{",
        f"    label={_label(group_title(number, group, note))};",
        f'    style="rounded,filled"; color="#6b7280"; fillcolor="{group_fill(number, group)}";',
        f'    fontcolor="#111827"; id="group{number}"; class="group";',
        *(_box(box, "    ") for box in boxes.group(number, group)),
        "  }",
    ]


def group_title(number: int, group: Group, note: str = "") -> str:
    """What stands over the frame of a group."""
    title = f"torch: {group.code}" if isinstance(group, FrameworkGroup) else f"kernel {number}"
    return f"{title} · {note}" if note else title


def group_fill(number: int, group: Group) -> str:
    """The colour of a group's frame."""
    return _FRAMEWORK_FILL if isinstance(group, FrameworkGroup) else _fill(number)


def _fill(number: int) -> str:
    """A light colour on which dark text is readable."""
    red, green, blue = colorsys.hls_to_rgb((number * _GOLDEN_ANGLE + 0.55) % 1.0, 0.86, 0.75)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"

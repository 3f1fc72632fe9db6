"""Pictures of a program in Graphviz's language: ops as boxes, groups as coloured frames.

A node that several groups recompute is drawn in each of them. Names come from users, so all of
them are escaped; no HTML label is ever written.
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
from kernel_gen.ir.graph import Graph, InputKind, Node
from kernel_gen.ir.types import Sym, TensorType
from kernel_gen.records import Measurement
from kernel_gen.runtime.plan import Plan

_LONGEST_NAME = 60
_RENDER_SECONDS = 30
_GOLDEN_ANGLE = 0.381966  # hues of neighbours in execution order stay far apart
_FRAMEWORK_FILL = "#e5e7eb"
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
    times: dict[Group, str] = {
        kernel.group: f"{kernel.measurement.median_us:.1f} {_unit(kernel.measurement)}"
        for kernel in plan.kernels
        if kernel.measurement is not None
    }
    return to_dot(plan.program, plan.cover, times)


def _unit(measured: Measurement) -> str:
    return "simulated µs" if measured.protocol.simulated else "µs"


def to_dot(
    program: Graph,
    cover: FusionPlan | None = None,
    notes: Mapping[Group, str] | None = None,
) -> str:
    """A program in Graphviz's language; with a cover, one coloured frame per group.

    `notes` are short texts shown beside the name of a group.
    """
    picture = _Picture(program, cover)
    lines = [_HEADER, *picture.inputs()]
    for number, group in enumerate(cover.groups if cover else ()):
        lines.extend(picture.group(number, group, (notes or {}).get(group, "")))
    lines.extend(picture.loose())
    lines.extend(picture.outputs())
    lines.extend(picture.edges())
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
    shown = text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1]}…"
    kept = "".join(char if char.isprintable() else " " for char in shown)
    escaped = kept.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _label(*lines: str) -> str:
    """Lines of a label, each escaped by itself."""
    return '"' + "\\n".join(quote(line)[1:-1] for line in lines if line) + '"'


def _fill(number: int) -> str:
    """A light colour on which dark text is readable."""
    red, green, blue = colorsys.hls_to_rgb((number * _GOLDEN_ANGLE + 0.55) % 1.0, 0.86, 0.75)
    return f"#{round(red * 255):02x}{round(green * 255):02x}{round(blue * 255):02x}"


def type_label(tensor: TensorType) -> str:
    """As in `f32 1024×4096`; a symbolic dimension by its name."""
    dims = "×".join(dim.name if isinstance(dim, Sym) else str(dim) for dim in tensor.shape)
    return f"{tensor.dtype.value} {dims or 'scalar'}"


def node_label(node: Node) -> str:
    """What people call a node: its op, for framework nodes their target."""
    target = node.attr("target")
    return target if node.op == "framework" and isinstance(target, str) else node.op


class _Picture:
    """Which DOT node stands for which part of the program."""

    def __init__(self, program: Graph, cover: FusionPlan | None) -> None:
        self._program = program
        self._groups = cover.groups if cover else ()
        self._home: dict[int, str] = {}  # value -> the DOT node that others read it from
        for position, source in enumerate(program.inputs):
            self._home[source.value] = f"i{position}"
        for position, constant in enumerate(program.constants):
            self._home[constant.value] = f"c{position}"
        for number, group in enumerate(self._groups):
            for index in group.nodes:
                for value in program.nodes[index].outputs:
                    if value in group.outputs or value not in self._home:
                        self._home[value] = f"n{index}g{number}"
        self._loose = set(range(len(program.nodes)))
        self._loose -= {index for group in self._groups for index in group.nodes}
        for index in sorted(self._loose):
            for value in program.nodes[index].outputs:
                self._home[value] = f"n{index}"

    def inputs(self) -> list[str]:
        lines = []
        for position, source in enumerate(self._program.inputs):
            shape = "ellipse" if source.kind is InputKind.USER else "note"
            text = _label(source.name or source.kind.value, self._type(source.value))
            lines.append(f"  i{position} [shape={shape}, style=filled, label={text}];")
        for position, constant in enumerate(self._program.constants):
            text = _label("constant", self._type(constant.value))
            lines.append(f"  c{position} [shape=note, style=filled, label={text}];")
        return lines

    def group(self, number: int, group: Group, note: str) -> list[str]:
        framework = isinstance(group, FrameworkGroup)
        fill = _FRAMEWORK_FILL if framework else _fill(number)
        title = f"torch: {group.code}" if isinstance(group, FrameworkGroup) else f"kernel {number}"
        lines = [
            f"  subgraph cluster_{number} {{",
            f"    label={_label(' · '.join(part for part in (title, note) if part))};",
            f'    style="rounded,filled"; color="#6b7280"; fillcolor="{fill}";',
            f'    fontcolor="#111827"; id="group{number}"; class="group";',
        ]
        lines += [f"    n{i}g{number} [label={self._node(i)}];" for i in group.nodes]
        return [*lines, "  }"]

    def loose(self) -> list[str]:
        """Nodes outside all groups."""
        return [f"  n{index} [label={self._node(index)}];" for index in sorted(self._loose)]

    def outputs(self) -> list[str]:
        return [
            f'  o{position} [shape=ellipse, style=filled, fillcolor="#dbeafe", label="output"];'
            for position in range(len(self._program.outputs))
        ]

    def edges(self) -> list[str]:
        lines = []
        for number, group in enumerate(self._groups):
            inside = {
                value: f"n{index}g{number}"
                for index in group.nodes
                for value in self._program.nodes[index].outputs
            }
            for index in group.nodes:
                lines += self._reads(index, f"n{index}g{number}", inside)
        for index in sorted(self._loose):
            lines += self._reads(index, f"n{index}", {})
        for position, output in enumerate(self._program.outputs):
            lines.append(self._edge(output.value, self._home[output.value], f"o{position}"))
        return lines

    def _reads(self, index: int, reader: str, inside: Mapping[int, str]) -> list[str]:
        return [
            self._edge(value, inside.get(value, self._home[value]), reader)
            for value in dict.fromkeys(self._program.nodes[index].inputs)
        ]

    def _edge(self, value: int, source: str, reader: str) -> str:
        # Blanks keep the text off the arrow where the reader's font is wider than Graphviz's.
        return f"  {source} -> {reader} [label={_label('  ' + self._type(value) + '  ')}];"

    def _node(self, index: int) -> str:
        node = self._program.nodes[index]
        name = node.name if node.name not in (node.op, "") else ""
        return _label(node_label(node), name)

    def _type(self, value: int) -> str:
        return type_label(self._program.type_of(value))

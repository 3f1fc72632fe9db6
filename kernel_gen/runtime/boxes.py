"""What a picture of a program shows: boxes for its ops, inputs, constants and outputs, and lines
between them, whoever lays them out. A node that several groups recompute has a box in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from kernel_gen.fusion.group import FusionPlan, Group
from kernel_gen.ir.graph import Graph, InputKind, Node
from kernel_gen.ir.types import Sym, TensorType


class Kind(Enum):
    """What a box stands for."""

    OP = "op"
    INPUT = "input"
    CONSTANT = "constant"  # or another input that no caller gives
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Box:
    """One box: its name in the picture, and its lines of text, which come from users."""

    name: str
    kind: Kind
    lines: tuple[str, ...]


class Boxes:
    """The boxes of a program, under a cover if there is one."""

    def __init__(self, program: Graph, cover: FusionPlan | None) -> None:
        self._program = program
        self._groups = cover.groups if cover else ()
        self._home: dict[int, str] = {}  # value -> the box that others read it from
        for position, source in enumerate(program.inputs):
            self._home[source.value] = f"i{position}"
        for position, constant in enumerate(program.constants):
            self._home[constant.value] = f"c{position}"
        for number, group in enumerate(self._groups):
            outputs = set(group.outputs)
            for index in group.nodes:
                for value in program.nodes[index].outputs:
                    if value in outputs or value not in self._home:
                        self._home[value] = f"n{index}g{number}"
        self._loose = set(range(len(program.nodes)))
        self._loose -= {index for group in self._groups for index in group.nodes}
        for index in sorted(self._loose):
            for value in program.nodes[index].outputs:
                self._home[value] = f"n{index}"

    def inputs(self) -> list[Box]:
        found = []
        for position, source in enumerate(self._program.inputs):
            kind = Kind.INPUT if source.kind is InputKind.USER else Kind.CONSTANT
            lines = (source.name or source.kind.value, self.type_label(source.value))
            found.append(Box(f"i{position}", kind, lines))
        for position, constant in enumerate(self._program.constants):
            lines = ("constant", self.type_label(constant.value))
            found.append(Box(f"c{position}", Kind.CONSTANT, lines))
        return found

    def group(self, number: int, group: Group) -> list[Box]:
        return [self._op(index, f"n{index}g{number}") for index in group.nodes]

    def loose(self) -> list[Box]:
        """Nodes outside all groups."""
        return [self._op(index, f"n{index}") for index in sorted(self._loose)]

    def outputs(self) -> list[Box]:
        count = len(self._program.outputs)
        return [Box(f"o{position}", Kind.OUTPUT, ("output",)) for position in range(count)]

    def links(self) -> Iterator[tuple[str, str, int]]:
        """(name of the box read from, name of the reading box, value) of each line."""
        for number, group in enumerate(self._groups):
            inside = {
                value: f"n{index}g{number}"
                for index in group.nodes
                for value in self._program.nodes[index].outputs
            }
            for index in group.nodes:
                yield from self._reads(index, f"n{index}g{number}", inside)
        for index in sorted(self._loose):
            yield from self._reads(index, f"n{index}", {})
        for position, output in enumerate(self._program.outputs):
            yield self._home[output.value], f"o{position}", output.value

    def type_label(self, value: int) -> str:
        return type_label(self._program.type_of(value))

    def _reads(
        self, index: int, reader: str, inside: Mapping[int, str]
    ) -> Iterator[tuple[str, str, int]]:
        for value in dict.fromkeys(self._program.nodes[index].inputs):
            yield inside.get(value, self._home[value]), reader, value

    def _op(self, index: int, name: str) -> Box:
        node = self._program.nodes[index]
        lines = (node_label(node), node.name) if node.name not in (node.op, "") else ()
        return Box(name, Kind.OP, lines or (node_label(node),))


def type_label(tensor: TensorType) -> str:
    """As in `f32 1024×4096`; a symbolic dimension by its name."""
    dims = "×".join(dim.name if isinstance(dim, Sym) else str(dim) for dim in tensor.shape)
    return f"{tensor.dtype.value} {dims or 'scalar'}"


def show_us(value: float, kind: str = "") -> str:
    """Microseconds for people, `kind` in front of the unit: 9999.0 µs, 12.3 ms, 1.25 s."""
    if value < 1e4:
        return f"{value:.1f} {kind}µs"
    return f"{value / 1e3:.1f} {kind}ms" if value < 1e6 else f"{value / 1e6:.2f} {kind}s"


def node_label(node: Node) -> str:
    """What people call a node: its op, for framework nodes their target."""
    target = node.attr("target")
    return target if node.op == "framework" and isinstance(target, str) else node.op

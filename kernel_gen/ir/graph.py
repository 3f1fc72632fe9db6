"""The tensor program: an SSA graph of composites, primitives and framework nodes.

A *value* is an integer, the position of its `TensorType` in `Graph.values`. Each value is produced
by exactly one input, constant or node. Nodes stand in topological order. Display names never enter
the digest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.types import TensorType, ValueDomain

Scalar = bool | int | float | str
Attr = Scalar | None | tuple["Attr", ...]
Attrs = tuple[tuple[str, Attr], ...]


def attrs(**values: Attr) -> Attrs:
    """Canonical attributes: sorted by name. attrs(dim=1, a=2) -> (("a", 2), ("dim", 1))."""
    return tuple(sorted(values.items()))


def same_numbers(one: Attr, other: Attr) -> bool:
    """Whether equal attributes also say the same: -0.0 is not 0.0, and 1 is not True."""
    return one == other and repr(one) == repr(other)


@dataclass(frozen=True, slots=True)
class Node:
    """One operation. `op` is a name of `kernel_gen.ir.ops`; `name` is for people only."""

    op: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attrs: Attrs = ()
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        names = [key for key, _ in self.attrs]
        if names != sorted(set(names)):
            raise InvalidGraph(f"{self.op}: attributes {names} are not sorted and unique")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Node)
            and (self.op, self.inputs, self.outputs) == (other.op, other.inputs, other.outputs)
            and same_numbers(self.attrs, other.attrs)
        )

    @property
    def output(self) -> int:
        """The only output; raises InvalidGraph if there are several."""
        if len(self.outputs) != 1:
            raise InvalidGraph(
                f"{self.op} {self.name}: has {len(self.outputs)} outputs, expected 1"
            )
        return self.outputs[0]

    def attr(self, key: str, default: Attr = None) -> Attr:
        """The attribute `key`, or `default`."""
        return dict(self.attrs).get(key, default)


class InputKind(StrEnum):
    """USER inputs change with each call; the others are constants that may be packed at load."""

    USER = "user"
    PARAMETER = "parameter"
    BUFFER = "buffer"
    CONSTANT = "constant"


@dataclass(frozen=True, slots=True)
class Input:
    """One input of the program. `name` (a parameter's qualified name) is for people only."""

    value: int
    kind: InputKind = InputKind.USER
    domain: ValueDomain = field(default_factory=ValueDomain)
    name: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Output:
    """One result. `mutates` is the position in `Graph.inputs` that eager would have written.

    `alias_of` is the position of the input whose storage eager's result would share (a returned
    view of an input, say); the runtime hands out that view and never a fresh buffer.
    """

    value: int
    mutates: int | None = None
    alias_of: int | None = None


@dataclass(frozen=True, slots=True)
class Constant:
    """A small constant that belongs to the program. `data` is row-major little-endian bytes."""

    value: int
    data: bytes


@dataclass(frozen=True, slots=True)
class SymbolRange:
    """Inclusive bounds of a symbolic dimension (`Sym.name`), and the value it was captured at."""

    name: str
    low: int
    high: int
    hint: int

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.hint <= self.high:
            raise InvalidGraph(
                f"symbol {self.name}: {self.low} <= {self.hint} <= {self.high} fails"
            )


@dataclass(frozen=True, slots=True)
class Graph:
    """A whole program. Structure is checked by `kernel_gen.ir.verify.verify`."""

    values: tuple[TensorType, ...]
    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Output, ...]
    constants: tuple[Constant, ...] = ()
    symbols: tuple[SymbolRange, ...] = ()

    def type_of(self, value: int) -> TensorType:
        return self.values[value]

    def producers(self) -> dict[int, int]:
        """Value -> index into `nodes` of the node that produces it (inputs are absent)."""
        return {value: i for i, node in enumerate(self.nodes) for value in node.outputs}

    def consumers(self) -> dict[int, tuple[int, ...]]:
        """Value -> indices of the nodes that read it, ascending; absent if none does."""
        found: dict[int, list[int]] = {}
        for i, node in enumerate(self.nodes):
            for value in dict.fromkeys(node.inputs):
                found.setdefault(value, []).append(i)
        return {value: tuple(users) for value, users in found.items()}

    def to_json(self) -> str:
        """Canonical JSON, independent of names, identity, process and platform."""
        from kernel_gen.ir.canonical import graph_to_json

        return graph_to_json(self)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical form, hexadecimal."""
        from kernel_gen.ir.canonical import graph_digest

        return graph_digest(self)

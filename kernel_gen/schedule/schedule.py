"""Schedules: short, ordered, replayable decisions for one nest, and the spaces they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.graph import Attr as Attr  # `Attrs` names it, and the codec looks it up here
from kernel_gen.ir.graph import Attrs

Choice = int | str
Point = Mapping[str, Choice]


@dataclass(frozen=True, slots=True)
class Decision:
    """One step: `kind` is tile, order, vectorise, unroll, parallel, pack, stage, buffer,
    stream-store, threads or another word of the template; `args` say of what and how much."""

    kind: str
    args: Attrs = ()

    def arg(self, key: str) -> object:
        return dict(self.args)[key]


@dataclass(frozen=True, slots=True)
class Schedule:
    """All decisions for one nest under one template. Canonical JSON by `schedule_to_json`."""

    template: str
    decisions: tuple[Decision, ...] = ()

    def find(self, kind: str) -> tuple[Decision, ...]:
        return tuple(d for d in self.decisions if d.kind == kind)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One searched choice; `choices` are ordered (numeric ones ascending)."""

    name: str
    choices: tuple[Choice, ...]

    def __post_init__(self) -> None:
        if not self.choices or len(set(self.choices)) != len(self.choices):
            raise InvalidGraph(f"parameter {self.name}: choices {self.choices}")


@dataclass(frozen=True, slots=True)
class Space:
    """The parameters of a template for one nest and target, and its untuned starting points.

    `seeds` are points worth measuring first, best guess first; at least one.
    """

    parameters: tuple[Parameter, ...]
    seeds: tuple[tuple[tuple[str, Choice], ...], ...]

    def size(self) -> int:
        total = 1
        for parameter in self.parameters:
            total *= len(parameter.choices)
        return total

"""The structure of a group apart from where it stands: equal layers have equal structures."""

from __future__ import annotations

from collections.abc import Container, Mapping

from kernel_gen.fusion.group import FusionGroup
from kernel_gen.fusion.region import Scalar
from kernel_gen.ir.graph import Graph

Structure = tuple[object, ...]


def structure(
    program: Graph,
    group: FusionGroup,
    constants: Container[int],
    scalars: Mapping[int, Scalar],
    written_back: Mapping[int, int],
) -> tuple[Structure, tuple[int, ...]]:
    """A hashable key on which the group's nest depends, and its values in the key's numbering."""
    number: dict[int, int] = {}
    facts: list[object] = []

    def local(value: int) -> int:
        if value not in number:
            number[value] = len(number)
            facts.append((program.type_of(value), value in constants, repr(scalars.get(value))))
        return number[value]

    for index in group.nodes:
        node = program.nodes[index]
        inputs = tuple(local(value) for value in node.inputs)
        facts.append((node.op, inputs, tuple(local(value) for value in node.outputs), node.attrs))
    facts.append(tuple(local(value) for value in group.outputs))
    facts.append(tuple(number.get(written_back.get(value, -1)) for value in group.outputs))
    return tuple(facts), tuple(number)

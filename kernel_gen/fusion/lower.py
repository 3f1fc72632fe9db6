"""Lowering: a group of nodes to one loop nest, pulled from its outputs.

Each output element is followed back through the nodes that make it. Elementwise nodes become
`Compute`, broadcasts drop axes, views remap indices, reductions and matrix products open an axis.
Values are numbered, so that a value read twice at the same index is one statement.

    relu(x + b), x: (8, 4), b: (4,)       axes i0 < 8, i1 < 4
        0 load x[i0, i1]   1 load b[i1]   2 add 0 1   3 relu 2      store out[i0, i1] = 3
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.errors import InvalidInput, Refusal
from kernel_gen.fusion.draft import draft_of
from kernel_gen.fusion.finish import finish
from kernel_gen.fusion.group import FusionGroup
from kernel_gen.fusion.outputs import place_outputs
from kernel_gen.fusion.pull.node import pull_node
from kernel_gen.fusion.pull.puller import Puller
from kernel_gen.fusion.region import Region, constant_values, scalar_constants
from kernel_gen.fusion.structure import Structure, structure
from kernel_gen.fusion.views import RefusedError
from kernel_gen.fusion.write_back import written_back
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import LoopNest


@dataclass(frozen=True, slots=True)
class Lowered:
    """A group as a nest. `operands[i]` is the program's value behind `nest.buffers[i]`."""

    nest: LoopNest
    operands: tuple[int, ...]


class Lowering:
    """Lowers groups of one program. `numerics` "fast" keeps intermediates of narrow floats in fp32
    (casts written by the user still round), "strict" rounds each op's result to its storage type,
    as eager does."""

    def __init__(self, program: Graph, numerics: str = "fast") -> None:
        if numerics not in ("fast", "strict"):
            raise InvalidInput(f"numerics {numerics!r}: expected 'fast' or 'strict'")
        self._program = program
        self._strict = numerics == "strict"
        self._constants = constant_values(program)
        self._scalars = scalar_constants(program)
        self._written_back = written_back(program)

    def structure(self, group: FusionGroup) -> tuple[Structure, tuple[int, ...]]:
        """What the group's nest depends on, and the values behind it (`structure.structure`)."""
        return structure(self._program, group, self._constants, self._scalars, self._written_back)

    def lower(self, group: FusionGroup) -> Lowered | Refusal:
        """The nest of `group`, canonical: equal groups of a program give equal nests."""
        try:
            region = Region(self._program, group, self._scalars)
            puller = Puller(region, pull_node, strict=self._strict)
            stores = place_outputs(puller, group.outputs)
            draft = draft_of(puller.nest, stores)
            nest, operands = finish(self._program, draft, self._constants, self._written_back)
        except RefusedError as refused:
            return refused.refusal
        return Lowered(nest, operands)


def lower(program: Graph, group: FusionGroup, numerics: str = "fast") -> Lowered | Refusal:
    """`Lowering(program, numerics).lower(group)`, for a single group."""
    return Lowering(program, numerics).lower(group)

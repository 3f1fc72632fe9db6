"""Which groups can be kernels: lowered and shown to the templates, equal structures once."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codec import digest
from kernel_gen.errors import Refusal
from kernel_gen.fusion.group import FusionGroup
from kernel_gen.fusion.legality import Accepts, accepting
from kernel_gen.fusion.lower import Lowered, Lowering
from kernel_gen.fusion.region import constant_nodes
from kernel_gen.fusion.structure import Structure
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target


@dataclass(frozen=True, slots=True)
class Candidate:
    """A legal group. Equal `task` (the nest's digest) means one tuning for all of them."""

    group: FusionGroup
    lowered: Lowered
    task: str
    templates: tuple[str, ...]


class Judge:
    """Lowers groups and asks templates; equal structures are judged once."""

    def __init__(
        self, program: Graph, templates: tuple[Accepts, ...], target: Target, numerics: str
    ) -> None:
        self._lowering = Lowering(program, numerics)
        constant = frozenset(constant_nodes(program))
        self._computing = frozenset(range(len(program.nodes))) - constant
        self._templates = templates
        self._target = target
        self._known: dict[Structure, tuple[LoopNest, str, tuple[str, ...]] | Refusal] = {}
        self._places: dict[Structure, tuple[int, ...]] = {}

    @property
    def judged(self) -> int:
        """Distinct groups lowered so far."""
        return len(self._known)

    def judge(self, group: FusionGroup) -> Candidate | Refusal:
        """The candidate, or why there is none."""
        key, values = self._lowering.structure(group)
        if key not in self._known:
            self._known[key] = self._lower(group, key, values)
        known = self._known[key]
        if isinstance(known, Refusal):
            return known
        nest, task, names = known
        operands = tuple(values[place] for place in self._places[key])
        return Candidate(group, Lowered(nest, operands), task, names)

    def _lower(
        self, group: FusionGroup, key: Structure, values: tuple[int, ...]
    ) -> tuple[LoopNest, str, tuple[str, ...]] | Refusal:
        lowered = self._lowering.lower(group)
        if isinstance(lowered, Refusal):
            return lowered
        fused = len(self._computing.intersection(group.nodes)) > 1
        names = accepting(lowered.nest, self._target, self._templates, fused=fused)
        if isinstance(names, Refusal):
            return names
        place = {value: position for position, value in enumerate(values)}
        self._places[key] = tuple(place[value] for value in lowered.operands)
        return lowered.nest, digest(lowered.nest), names

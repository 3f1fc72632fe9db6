"""Vector templates: any nest without matrix products, as tiles in the unified buffer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from kernel_gen.codegen.ascend.kernel.kernel_plan import KernelPlan, buffer_names
from kernel_gen.codegen.ascend.kernel.planned import PlannedTemplate
from kernel_gen.codegen.ascend.kernel.sections import Sections, limits_of
from kernel_gen.codegen.ascend.kernel.vector_tiling import LARGEST
from kernel_gen.codegen.ascend.moves.addresses import Place
from kernel_gen.codegen.ascend.moves.memory import STORED
from kernel_gen.codegen.ascend.nest.shape import Shaped, shaped
from kernel_gen.codegen.ascend.templates.check import refuse_nest
from kernel_gen.codegen.ascend.tiles.roles import column_axes
from kernel_gen.codegen.ascend.tiles.split_reduce import split_reduce
from kernel_gen.codegen.flat.linear import FlatNest
from kernel_gen.codegen.flat.phases import plan_phases
from kernel_gen.errors import InvalidGraph, Refusal
from kernel_gen.ir.loopnest import Contract, LoopNest, Reduce
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.schedule.schedule import Choice, Parameter, Schedule, Space
from kernel_gen.schedule.words import choice

LANES = (0, 512, 1024, 2048, 4096, 8192, 16384, LARGEST)
"""Lanes of a tile at most; 0: the tiling function decides; the last: the largest tile that fits."""


@dataclass(frozen=True, slots=True)
class VectorTemplate(PlannedTemplate):
    """Tiles of rows and columns, tasks shared by the vector cores.

    "elementwise" takes nests without reductions; "reduce" those with them: whole rows where they
    fit the buffer, else walked in steps, several phases where reductions run over different axes.
    """

    name: str
    reduces: bool

    def refuse(self, nest: LoopNest, target: Target) -> Refusal | None:
        if target.kind is DeviceKind.CPU:
            return Refusal("wrong-device", f"template {self.name} generates code for NPUs")
        if any(isinstance(s, Contract) for s in nest.statements):
            return Refusal("has-contraction", "the nest holds a matrix product")
        if self.reduces != any(isinstance(s, Reduce) for s in nest.statements):
            return (
                Refusal("no-reduction", "the nest reduces nothing")
                if self.reduces
                else Refusal("not-pointwise", "the nest reduces")
            )
        return refuse_nest(_prepared(nest).nest)

    def space(self, nest: LoopNest, target: Target) -> Space:
        refused = self.refuse(nest, target)
        if refused is not None:
            raise InvalidGraph(refused.sentence)
        cores = limits_of(target).cores
        shape = _prepared(nest)
        phases = plan_phases(shape.nest)
        columns = max(len(column_axes(shape.nest, p)) for p in phases)
        rows = max(len(p.outer) + len(p.inner) for p in phases) - 1
        few = sorted({1, max(cores // 4, 1), max(cores // 2, 1), cores})
        parameters = [
            Parameter("column", tuple(range(max(min(columns, 2), 1)))),
            Parameter("row", tuple(range(max(min(rows, 3), 1)))),
            Parameter("lanes", LANES),
            Parameter("buffers", (1, 2)),
            Parameter("cores", tuple(few)),
        ]
        if self.reduces:
            parameters.append(Parameter("walk", ("whole", "steps")))
            splittable = split_reduce(shape.nest) is not None
            parameters.append(Parameter("split", (0, 1) if splittable else (0,)))
        first: dict[str, Choice] = {
            "column": 0, "row": 0, "lanes": 0, "buffers": 2, "cores": cores,
        }  # fmt: skip
        if self.reduces:
            first["walk"] = "whole"
            first["split"] = int(splittable and _few_rows(shape, cores))
        return Space(tuple(parameters), starting_points(first))

    def planned(self, nest: LoopNest, schedule: Schedule, target: Target) -> KernelPlan:
        return _emitted(nest, schedule, target)


def starting_points(first: Mapping[str, Choice]) -> tuple[tuple[tuple[str, Choice], ...], ...]:
    """The tiling function's own choice, then what a fixed heuristic would take: the largest tile,
    on all cores."""
    return tuple(first.items()), tuple({**first, "lanes": LARGEST}.items())


@lru_cache(maxsize=256)
def _prepared(nest: LoopNest) -> Shaped:
    return shaped(nest)


@lru_cache(maxsize=64)
def _emitted(nest: LoopNest, schedule: Schedule, target: Target) -> KernelPlan:
    """All phases as text."""
    shape = _prepared(nest)
    sections = Sections(target, schedule)
    parts = split_reduce(shape.nest) if _is_split(schedule) else None
    if parts is not None:
        sections.add_split(parts, places_of(shape.nest))
    else:
        sections.add(shape.nest, places_of(shape.nest))
    return KernelPlan(
        shape.nest,
        shape.nest.buffers,
        shape.symbols(),
        shape.derived,
        tuple(sections.sections),
        tuple(sections.work.values()),
        sections.workspace,
    )


def _is_split(schedule: Schedule) -> bool:
    return schedule.template == "reduce" and choice(schedule, "split") == 1


def _few_rows(shape: Shaped, cores: int) -> bool:
    """Whether rows, as far as their number is known, leave cores without work."""
    outer = plan_phases(shape.nest)[0].outer
    extents = [shape.nest.extent(a) for a in outer]
    total = math.prod(e for e in extents if isinstance(e, int))
    return total < cores and len(outer) == sum(isinstance(e, int) for e in extents)


def places_of(flat: FlatNest) -> dict[int, Place]:
    """The global tensors of a nest's buffers."""
    names = buffer_names(flat.buffers)
    return {
        i: Place(name, STORED[b.type.dtype])
        for i, (name, b) in enumerate(zip(names, flat.buffers, strict=True))
    }

"""Template "loops": any nest, in several passes with barriers, so that every legal nest runs."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.rowconfig import RowConfig
from kernel_gen.codegen.cpu.rowspace import (
    by_contiguity,
    first_threads,
    lanes_for,
    prepared,
    refuse_symbols,
)
from kernel_gen.codegen.cpu.staged_kernel import staged_kernel
from kernel_gen.codegen.cpu.staging import StagedPhase
from kernel_gen.codegen.cpu.vectypes import Lanes
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidGraph, Refusal
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Parameter, Point, Schedule, Space
from kernel_gen.schedule.words import choice, decisions


@dataclass(frozen=True, slots=True)
class LoopsTemplate:
    """Every reduction and product by its own loops; slow on matrix products, right on all."""

    name: str = "loops"

    def refuse(self, nest: LoopNest, target: Target) -> Refusal | None:
        _, plan = prepared(nest)
        return refuse_symbols(nest) if plan.extra else None

    def space(self, nest: LoopNest, target: Target) -> Space:
        refused = self.refuse(nest, target)
        if refused is not None:
            raise InvalidGraph(refused.sentence)
        parameters = (
            Parameter("axis", ("contiguous", "rows", "scalar")),
            Parameter("rows", (1, 4)),
            Parameter("threads", ("one", "all")),
        )
        threads = first_threads(prepared(nest)[0])
        best = (("axis", "contiguous"), ("rows", 1), ("threads", threads))
        return Space(parameters, (best,))

    def schedule(self, nest: LoopNest, target: Target, point: Point) -> Schedule | Refusal:
        return Schedule(self.name, decisions(point))

    def generate(
        self, nest: LoopNest, target: Target, schedule: Schedule, symbol: str
    ) -> KernelSource:
        flat, plan = prepared(nest)
        policy = str(choice(schedule, "axis"))
        units = int(str(choice(schedule, "rows")))

        def configure(staged: StagedPhase) -> tuple[RowConfig, Lanes]:
            axis = _axis(staged, policy)
            columns = axis in staged.phase.outer
            config = RowConfig(axis, units=units if columns else 1)
            return config, lanes_for(staged, target, axis)

        parallel = choice(schedule, "threads") == "all"
        return staged_kernel(plan, flat, configure, symbol, parallel=parallel)


def _axis(staged: StagedPhase, policy: str) -> str | None:
    """The vectorised axis of a phase: the most contiguous of all, or of its outer ones."""
    phase = staged.phase
    axes = phase.outer if policy == "rows" else (*phase.outer, *phase.inner)
    if policy == "scalar" or not axes:
        return None
    return by_contiguity(staged.nest, axes)[0]

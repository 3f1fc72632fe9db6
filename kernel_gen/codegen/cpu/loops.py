"""Template "loops": any nest, in several passes with barriers, so that every legal nest runs.

With `cross`, reductions that keep the contiguous axis (column sums, the gradients of a norm's scale
and shift) accumulate while rows are read for whatever else the nest computes (`crossing`).
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.in_place import in_place_pairs
from kernel_gen.codegen.cpu.pointwise import Pointwise
from kernel_gen.codegen.cpu.reductions.crossing import crossable, crossing_bytes
from kernel_gen.codegen.cpu.reductions.rowconfig import RowConfig
from kernel_gen.codegen.cpu.reductions.rowspace import (
    AHEAD,
    by_contiguity,
    first_ahead,
    first_stream,
    first_threads,
    kept_in,
    lanes_for,
    pass_choices,
    passes_of,
    policies,
    prepared,
    refuse_kept,
    refuse_symbols,
    stream_choices,
    streamed,
    unrolls,
)
from kernel_gen.codegen.cpu.reductions.staged_kernel import staged_kernel
from kernel_gen.codegen.cpu.reductions.staging import StagedPhase
from kernel_gen.codegen.cpu.vectors.types import Lanes
from kernel_gen.codegen.flat.linear import FlatLoad, FlatStore, flatten
from kernel_gen.codegen.flat.phases import closure, reductions, stage_roots
from kernel_gen.codegen.flat.simplify import simplify
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidGraph, Refusal
from kernel_gen.ir.loopnest import Contract, LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Choice, Parameter, Point, Schedule, Space
from kernel_gen.schedule.words import choice, decisions

_CROSS_BYTES = 256 << 10  # accumulators of one thread that stay in its own cache


@dataclass(frozen=True, slots=True)
class LoopsTemplate:
    """Every reduction and product by its own loops; slow on matrix products, right on all."""

    name: str = "loops"

    def refuse(self, nest: LoopNest, target: Target) -> Refusal | None:
        by_points = Pointwise().refuse(nest, target) is None
        if by_points and in_place_pairs(simplify(flatten(nest))):
            return Refusal("in-place", "only the pointwise template writes over an input")
        _, plan = prepared(nest)
        return refuse_symbols(nest) if plan.extra else None

    def space(self, nest: LoopNest, target: Target) -> Space:
        refused = self.refuse(nest, target)
        if refused is not None:
            raise InvalidGraph(refused.sentence)
        crosses, passes = _crosses(nest), pass_choices(nest)
        phases = prepared(nest)[1].phases + (
            prepared(nest, cross=True)[1].phases if crosses else ()
        )
        parameters = (
            Parameter("axis", ("contiguous", "rows", "scalar")),
            Parameter("cross", (0, 1) if crosses else (0,)),
            Parameter("keep", policies(phases)),
            Parameter("unroll", unrolls(phases[0])),
            Parameter("rows", (1, 2, 4, 8)),
            Parameter("ahead", AHEAD),
            Parameter("stream", stream_choices(prepared(nest)[0])),
            Parameter("threads", ("one", "all")),
            *((Parameter("passes", passes),) if passes else ()),
        )
        keep, unroll = parameters[2].choices, parameters[3].choices
        best: dict[str, Choice] = {
            "axis": "contiguous",
            "cross": parameters[1].choices[-1],
            "keep": keep[-1],
            "unroll": unroll[-1],
            "rows": 4,
            "ahead": first_ahead(prepared(nest)[0], target),
            "stream": first_stream(prepared(nest)[0], target),
            "threads": first_threads(prepared(nest)[0]),
        }
        if passes:
            best["passes"] = passes[-1]
        kept = {**best, "stream": 0}
        lean = {**kept, "cross": 0, "keep": "none", "unroll": 1, "rows": 1, "ahead": 0}
        once = [{**best, "passes": passes[0], "cross": 0}] if passes else []
        points = [best, *once, kept, {**best, "unroll": 1}, {**best, "cross": 0}, lean]
        return Space(parameters, tuple(dict.fromkeys(tuple(p.items()) for p in points)))

    def schedule(self, nest: LoopNest, target: Target, point: Point) -> Schedule | Refusal:
        passes = point.get("passes", 2)
        _, plan = prepared(nest, cross=bool(point["cross"]), passes=passes)
        for staged in plan.phases:
            axis = _axis(staged, str(point["axis"]))
            kept = kept_in(staged, str(point["keep"]), axis)
            units = int(str(point["rows"])) if _by_blocks(staged, axis) else 1
            refused = refuse_kept(staged, kept, units)
            if refused is not None:
                return refused
        return Schedule(self.name, decisions(point))

    def generate(
        self, nest: LoopNest, target: Target, schedule: Schedule, symbol: str
    ) -> KernelSource:
        cross = bool(choice(schedule, "cross"))
        flat, plan = prepared(nest, cross=cross, passes=passes_of(schedule))
        policy = str(choice(schedule, "axis"))

        def configure(staged: StagedPhase) -> tuple[RowConfig, Lanes]:
            axis = _axis(staged, policy)
            config = RowConfig(
                axis,
                units=int(str(choice(schedule, "rows"))) if _by_blocks(staged, axis) else 1,
                unroll=int(str(choice(schedule, "unroll"))) if axis in staged.phase.inner else 1,
                ahead=int(str(choice(schedule, "ahead"))),
                kept=kept_in(staged, str(choice(schedule, "keep")), axis),
            )
            return config, lanes_for(staged, target, axis)

        return staged_kernel(
            plan, flat, configure, symbol, parallel=choice(schedule, "threads") == "all",
            stream=streamed(flat, choice(schedule, "stream")),
        )  # fmt: skip


def _crosses(nest: LoopNest) -> bool:
    """Whether columns can be reduced while rows are read, in a cache's worth of accumulators."""
    flat = simplify(flatten(nest))
    crossed = crossable(flat)
    products = any(isinstance(s, Contract) for s in flat.statements)
    return bool(crossed) and not products and crossing_bytes(flat, crossed) <= _CROSS_BYTES


def _by_blocks(staged: StagedPhase, axis: str | None) -> bool:
    """Whether several rows (or vectors of rows) run side by side."""
    return axis in staged.phase.outer or bool(staged.phase.crosses)


def _axis(staged: StagedPhase, policy: str) -> str | None:
    """The vectorised axis of a phase: the most contiguous of all, or of its outer ones; rows that
    accumulate columns are walked by vectors along them."""
    phase = staged.phase
    axes = phase.outer if policy == "rows" else (*phase.outer, *phase.inner)
    axes = phase.inner if phase.crosses else axes
    if policy == "scalar" or not axes:
        return None
    return by_contiguity(_main_accesses(staged), axes)[0]


def _main_accesses(staged: StagedPhase) -> list[FlatLoad | FlatStore]:
    """What the phase reads and writes most often: its accesses along the most of its axes."""
    nest, phase = staged.nest, staged.phase
    stops = frozenset(reductions(nest))
    found: list[FlatLoad | FlatStore] = []
    for stage in phase.stages:
        needed = closure(nest, stage_roots(nest, stage), stops)
        loads = (nest.statements[i] for i in sorted(needed))
        found += [s for s in loads if isinstance(s, FlatLoad)]
        found += [nest.stores[k] for k in (*stage.stores, *stage.row_stores)]
    axes = frozenset((*phase.outer, *phase.inner))
    most = max((len(axes & x.at.axes()) for x in found), default=0)
    return [x for x in found if len(axes & x.at.axes()) == most]

"""Templates "row" and "reduce": one phase of reductions over one set of axes.

"row" vectorises along a reduced axis (softmax, norms, full sums): a row stays in cache over all
stages. "reduce" vectorises along a kept axis (column sums, short rows): each lane is a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernel_gen.codegen.cpu.reductions.rowconfig import RowConfig
from kernel_gen.codegen.cpu.reductions.rowspace import (
    AHEAD,
    by_contiguity,
    first_ahead,
    first_passes,
    first_stream,
    first_threads,
    is_static,
    kept_in,
    lanes_for,
    pass_choices,
    passes_of,
    policies,
    prepared,
    refuse_kept,
    refuse_rows,
    static_extents,
    stream_choices,
    streamed,
    unrolls,
)
from kernel_gen.codegen.cpu.reductions.skewed import skewable
from kernel_gen.codegen.cpu.reductions.staged_kernel import staged_kernel
from kernel_gen.codegen.cpu.reductions.staging import StagedPhase
from kernel_gen.codegen.cpu.vectors.types import Lanes
from kernel_gen.codegen.flat.linear import FlatNest
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidGraph, Refusal
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Choice, Parameter, Point, Schedule, Space
from kernel_gen.schedule.words import choice, decisions

_MANY_ROWS = 64  # beside which the first and last rows that are done twice are few
_WIDEST = 8  # bytes of a kept element
_SHORT_ROW = 64  # elements; below, a vector of rows may beat vectors along rows


@dataclass(frozen=True, slots=True)
class RowTemplate:
    """One phase of reductions, vectorised along a reduced axis or (`columns`) a kept one."""

    name: str
    columns: bool

    def refuse(self, nest: LoopNest, target: Target) -> Refusal | None:
        refused = refuse_rows(nest)
        if refused is not None:
            return refused
        _, plan = prepared(nest)
        staged = plan.phases[0]
        kept = _unit_strides(staged.nest, staged.phase.outer)
        reduced = _unit_strides(staged.nest, staged.phase.inner)
        if not self.columns:
            against = kept > 0 and reduced == 0
            sentence = f"no access walks {staged.phase.inner} with stride one"
            return Refusal("rows-strided", sentence) if against else None
        if not staged.phase.outer:
            return Refusal("no-kept-axis", "everything is reduced: no axis is left to vectorise")
        if kept < max(reduced, 1) and not _short_rows(staged):
            sentence = f"most accesses walk {staged.phase.inner} with stride one"
            return Refusal("columns-strided", sentence)
        return None

    def _axes(self, staged: StagedPhase) -> list[str]:
        phase = staged.phase
        return by_contiguity(staged.nest.accesses(), phase.outer if self.columns else phase.inner)

    def _skews(self, staged: StagedPhase) -> bool:
        return not self.columns and skewable(staged.nest, staged.phase)

    def space(self, nest: LoopNest, target: Target) -> Space:
        refused = self.refuse(nest, target)
        if refused is not None:
            raise InvalidGraph(refused.sentence)
        _, plan = prepared(nest)
        staged, passes = plan.phases[0], pass_choices(nest)
        axes = self._axes(staged)
        units = (1, 2, 4, 8) if self.columns else _divisors(staged)
        parameters = (
            Parameter("axis", tuple(axes)),
            Parameter("keep", policies((staged,))),
            Parameter("unroll", (1,) if self.columns else unrolls(staged)),
            Parameter("rows", units),
            Parameter("ahead", (0,) if self.columns else AHEAD),
            Parameter("stream", stream_choices(prepared(nest)[0])),
            Parameter("skew", (0, 1) if self._skews(staged) else (0,)),
            Parameter("threads", ("one", "all", "split")),
            *((Parameter("passes", passes),) if passes else ()),
        )
        return Space(parameters, self._seeds(staged, target, axes, parameters))

    def _seeds(
        self,
        staged: StagedPhase,
        target: Target,
        axes: list[str],
        parameters: tuple[Parameter, ...],
    ) -> tuple[tuple[tuple[str, Choice], ...], ...]:
        few = _rows(staged) < (256 if self.columns else 8)
        keep, threads = parameters[1].choices, first_threads(staged.nest)
        best: dict[str, Choice] = {
            "axis": axes[0],
            "keep": "all" if "all" in keep else keep[-1],
            "unroll": parameters[2].choices[-1],
            "rows": 4 if self.columns else 1,
            "ahead": 0 if self.columns or few else first_ahead(staged.nest, target),
            "stream": first_stream(staged.nest, target),
            "skew": int(self._skews(staged) and _lags(staged, target)),
            "threads": "split" if few and threads == "all" else threads,
        }
        if best["skew"]:  # several stages side by side need fewer vectors of each
            best["unroll"] = parameters[2].choices[:2][-1]
        others: list[dict[str, Choice]] = []
        if parameters[-1].name == "passes":
            beside = target.vector_bytes if self.columns else 1  # four vectors of float32
            best["passes"] = first_passes(staged, target, beside)
            others = [{**best, "passes": n} for n in parameters[-1].choices if n != best["passes"]]
        lean = {**best, "keep": "none", "unroll": 1, "rows": 1, "ahead": 0, "skew": 0}
        apart = {**best, "unroll": parameters[2].choices[-1], "skew": 0}
        past = [{**p, "stream": 1} for p in (best, apart)]
        points = [best, *others, *past, {**best, "stream": 0}, lean]
        return tuple(dict.fromkeys(tuple(p.items()) for p in points))

    def schedule(self, nest: LoopNest, target: Target, point: Point) -> Schedule | Refusal:
        _, plan = prepared(nest, passes=point.get("passes", 2))
        staged = plan.phases[0]
        units = int(str(point["rows"]))
        if not self.columns and units not in _divisors(staged):
            return Refusal("rows-do-not-divide", f"{units} rows do not divide the outer extent")
        skew = point.get("skew", 0)
        if skew and (units > 1 or point["threads"] == "split" or not self._skews(staged)):
            return Refusal("no-skew", "rows side by side, shared or of one stage do not lag")
        units = len(staged.phase.stages) if skew else units
        kept = kept_in(staged, str(point["keep"]), str(point["axis"]))
        return refuse_kept(staged, kept, units) or Schedule(self.name, decisions(point))

    def generate(
        self, nest: LoopNest, target: Target, schedule: Schedule, symbol: str
    ) -> KernelSource:
        flat, plan = prepared(nest, passes=passes_of(schedule))
        axis = str(choice(schedule, "axis"))
        threads = choice(schedule, "threads")

        def configure(staged: StagedPhase) -> tuple[RowConfig, Lanes]:
            config = RowConfig(
                axis,
                units=int(str(choice(schedule, "rows"))),
                unroll=int(str(choice(schedule, "unroll"))),
                split=threads == "split",
                ahead=int(str(choice(schedule, "ahead"))),
                skew=bool(schedule.find("skew") and choice(schedule, "skew")),
                kept=kept_in(staged, str(choice(schedule, "keep")), axis),
            )
            return config, lanes_for(staged, target, axis)

        stream = streamed(flat, choice(schedule, "stream"))
        return staged_kernel(
            plan, flat, configure, symbol, parallel=threads != "one", stream=stream
        )


def _unit_strides(nest: FlatNest, axes: tuple[str, ...]) -> int:
    """The most accesses that walk one of `axes` with stride one."""
    counts = (sum(x.at.coeff(a).const == 1 for x in nest.accesses()) for a in axes)
    return max(counts, default=0)


def _short_rows(staged: StagedPhase) -> bool:
    """Whether a row has too few elements to fill vectors along it."""
    inner = staged.phase.inner
    return (
        is_static(staged.nest, inner)
        and math.prod(static_extents(staged.nest, inner)) <= _SHORT_ROW
    )


def _rows(staged: StagedPhase) -> float:
    """How many rows the phase has; infinite if symbolic."""
    if not is_static(staged.nest, staged.phase.outer):
        return math.inf
    return math.prod(static_extents(staged.nest, staged.phase.outer))


def _lags(staged: StagedPhase, target: Target) -> bool:
    """Whether stages lag at first: many rows, of which one for each stage fits the cache, and
    registers for the constants of all stages (with AVX2's 16, a softmax or norm becomes slower)."""
    inner, depth = staged.phase.inner, len(staged.phase.stages)
    nbytes = depth * _WIDEST * math.prod(static_extents(staged.nest, inner))
    short = is_static(staged.nest, inner) and nbytes <= target.l2_bytes
    return short and target.vector_bytes == 64 and _rows(staged) >= _MANY_ROWS


def _divisors(staged: StagedPhase) -> tuple[Choice, ...]:
    """Numbers of rows in flight that divide the innermost outer axis."""
    if not staged.phase.outer:
        return (1,)
    extent = staged.nest.extent(staged.phase.outer[-1])
    return tuple(n for n in (1, 2, 4) if isinstance(extent, int) and extent % n == 0) or (1,)

"""Text of a phase's rows: stages, walks over the inner axes, accumulators."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from kernel_gen.codegen.cpu.reductions.accumulators import StageAccumulators
from kernel_gen.codegen.cpu.reductions.ahead import fetch_ahead
from kernel_gen.codegen.cpu.reductions.crossing import Crossing
from kernel_gen.codegen.cpu.reductions.innerspace import InnerSpace
from kernel_gen.codegen.cpu.reductions.kept_rows import KeptRows
from kernel_gen.codegen.cpu.reductions.rowconfig import RowConfig, RowUnit
from kernel_gen.codegen.cpu.scratch import Scratch
from kernel_gen.codegen.cpu.statements.emit import Emitter
from kernel_gen.codegen.cpu.statements.scope import Binding, Scope
from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.codegen.flat.phases import Phase, Stage, closure, reductions, stage_roots
from kernel_gen.errors import InternalError
from kernel_gen.ir.types import Sym

_PLAIN_STEPS = 64  # additions into one accumulator that need no blocks
_BLOCK_STEPS = 512  # the largest block
_FIRST_STEPS = 8  # the first block, where later ones build on it


@dataclass(frozen=True, slots=True)
class StageWalk:
    """What a stage does in a walk over the inner axes: for whose rows, into which accumulators."""

    units: list[RowUnit]
    stage: Stage
    number: int
    sums: StageAccumulators


@dataclass(frozen=True, slots=True)
class _Walk:
    """One walk over the inner axes, by one stage or by several, each for rows of its own.

    `flush` is (position in `axes`, steps of that axis per block) where long sums go in blocks.
    """

    stages: tuple[StageWalk, ...]
    axes: tuple[str, ...]
    flush: tuple[int, int] | None

    @property
    def begins_small(self) -> bool:
        return any(s.sums.begins_small for s in self.stages)


class RowEmitter:
    """Emits the rows of one phase; `label` tells its scratch from other phases'."""

    def __init__(
        self, emitter: Emitter, phase: Phase, config: RowConfig, scratch: Scratch, label: str
    ) -> None:
        self.emitter = emitter
        self.nest = emitter.nest
        self.phase = phase
        self.config = config
        self.scratch = scratch
        self.label = label
        self.stops = frozenset(reductions(self.nest))
        self.lanes = emitter.lanes.count
        self.space = InnerSpace(self.nest, phase.inner, config.vector, self.lanes)
        self.row_vector = config.vector in phase.outer
        self.inner_vector = config.vector in phase.inner
        self.ahead = fetch_ahead(
            self.nest, phase, config.vector, config.kept, config.ahead * config.units
        )
        if config.skew and self.ahead is not None:
            # stage n works n rows behind the first one
            self.ahead = replace(self.ahead, rows=self.ahead.rows + self.ahead.stage)
        self.crossing = self._crossing()
        self.kept = KeptRows(emitter, phase, config, self.space, scratch, label)

    def _crossing(self) -> Crossing | None:
        if not self.phase.crosses:
            return None
        if self.row_vector or self.config.split:
            raise InternalError(f"{self.label}: columns of vectors of rows, or of shared rows")
        return Crossing(
            self.emitter, self.phase, self.scratch, self.label, space=self.space,
            vector=self.inner_vector, units=self.config.units,
        )  # fmt: skip

    def emit(self, scope: Scope, bindings: list[dict[str, Binding]], part: str | None) -> None:
        """All stages for the rows `bindings`, side by side; `part`: live lanes of a row vector."""
        if part is not None:
            scope.part = part
        units = [RowUnit(b, scope.inline(b), n) for n, b in enumerate(bindings)]
        for number, stage in enumerate(self.phase.stages):
            for unit in units:
                self.prepare(unit, stage, number)
            self.walk(scope, [self.stage_walk(units, stage, number)])
            self.row_stores(units, stage)
        if self.crossing is not None:
            self.crossing.end_block(scope)

    def prepare(self, unit: RowUnit, stage: Stage, number: int) -> None:
        """Row values that the walk will ask for are computed once, before it."""
        inner = frozenset(self.phase.inner)
        live = self.emitter.live_axes
        stop = self.stops | {k.statement for k in self.config.kept if k.first < number}
        for s in sorted(closure(self.nest, stage_roots(self.nest, stage), stop)):
            if not live[s] & inner and s not in self.stops:
                self.emitter.value(s, unit.scope)

    def stage_walk(self, units: list[RowUnit], stage: Stage, number: int) -> StageWalk:
        """A stage's part of a walk, with accumulators of its own."""
        if stage.reduces and not self.phase.inner:
            raise InternalError(f"{self.label}: a reduction without axes")
        columns = self.config.unroll if self.inner_vector else 1
        sums = StageAccumulators(
            self.emitter, stage, len(units), columns, self.space.axes, fold=self.inner_vector,
            vector=self.inner_vector or self.row_vector,
        )  # fmt: skip
        return StageWalk(units, stage, number, sums)

    def walk(self, scope: Scope, stages: list[StageWalk]) -> None:
        """One walk over the inner axes; what is reduced in it is then known to the rows' scopes."""
        busy = [s for s in stages if s.stage.reduces or s.stage.stores or s.stage.crosses]
        if not self.phase.inner or not busy:
            return
        axes = self.space.axes
        for s in busy:
            s.sums.declare(scope)
        flush = self._flush(axes) if any(s.sums.needs_flush for s in busy) else None
        self._loops(scope, _Walk(tuple(busy), axes, flush), 0)
        for s in busy:
            for r in s.stage.reduces:
                for unit in s.units:
                    s.sums.finish(scope, r, unit.number)
            if self.config.split and s.stage.reduces:
                s.sums.share(scope, self.scratch, self.label)
            for r in s.stage.reduces:
                for unit in s.units:
                    unit.scope.define(r, s.sums.result(unit.scope, r, unit.number))

    def row_stores(self, units: list[RowUnit], stage: Stage) -> None:
        for unit in units if stage.row_stores else ():
            scope = unit.scope.open("if (tid == 0) {") if self.config.split else unit.scope
            for k in stage.row_stores:
                self.emitter.store(self.nest.stores[k], scope)
            if scope is not unit.scope:
                scope.close()

    # ---- loops over the inner axes -------------------------------------------------------------

    def _step(self, axis: str) -> int:
        return self.lanes * self.config.unroll if axis == self.config.vector else 1

    def _flush(self, axes: tuple[str, ...]) -> tuple[int, int] | None:
        """Where sums are cut into blocks; None where they are short."""
        counts = []
        for axis in axes:
            extent = self.nest.extent(axis)
            count = 1 << 20 if isinstance(extent, Sym) else extent
            counts.append(max(count // self._step(axis), 1))
        if math.prod(counts) <= _PLAIN_STEPS:
            return None
        block = min(math.isqrt(math.prod(counts)), _BLOCK_STEPS)  # errors of both levels balance
        inner = 1
        for position in reversed(range(len(axes))):
            if inner * counts[position] > block:
                return position, max(block // inner, 1)
            inner *= counts[position]
        return None

    def _loops(self, scope: Scope, walk: _Walk, position: int) -> None:
        if position == len(walk.axes):
            self._cells(scope, walk, {}, None, 1)
            return
        axis = walk.axes[position]
        low, high = self._bounds(scope, axis, position)
        block = scope
        if walk.flush is not None and walk.flush[0] == position:
            size = walk.flush[1] * self._step(axis)
            c = self.emitter.fresh("c")
            now, then = str(size), f"{c} += {size}"
            if walk.begins_small:
                now, then = f"{c}s", f"{c} += {c}s, {c}s = {size}"
                first = min(walk.flush[1], _FIRST_STEPS) * self._step(axis)
                scope.add(f"gaf_i64 {c}s = {first};")
            block = scope.open(f"for (gaf_i64 {c} = {low}; {c} < {high}; {then}) {{")
            block.add(f"const gaf_i64 {c}e = {c} + {now} < {high} ? {c} + {now} : {high};")
            for s in walk.stages:
                s.sums.open_block(block)
            low, high = c, f"{c}e"
        if axis == self.config.vector:
            self._vector_axis(block, walk, axis, low, high)
        else:
            r = self.emitter.fresh("r")
            loop = block.open(
                f"for (gaf_i64 {r} = {low}; {r} < {high}; {r}++) {{", {axis: Binding(r)}
            )
            self._loops(loop, walk, position + 1)
            loop.close()
        if block is not scope:
            for s in walk.stages:
                s.sums.close_block(block)
            block.close()

    def _bounds(self, scope: Scope, axis: str, position: int) -> tuple[str, str]:
        """This thread's share of the outermost inner axis where rows are split, else all of it."""
        extent = self.nest.extent_text(axis)
        if not self.config.split or position != 0:
            return "0", extent
        step, s = self._step(axis), self.emitter.fresh("s")
        scope.add(f"const gaf_i64 {s}n = ({extent} + {step - 1}) / {step};")
        scope.add(f"const gaf_i64 {s}a = {s}n * tid / nt * {step};")
        scope.add(f"gaf_i64 {s}b = {s}n * (tid + 1) / nt * {step};")
        scope.add(f"if ({s}b > {extent}) {s}b = {extent};")
        return f"{s}a", f"{s}b"

    def _vector_axis(self, scope: Scope, walk: _Walk, axis: str, low: str, high: str) -> None:
        """Unrolled vectors, single vectors, one partial vector."""
        j = self.emitter.fresh("j")
        scope.add(f"gaf_i64 {j} = {low};")
        extent = self.nest.extent(axis)
        for unroll in sorted({self.config.unroll, 1}, reverse=True):
            step = unroll * self.lanes
            if isinstance(extent, int) and extent < step:
                continue
            body = scope.open(f"for (; {j} + {step} <= {high}; {j} += {step}) {{")
            self._cells(body, walk, {axis: j}, None, unroll)
            body.close()
            if isinstance(extent, int) and extent % step == 0:
                return
        tail = scope.open(f"if ({j} < {high}) {{")
        self._cells(tail, walk, {axis: j}, f"(int)({high} - {j})", 1)
        tail.close()

    def _cells(
        self, scope: Scope, walk: _Walk, at: dict[str, str], part: str | None, unroll: int
    ) -> None:
        """The innermost body, for each vector and each row in flight."""
        for u in range(unroll):
            column = scope.inline(
                {a: Binding(f"({j} + {u * self.lanes})" if u else j, True) for a, j in at.items()}
            )
            column.part = part
            for stage in walk.stages:
                self._stage_cells(column, stage, u)

    def _stage_cells(self, column: Scope, walk: StageWalk, u: int) -> None:
        """A stage's part of the body, for vector `u` of each row in flight."""
        crosses: dict[int, list[Value]] = {r: [] for r in walk.stage.crosses}
        for unit in walk.units:
            cell = column.inline(unit.axes)
            cell.values.update(unit.scope.values)
            if self.ahead is not None and self.ahead.stage == walk.number:
                self.ahead.fetch(self.nest, self.emitter.addresses, cell, u * self.lanes)
            self.kept.reload(cell, unit, walk.number)
            for r in walk.stage.reduces:
                walk.sums.step(cell, r, unit.number, u)
            for k in walk.stage.stores:
                self.emitter.store(self.nest.stores[k], cell)
            if self.crossing is not None:
                for r, values in crosses.items():
                    values.append(self.crossing.argument(cell, r))
            self.kept.save(cell, unit, walk.number)
        if self.crossing is not None:
            for r, values in crosses.items():
                self.crossing.take(column, r, values)

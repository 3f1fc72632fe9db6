"""Rows by stages that lag behind each other: one walk does each stage for another row.

    for row: maximum; exponentials and sum; quotients
    ->  for row: maximum of the row, exponentials of the one before, quotients of the third last

A stage begins with what the one before has reduced, which a whole row of vectors has to come
through first; here only the next row asks for it. Loads, stores and arithmetic of three stages
also share the processor better than one stage after the other (software pipelining, Lam 1988).
Each thread goes through its first and last rows in some stages twice: rows before the first are
taken for the first, rows behind the last for the last.
"""

from __future__ import annotations

from kernel_gen.codegen.cpu.frame import Part, unravelled
from kernel_gen.codegen.cpu.reductions.rowconfig import RowUnit
from kernel_gen.codegen.cpu.reductions.rows import RowEmitter
from kernel_gen.codegen.cpu.statements.scope import Scope
from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.codegen.flat.linear import FlatNest
from kernel_gen.codegen.flat.phases import Phase, closure, reductions
from kernel_gen.ir.loopnest import Contract, Reduce


def skewable(nest: FlatNest, phase: Phase) -> bool:
    """Whether several stages of many rows can lag. What stands in for results that are not there
    yet must do no harm: floats do none, positions in memory and divisors of integers might."""
    stops = reductions(nest)
    if len(phase.stages) < 2 or not phase.outer or not phase.inner or phase.crosses:
        return False
    if any(not nest.statements[r].dtype.is_float for r in stops):
        return False
    places = [term.statement for load in nest.loads() for term in load.values]
    return not closure(nest, places) & frozenset(stops)


def emit_skewed(rows: RowEmitter, root: Scope) -> None:
    """The phase's loop over this thread's rows, one in flight for each stage."""
    nest, stages = rows.nest, rows.phase.stages
    t, depth = rows.emitter.fresh("t"), len(stages)
    parts = [Part(a, nest.extent_text(a)) for a in rows.phase.outer]
    total = " * ".join(f"(gaf_i64)({p.count})" for p in parts)
    root.add(f"const gaf_i64 {t}n = {total};")
    root.add(f"const gaf_i64 {t}a = {t}n * tid / nt, {t}b = {t}n * (tid + 1) / nt;")
    carried = _Carried(rows, root)
    loop = root.open(f"for (gaf_i64 {t} = {t}a; {t}a < {t}b && {t} < {t}b + {depth - 1}; {t}++) {{")
    walks = []
    for number, stage in enumerate(stages):
        row, last = f"{t}s{number}", f"{t}b - 1"
        here = f"{t} - {number}"
        loop.add(f"const gaf_i64 {row} = {here} < {t}a ? {t}a : {here} > {last} ? {last} : {here};")
        axes = unravelled(loop, parts, row, f"{row}_")
        unit = RowUnit(axes, loop.inline(axes), 0, copy=f"(({t} + {depth - number}) % {depth})")
        carried.define(unit.scope, number)
        rows.prepare(unit, stage, number)
        walks.append(rows.stage_walk([unit], stage, number))
    rows.walk(loop, walks)
    for walk in walks:
        rows.row_stores(walk.units, walk.stage)
    carried.hand_on(loop, [walk.units[0].scope for walk in walks])
    loop.close()


class _Carried:
    """What is reduced in a stage, in a variable of its own for each later stage."""

    def __init__(self, rows: RowEmitter, root: Scope) -> None:
        self.rows = rows
        self.made = {r: k for k, stage in enumerate(rows.phase.stages) for r in stage.reduces}
        for r, first in self.made.items():
            kind = rows.emitter.ops.c_type(self._statement(r).dtype, False)
            for number in range(first + 1, len(rows.phase.stages)):
                root.add(f"{kind} {self._name(r, number)} = 0;")

    def _statement(self, r: int) -> Reduce | Contract:
        statement = self.rows.nest.statements[r]
        assert isinstance(statement, Reduce | Contract)
        return statement

    def _name(self, r: int, number: int) -> str:
        return f"c{r}_{number}"

    def define(self, scope: Scope, number: int) -> None:
        """What earlier stages have found for the row of stage `number`."""
        for r, first in self.made.items():
            if first < number:
                value = Value(self._name(r, number), self._statement(r).dtype, False)
                scope.define(r, value)

    def hand_on(self, scope: Scope, rows: list[Scope]) -> None:
        """Each row goes on to the next stage, the last ones first."""
        for r, first in self.made.items():
            for number in range(len(rows) - 1, first, -1):
                found = rows[number - 1].find(r)
                assert found is not None
                scope.add(f"{self._name(r, number)} = {found.text};")

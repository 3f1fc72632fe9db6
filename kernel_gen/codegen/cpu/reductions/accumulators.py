"""The accumulator variables of one stage: for each reduction, row in flight and unrolled vector."""

from __future__ import annotations

import math

from kernel_gen.codegen.cpu.reductions.accumulate import Accumulator
from kernel_gen.codegen.cpu.reductions.moment import Moment
from kernel_gen.codegen.cpu.scratch import Scratch
from kernel_gen.codegen.cpu.statements.emit import Emitter
from kernel_gen.codegen.cpu.statements.scope import Scope
from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C, vector_type
from kernel_gen.codegen.flat.moments import MOMENT
from kernel_gen.codegen.flat.phases import Stage
from kernel_gen.errors import InternalError
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Contract, Reduce


class StageAccumulators:
    """Variables are named a<reduction>_<unit>_<column>, flushed ones w…, folded ones f…."""

    def __init__(
        self,
        emitter: Emitter,
        stage: Stage,
        units: int,
        columns: int,
        walk: tuple[str, ...],
        *,
        fold: bool,
        vector: bool,
    ) -> None:
        """`walk`: the order of the loops over reduced axes."""
        self.emitter = emitter
        self.ops = emitter.ops
        self.stage = stage
        self.units = units
        self.columns = columns
        self.fold = fold  # lanes are parts of one row: they fold into a scalar at the end
        self.vector = vector
        self._walk = walk
        self.kinds = {r: self._kind(r) for r in stage.reduces}
        self._prefix = "a"

    def _kind(self, r: int) -> Accumulator:
        statement = self._statement(r)
        if isinstance(statement, Reduce) and statement.op == MOMENT:
            return Moment(MOMENT, statement.dtype.compute, statement.dtype)
        arg = self.emitter.nest.statements[
            statement.arg if isinstance(statement, Reduce) else statement.lhs
        ]
        extents = [self.emitter.nest.extent(a) for a in statement.axes]
        known = [e for e in extents if isinstance(e, int)]
        ordered = tuple(a for a in self._walk if a in statement.axes) == statement.axes
        return Accumulator.of(
            statement,
            arg.dtype,
            math.prod(known) if len(known) == len(extents) else None,
            ordered=ordered,
        )

    def _statement(self, r: int) -> Reduce | Contract:
        statement = self.emitter.nest.statements[r]
        if not isinstance(statement, Reduce | Contract):
            raise InternalError(f"statement {r} does not reduce")
        return statement

    @property
    def needs_flush(self) -> bool:
        return any(kind.compensates for kind in self.kinds.values())

    @property
    def begins_small(self) -> bool:
        """Whether the first block of a long accumulation is a short one."""
        return any(isinstance(kind, Moment) for kind in self.kinds.values())

    def _all(self) -> list[tuple[int, int, int]]:
        return [
            (r, n, c)
            for r in self.stage.reduces
            for n in range(self.units)
            for c in range(self.columns)
        ]

    def declare(self, scope: Scope) -> None:
        """Accumulators at their start values."""
        for r, n, c in self._all():
            scope.add(self.kinds[r].declare(self.ops, f"a{r}_{n}_{c}", self.vector))

    def open_block(self, scope: Scope) -> None:
        """Fresh accumulators for one block of a long sum."""
        for r, n, c in self._all():
            scope.add(self.kinds[r].declare(self.ops, f"w{r}_{n}_{c}", self.vector))
            for line in self.kinds[r].begin(f"w{r}_{n}_{c}", f"a{r}_{n}_{c}"):
                scope.add(line)
        self._prefix = "w"

    def close_block(self, scope: Scope) -> None:
        """The block's accumulators go into the outer ones."""
        for r, n, c in self._all():
            line = self.kinds[r].merge(self.ops, f"a{r}_{n}_{c}", f"w{r}_{n}_{c}", self.vector)
            scope.add(line)
        self._prefix = "a"

    def step(self, cell: Scope, r: int, unit: int, column: int) -> None:
        """Takes in the reduced value at the cell's point; dead lanes of a tail count nothing."""
        kind, statement = self.kinds[r], self._statement(r)
        name = f"{self._prefix}{r}_{unit}_{column}"
        value = self._argument(cell, statement, kind)
        position = self._position(cell, statement, kind.places) if kind.is_arg else ""
        live = cell.live_lanes()
        if live is not None and self.fold:
            mask = Value(self.emitter.live_mask(live), DType.BOOL, True)
            text, position = kind.alive(self.ops, name, value, position, mask)
            value = Value(text, kind.value, self.vector)
        cell.add(kind.step(self.ops, name, value.text, position, self.vector))

    def _argument(self, cell: Scope, statement: Reduce | Contract, kind: Accumulator) -> Value:
        if isinstance(statement, Contract):
            pair = [self._converted(cell, s, kind.value) for s in (statement.lhs, statement.rhs)]
            text = f"({self.ops.compute('mul', kind.value, pair)})"
            value = Value(text, kind.value, any(v.vector for v in pair))
        else:
            value = self._converted(cell, statement.arg, kind.value)
        return self.ops.broadcast(value) if self.vector else value

    def _converted(self, cell: Scope, s: int, dtype: DType) -> Value:
        value = self.emitter.value(s, cell)
        return Value(self.ops.cast(value, dtype), dtype, value.vector)

    def _position(self, cell: Scope, statement: Reduce | Contract, place: DType) -> str:
        """Flattened position of the cell along the reduced axes, in their order."""
        text = "0"
        varies = None
        for axis in statement.axes:
            binding = cell.binding(axis)
            if binding is None:
                raise InternalError(f"axis {axis} is not bound here")
            text = f"({text} * {self.emitter.nest.extent_text(axis)} + {binding.text})"
            varies = axis if binding.vector else varies
        if not self.vector:
            return f"(gaf_i64){text}"
        kind = vector_type(self.emitter.unit, place, self.emitter.lanes.count)
        c = SCALAR_C[place]
        if varies is None:
            return f"({kind}{{}} + ({c}){text})"
        after = statement.axes[statement.axes.index(varies) + 1 :]
        stride = " * ".join(self.emitter.nest.extent_text(a) for a in after) or "1"
        lanes = ", ".join(str(i) for i in range(self.emitter.lanes.count))
        step = f" * ({c})({stride})" if after else ""
        return f"(({kind}){{{lanes}}}{step} + ({c}){text})"

    def finish(self, scope: Scope, r: int, unit: int) -> None:
        """Merges the unrolled accumulators and folds lanes that belong to one row."""
        kind = self.kinds[r]
        width = self.columns
        while width > 1:
            half = width // 2
            for c in range(half):
                one, other = f"a{r}_{unit}_{c}", f"a{r}_{unit}_{c + half}"
                scope.add(kind.merge(self.ops, one, other, self.vector))
            width = half
        if self.fold:
            scope.add(kind.fold(self.ops, f"a{r}_{unit}_0", f"f{r}_{unit}"))

    def _final(self, r: int, unit: int) -> tuple[str, bool]:
        if self.fold:
            return f"f{r}_{unit}", False
        return f"a{r}_{unit}_0", self.vector

    def result(self, scope: Scope, r: int, unit: int) -> Value:
        """The reduction's value, as a constant of `scope`."""
        name, vector = self._final(r, unit)
        dtype = self._statement(r).dtype
        text = self.kinds[r].result_text(self.ops, name, vector)
        return Value(self.emitter.declare(scope, dtype, text, vector=vector), dtype, vector)

    def share(self, scope: Scope, scratch: Scratch, label: str) -> None:
        """Threads have each reduced a part: all write theirs, wait, and combine in thread order.

        Two places in turn: a fast thread may be one row ahead of a slow one.
        """
        names = []
        for r in self.stage.reduces:
            for n in range(self.units):
                name, vector = self._final(r, n)
                for variable, dtype in self.kinds[r].variables(name, vector):
                    c = self.ops.c_type(dtype, vector)
                    size = 8 * (self.emitter.lanes.count if vector else 1)
                    at = scratch.private(f"{label}_{variable}", 2 * size)
                    scope.add(f"*({c} *)(mine + {at} + turn * {size}) = {variable};")
                    names.append((variable, c, f"{at} + turn * {size}"))
        scope.add("GAF_BARRIER")
        loop_lines = [f"const {c} o{v} = *(const {c} *)(theirs + {at});" for v, c, at in names]
        self._restart(scope)
        loop = scope.open("for (gaf_i64 p = 0; p < nt; p++) {")
        loop.add("const char *const theirs = privates + p * private_bytes;")
        loop.text += loop_lines
        for r in self.stage.reduces:
            for n in range(self.units):
                name, vector = self._final(r, n)
                loop.add(self.kinds[r].merge(self.ops, name, f"o{name}", vector))
        loop.close()
        scope.add("turn ^= 1;")

    def _restart(self, scope: Scope) -> None:
        for r in self.stage.reduces:
            for n in range(self.units):
                name, vector = self._final(r, n)
                for line in self.kinds[r].restart(self.ops, name, vector):
                    scope.add(line)

"""Reductions across rows: each thread keeps one accumulator per point of a row, in its scratch.

    c[j] += x[i, j] + x[i+1, j]      for each block of rows (two in flight), all j of a row
    total[j] += c[j]; c[j] = 0       every so many blocks, so that long float sums stay accurate
    out[j] = Σ total of all threads  when all rows are done

The input is read along its rows once, and the accumulators stay in the cache.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernel_gen.codegen.cpu.frame import Part, split_over_threads
from kernel_gen.codegen.cpu.reductions.accumulate import Accumulator
from kernel_gen.codegen.cpu.reductions.innerspace import InnerSpace
from kernel_gen.codegen.cpu.scratch import Scratch
from kernel_gen.codegen.cpu.statements.emit import Emitter
from kernel_gen.codegen.cpu.statements.scope import Scope
from kernel_gen.codegen.cpu.statements.value import Value
from kernel_gen.codegen.cpu.vectors.types import SCALAR_C
from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest
from kernel_gen.codegen.flat.moments import MOMENT
from kernel_gen.codegen.flat.phases import Phase, closure, reductions
from kernel_gen.errors import InternalError
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import Reduce

_PLAIN_BLOCKS = 64  # blocks of rows that need no second level
_FLUSH_BLOCKS = 512  # the most blocks between two flushes

"""Where a cell lies in the padded row, and how many elements that has."""


def crossable(nest: FlatNest) -> frozenset[int]:
    """Reductions over whole rows of contiguous elements, which are kept."""
    live = nest.statement_axes()
    found = set()
    for r, s in enumerate(nest.statements):
        if not isinstance(s, Reduce) or s.dtype is DType.BOOL:
            continue
        if s.op.startswith("arg") or s.op == MOMENT:  # several accumulators each
            continue
        kept = live[s.arg] - frozenset(s.axes)
        static = all(isinstance(nest.extent(a), int) for a in kept)
        read = _read(nest, s)
        if kept and static and _contiguous(read, kept) > _contiguous(read, frozenset(s.axes)):
            found.add(r)
    return frozenset(found)


def _read(nest: FlatNest, reduce: Reduce) -> list[FlatLoad]:
    """What a reduction reads in each of its steps: the loads of its operand that have most of its
    axes."""
    made = closure(nest, {reduce.arg}, frozenset(reductions(nest)))
    loads = [s for s in (nest.statements[n] for n in sorted(made)) if isinstance(s, FlatLoad)]
    most = max((len(load.at.axes()) for load in loads), default=0)
    return [load for load in loads if len(load.at.axes()) == most]


def _contiguous(loads: list[FlatLoad], axes: frozenset[str]) -> int:
    return max(sum(load.at.coeff(a).const == 1 for load in loads) for a in axes)


def crossing_bytes(nest: FlatNest, crossed: frozenset[int]) -> int:
    """Scratch of one thread for the accumulators of `crossed`."""
    live = nest.statement_axes()
    total = 0
    for r in crossed:
        extents = [nest.extent(a) for a in live[r]]
        total += 2 * 8 * math.prod(e for e in extents if isinstance(e, int))
    return total


@dataclass(frozen=True, slots=True)
class _Sum:
    """One reduction: its kind, and the offsets of its two levels in the thread's scratch."""

    statement: int
    kind: Accumulator
    near: int
    far: int


class Crossing:
    """The accumulators of one phase's crosses."""

    def __init__(self, emitter: Emitter, phase: Phase, scratch: Scratch, label: str, *,
                 space: InnerSpace, vector: bool, units: int) -> None:  # fmt: skip
        """`units`: rows in flight."""
        self._emitter = emitter
        self._phase = phase
        self._space = space
        self._vector = vector
        self._label = label
        self._blocks = self._flush_blocks(units)
        self._sums = {r: self._sum(r, scratch) for r in phase.crosses}

    def _sum(self, r: int, scratch: Scratch) -> _Sum:
        statement = self._emitter.nest.statements[r]
        if not isinstance(statement, Reduce):
            raise InternalError(f"statement {r} does not reduce")
        kind = Accumulator.of(statement, self._emitter.nest.statements[statement.arg].dtype)
        nbytes = self._space.elems * kind.value.bytes
        near = scratch.private(f"{self._label}_near{r}", nbytes)
        two = self._blocks is not None and kind.compensates
        return _Sum(
            r, kind, near, scratch.private(f"{self._label}_far{r}", nbytes) if two else near
        )

    def _flush_blocks(self, units: int) -> int | None:
        """Blocks of rows between two flushes; None where there are few."""
        extents = [self._emitter.nest.extent(a) for a in self._phase.outer]
        rows = math.prod(e if isinstance(e, int) else 1 << 20 for e in extents)
        blocks = rows // units
        return None if blocks <= _PLAIN_BLOCKS else min(math.isqrt(blocks), _FLUSH_BLOCKS)

    @property
    def _flushed(self) -> list[_Sum]:
        return [s for s in self._sums.values() if s.far != s.near]

    def _pointer(self, s: _Sum, offset: int) -> str:
        return f"(({SCALAR_C[s.kind.value]} *)(mine + {offset}))"

    def start(self, scope: Scope) -> None:
        """All accumulators at their start values, before the first row."""
        for s in self._sums.values():
            start = s.kind.identity(self._emitter.ops, vector=False)
            for offset in dict.fromkeys((s.near, s.far)):
                self._each(scope, f"{self._pointer(s, offset)}[e] = {start};")
        if self._flushed:
            scope.add(f"gaf_i64 {self._label}_blocks = 0;")

    def _each(self, scope: Scope, line: str) -> None:
        scope.add(f"for (gaf_i64 e = 0; e < {self._space.elems}; e++) {line}")

    def take(self, cell: Scope, r: int, values: list[Value]) -> None:
        """Takes in the values of all rows in flight at one point (or vector of points)."""
        s, ops = self._sums[r], self._emitter.ops
        total = values[0]
        for value in values[1:]:
            text = self._emitter.declare(
                cell, total.dtype, s.kind.combined(ops, total, value), vector=self._vector
            )
            total = Value(text, total.dtype, self._vector)
        kind = ops.c_type(s.kind.value, self._vector) + ("u" if self._vector else "")
        name = self._emitter.fresh("p")
        place = f"{self._pointer(s, s.near)} + {self._space.position(cell)}"
        cell.add(f"{kind} *const {name} = ({kind} *)({place});")
        held = Value(f"*{name}", total.dtype, self._vector)
        cell.add(f"*{name} = {s.kind.combined(ops, held, total)};")

    def argument(self, cell: Scope, r: int) -> Value:
        """The reduced value at the cell, in the dtype that accumulates."""
        statement, kind = self._emitter.nest.statements[r], self._sums[r].kind
        assert isinstance(statement, Reduce)
        value = self._emitter.value(statement.arg, cell)
        text = self._emitter.ops.cast(value, kind.value)
        cast = Value(text, kind.value, value.vector)
        return self._emitter.ops.broadcast(cast) if self._vector else cast

    def end_block(self, scope: Scope) -> None:
        """After each block of rows: flushes what has grown long."""
        if not self._flushed:
            return
        flush = scope.open(f"if (++{self._label}_blocks == {self._blocks}) {{")
        flush.add(f"{self._label}_blocks = 0;")
        self._flush(flush)
        flush.close()

    def _flush(self, scope: Scope) -> None:
        for s in self._flushed:
            near, far = self._pointer(s, s.near), self._pointer(s, s.far)
            self._each(scope, f"{{ {far}[e] += {near}[e]; {near}[e] = 0; }}")

    def finish(self, scope: Scope) -> None:
        """Waits for all rows, combines the threads' accumulators in order, and stores them."""
        self._flush(scope)
        scope.add("GAF_BARRIER")
        nest = self._emitter.nest
        parts = [Part(a, nest.extent_text(a)) for a in self._phase.inner]
        loop = split_over_threads(scope, parts, self._emitter.fresh("t"))
        at = self._space.position(loop)
        for stage in self._phase.stages:
            for r, k in zip(stage.crosses, stage.cross_stores, strict=True):
                self._combine(loop, self._sums[r], at)
                self._emitter.store(nest.stores[k], loop)
        loop.close()

    def _combine(self, loop: Scope, s: _Sum, at: str) -> None:
        ops, name = self._emitter.ops, f"f{s.statement}"
        c = SCALAR_C[s.kind.value]
        loop.add(s.kind.declare(ops, name, vector=False))
        total = Value(name, s.kind.value, False)
        other = Value(f"(({c} *)(privates + p * private_bytes + {s.far}))[{at}]", s.kind.value,
                      False)  # fmt: skip
        loop.add(f"for (gaf_i64 p = 0; p < nt; p++) {name} = {s.kind.combined(ops, total, other)};")
        dtype = self._emitter.nest.statements[s.statement].dtype
        loop.define(s.statement, Value(s.kind.result_text(ops, name, False), dtype, False))

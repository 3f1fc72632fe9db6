"""Results that pass from one phase to later ones, through memory that all threads share.

Each such reduction becomes a store into an extra buffer of the nest in the phase that computes it,
and a load from it in the phases after:

    phase 0:  5 reduce sum 4 over i1;  store t[i0] = 5
    phase 1:  5 load t[i0]; …
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, FlatStore, linearise
from kernel_gen.codegen.flat.phases import Phase, plan_phases
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import axis_index
from kernel_gen.ir.loopnest import Buffer, BufferRole, Contract, Reduce
from kernel_gen.ir.types import TensorType


@dataclass(frozen=True, slots=True)
class StagedPhase:
    """A phase with the nest as it sees it."""

    nest: FlatNest
    phase: Phase


@dataclass(frozen=True, slots=True)
class StagedPlan:
    """Phases in order; `extra` are the buffers added behind the nest's own."""

    phases: tuple[StagedPhase, ...]
    extra: tuple[Buffer, ...]


def staged_plan(nest: FlatNest, crossed: frozenset[int] = frozenset()) -> StagedPlan:
    """The phases of a nest, each with loads and stores for what passes between them."""
    phases = plan_phases(nest, crossed)
    live = nest.statement_axes()
    buffers = list(nest.buffers)
    loads: dict[int, FlatLoad] = {}
    stores: dict[int, FlatStore] = {}
    for phase in phases:
        for r in phase.shared:
            statement = nest.statements[r]
            assert isinstance(statement, Reduce | Contract)
            axes = tuple(a for a in nest.axes if a.name in live[r])
            kind = TensorType(_memory_type(statement.dtype), tuple(a.extent for a in axes))
            at = linearise(kind, tuple(axis_index(a.name) for a in axes))
            loads[r] = FlatLoad(len(buffers), at, statement.dtype)
            stores[r] = FlatStore(len(buffers), at, r)
            buffers.append(Buffer(kind, BufferRole.OUTPUT))
    staged = []
    seen: set[int] = set()
    for phase in phases:
        staged.append(_staged(nest, phase, buffers, loads, stores, seen))
        seen |= set(phase.shared)
    return StagedPlan(tuple(staged), tuple(buffers[len(nest.buffers) :]))


def _memory_type(dtype: DType) -> DType:
    """Results keep the precision in which they were accumulated."""
    return dtype if dtype is DType.BOOL else dtype.compute


def _staged(
    nest: FlatNest,
    phase: Phase,
    buffers: list[Buffer],
    loads: dict[int, FlatLoad],
    stores: dict[int, FlatStore],
    seen: set[int],
) -> StagedPhase:
    statements = tuple(loads[i] if i in seen else s for i, s in enumerate(nest.statements))
    extra = {r: len(nest.stores) + k for k, r in enumerate(phase.shared)}
    seen_nest = replace(
        nest,
        buffers=tuple(buffers),
        statements=statements,
        stores=(*nest.stores, *(stores[r] for r in phase.shared)),
    )
    stages = tuple(
        replace(
            s,
            row_stores=(*s.row_stores, *(extra[r] for r in s.reduces if r in extra)),
            cross_stores=tuple(extra[r] for r in s.crosses if r in extra),
        )
        for s in phase.stages
    )
    return StagedPhase(seen_nest, replace(phase, stages=stages))

"""Reductions shared by several cores: each sums a part, then the parts are summed.

    s = sum x over r          part[p] = sum x over r in part p     (core p)
                              s = sum part over p

The number of parts is the extent of a further axis that the tiling function decides per shape.
Taken where one phase has too few rows for the cores and nothing of it is stored but results of
rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kernel_gen.codegen.flat.linear import (
    FlatLoad,
    FlatNest,
    FlatStatement,
    FlatStore,
    Linear,
    Poly,
)
from kernel_gen.codegen.flat.linear import product as product_of
from kernel_gen.codegen.flat.phases import Phase, Stage, closure, plan_phases
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.index import AxisTerm
from kernel_gen.ir.loopnest import Axis, Buffer, BufferRole, Compute, Reduce
from kernel_gen.ir.renumber import renumbered, renumbered_guards, renumbered_term
from kernel_gen.ir.types import Sym, TensorType

PART = Axis("part", Sym("s9999"))
"""The axis of parts; its extent is in the tiling data."""


@dataclass(frozen=True, slots=True)
class SplitReduce:
    """`partial` with its only phase stores the parts to the buffers from `first` on, `final` reads
    them. Both have these buffers after the nest's own."""

    partial: FlatNest
    phase: Phase
    final: FlatNest
    first: int


def split_reduce(nest: FlatNest) -> SplitReduce | None:
    """The two nests, or None where the nest is not a single stage of plain reductions."""
    phases = plan_phases(nest)
    head = phases[0]
    if len(phases) != 1 or len(head.stages) != 1 or not head.inner:
        return None
    stage = head.stages[0]
    if stage.stores or not stage.reduces:
        return None
    buffers, stores, loads = list(nest.buffers), [], {}
    for r in stage.reduces:
        s = nest.statements[r]
        assert isinstance(s, Reduce)
        axes = (PART, *(a for a in nest.axes if a.name in nest.statement_axes()[r]))
        terms = [
            (AxisTerm(a.name), product_of(x.extent for x in axes[i + 1 :]))
            for i, a in enumerate(axes)
        ]
        at = Linear(tuple(terms))
        held = DType.F32 if s.dtype.is_float else DType.I32
        kind = TensorType(held, tuple(a.extent for a in axes))
        stores.append(FlatStore(len(buffers), at, r))
        loads[r] = FlatLoad(len(buffers), at, s.dtype)
        buffers.append(Buffer(kind, BufferRole.OUTPUT))
    whole = replace(nest, axes=(PART, *nest.axes), buffers=tuple(buffers))
    partial = replace(whole, stores=tuple(stores))
    phase = Phase(
        (PART.name, *head.outer),
        head.inner,
        (Stage(stage.reduces, (), tuple(range(len(stores)))),),
    )
    return SplitReduce(partial, phase, _final(whole, loads), len(nest.buffers))


def _final(nest: FlatNest, loads: dict[int, FlatLoad]) -> FlatNest:
    """The nest whose reductions read parts; loads of parts come first."""
    by = len(loads)
    statements: list[FlatStatement] = list(loads.values())
    for number, s in enumerate(nest.statements):
        if number in loads:
            assert isinstance(s, Reduce)
            place = list(loads).index(number)
            statements.append(replace(s, arg=place, axes=(PART.name,)))
        else:
            statements.append(_moved(s, by))
    stores = tuple(replace(s, statement=s.statement + by) for s in nest.stores)
    made = replace(nest, statements=tuple(statements), stores=stores)
    kept = closure(made, [s.statement for s in stores], frozenset())
    live = made.statement_axes()
    used = {a for n in kept for a in live[n]} | {PART.name}
    used |= {a for s in stores for a in s.at.axes()}
    nothing = Compute("const", (), nest.statements[0].dtype, (("value", 0),))
    return replace(
        made,
        axes=tuple(a for a in made.axes if a.name in used),
        statements=tuple(s if i in kept else nothing for i, s in enumerate(made.statements)),
    )


def parts_bytes(kind: TensorType, cores: int) -> Poly:
    """Bytes of a tensor of parts, for as many parts as there are cores."""
    return product_of(kind.shape[1:]) * cores * 4


def _moved(statement: FlatStatement, by: int) -> FlatStatement:
    """A flat statement whose operands are `by` places further on."""
    place = _Shift(by)
    if isinstance(statement, FlatLoad):
        terms = tuple((renumbered_term(t, place), c) for t, c in statement.at.terms)
        return replace(
            statement,
            at=Linear(terms, statement.at.const),
            guards=renumbered_guards(statement.guards, place),
        )
    return renumbered(statement, place)


class _Shift(dict[int, int]):
    """Numbers of statements `by` further on."""

    def __init__(self, by: int) -> None:
        super().__init__()
        self._by = by

    def __missing__(self, number: int) -> int:
        return number + self._by

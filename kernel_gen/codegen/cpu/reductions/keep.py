"""Which element values of a row are kept in scratch for later stages, and where.

Stages of one row ask for the same values again: softmax needs `x·scale + mask` for the maximum and
for the exponential, and the exponential for the sum and for the quotient. A kept value costs one
store and one load per element, a recomputed one its whole expression.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, flat_operands
from kernel_gen.codegen.flat.phases import Phase, closure, reductions, stage_roots
from kernel_gen.ir.loopnest import Compute

POLICIES = ("none", "costly", "all")
"""Choices of the parameter "keep"."""

_CHEAP = frozenset(
    "add sub mul neg abs relu maximum minimum cast where eq ne lt le gt ge const".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Kept:
    """A value kept from stage `first` to stage `last`, in scratch slot `slot`."""

    statement: int
    first: int
    last: int
    slot: int


def kept_values(nest: FlatNest, phase: Phase, policy: str) -> tuple[Kept, ...]:
    """Values that `policy` keeps, with slots shared where lifetimes allow it."""
    if policy == "none" or len(phase.stages) < 2:
        return ()
    chosen: list[tuple[int, int, int]] = []
    for statement, first, last in _repeated(nest, phase):
        if policy == "all" or _is_costly(nest, statement):
            chosen.append((statement, first, last))
    return _with_slots(chosen)


def _repeated(nest: FlatNest, phase: Phase) -> list[tuple[int, int, int]]:
    """(statement, first stage, last stage) of values that a later stage starts from."""
    stops = frozenset(reductions(nest))
    live = nest.statement_axes()
    inner = frozenset(phase.inner)
    needed = []
    for stage in phase.stages:
        found = closure(nest, stage_roots(nest, stage), stops)
        needed.append({s for s in found if live[s] & inner and s not in stops})
    result: dict[int, tuple[int, int]] = {}
    for k in range(1, len(needed)):
        before = set().union(*needed[:k])
        starts = set(stage_roots(nest, phase.stages[k]))
        for s in needed[k] - before:
            starts |= set(flat_operands(nest.statements[s]))
        for s in starts & before & needed[k]:
            if not isinstance(nest.statements[s], FlatLoad):
                first = next(i for i in range(k) if s in needed[i])
                result[s] = (result.get(s, (first, k))[0], k)
    return [(s, first, last) for s, (first, last) in sorted(result.items())]


def is_cheap(op: str) -> bool:
    """Whether an operation is an instruction or two."""
    return op in _CHEAP


def _is_costly(nest: FlatNest, statement: int) -> bool:
    """Whether recomputing takes more than a few simple instructions."""
    ops = [nest.statements[s] for s in closure(nest, [statement], frozenset(reductions(nest)))]
    return any(isinstance(s, Compute) and not is_cheap(s.op) for s in ops)


def _with_slots(chosen: list[tuple[int, int, int]]) -> tuple[Kept, ...]:
    """A value may take the slot of one whose last stage is its first: it is read before."""
    free_from: list[int] = []  # per slot, the stage from which it may be written again
    kept = []
    for statement, first, last in sorted(chosen, key=lambda c: c[1]):
        slot = next((i for i, stage in enumerate(free_from) if stage <= first), len(free_from))
        if slot == len(free_from):
            free_from.append(last)
        free_from[slot] = last
        kept.append(Kept(statement, first, last, slot))
    return tuple(kept)

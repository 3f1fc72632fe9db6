"""How a nest without products walks through what it reduces.

Reductions over the same axes are made in one walk, each row in as many stages as they wait for each
other; reductions over other axes are another walk, unless columns are summed while rows are read.
What is stored is computed where the last of the rows that it needs is at hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kernel_gen.ir.loopnest import Load, LoopNest, Reduce, closure, operands


@dataclass(frozen=True, slots=True)
class Walk:
    """Rows along `axes` (none: elements), which are read in `stages` and once more for stores if
    `stores`. `reads` are the loads of the stages, `read_for_stores` those of the stores."""

    axes: frozenset[str]
    stages: int
    reads: frozenset[int]
    read_for_stores: frozenset[int] = frozenset()


def walks(nest: LoopNest, *, crosses: bool) -> tuple[Walk, ...]:
    """The walks in order; with `crosses`, all reductions are made in that of the first ones."""
    reduces = {n: s for n, s in enumerate(nest.statements) if isinstance(s, Reduce)}
    groups: dict[frozenset[str], list[int]] = {}
    for number, reduce in reduces.items():
        axes = next(iter(groups), frozenset(reduce.axes)) if crosses else frozenset(reduce.axes)
        groups.setdefault(axes, []).append(number)
    stored = _made_from(nest, (store.statement for store in nest.stores), reduces)
    last = next((axes for axes in reversed(groups) if stored.intersection(groups[axes])), None)
    found = list(_of_reductions(nest, groups, stored if last is not None else frozenset(), last))
    if last is None and (loads := _loads(nest, stored)):
        found.append(Walk(frozenset(), 1, loads))
    return tuple(found)


def _of_reductions(
    nest: LoopNest,
    groups: dict[frozenset[str], list[int]],
    stored: frozenset[int],
    last: frozenset[str] | None,
) -> Iterator[Walk]:
    everywhere = {number for group in groups.values() for number in group}
    for axes, group in groups.items():
        made = _made_from(nest, group, everywhere.difference(group))
        along = [n for n in group if frozenset(_reduced(nest, n)) == axes]
        for_stores = _loads(nest, stored) if axes == last else frozenset()
        yield Walk(axes, _stages(nest, along), _loads(nest, made), for_stores)


def _made_from(nest: LoopNest, roots: Iterable[int], stop: Iterable[int]) -> frozenset[int]:
    return closure(roots, lambda n: operands(nest.statements[n]), frozenset(stop))


def _loads(nest: LoopNest, numbers: Iterable[int]) -> frozenset[int]:
    return frozenset(n for n in numbers if isinstance(nest.statements[n], Load))


def _reduced(nest: LoopNest, number: int) -> tuple[str, ...]:
    statement = nest.statements[number]
    assert isinstance(statement, Reduce)
    return statement.axes


def _stages(nest: LoopNest, group: Iterable[int]) -> int:
    """The most of these reductions that wait for each other."""
    counted = frozenset(group)
    depth = [0] * len(nest.statements)
    for number, statement in enumerate(nest.statements):
        before = max((depth[used] for used in operands(statement)), default=0)
        depth[number] = before + (number in counted)
    return max(depth, default=0)

"""Which axis of a phase lies along the rows of a tile, which across, and which are looped over.

A tile has `rows` x `cols` elements: the *column axis* is the one that memory runs along, the *row
axis* a second one. Other outer axes, and the tiles of these two where they are not summed over, are
tasks that cores share; other inner axes are loops within a task.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.ascend.tiles.split_reduce import PART
from kernel_gen.codegen.flat.linear import FlatLoad, FlatNest, FlatStore
from kernel_gen.codegen.flat.phases import Phase, closure, reductions, stage_roots


@dataclass(frozen=True, slots=True)
class Roles:
    """The axes of a phase. `whole`: the inner ones lie in the tile entirely, so that nothing is
    read twice; else they are walked in steps, once per stage."""

    phase: Phase
    col: str
    row: str | None
    whole: bool

    @property
    def outer(self) -> tuple[str, ...]:
        """Task axes apart from tiles of rows and columns."""
        return tuple(a for a in self.phase.outer if a not in (self.row, self.col))

    @property
    def walked(self) -> tuple[str, ...]:
        """Inner axes that a stage loops over, the tile's last."""
        if self.whole:
            return ()
        others = [a for a in self.phase.inner if a not in (self.row, self.col)]
        return (*others, *(a for a in (self.row, self.col) if a in self.phase.inner))

    def is_inner(self, axis: str | None) -> bool:
        return axis in self.phase.inner


NO_COLUMN = ""
"""The column axis of tiles that are one element wide: outputs have no common contiguous axis."""


def extent_text(nest: FlatNest, axis: str) -> str:
    """C++ expression of an axis's extent."""
    return nest.extent_text(axis) if axis != NO_COLUMN else "1"


def phase_accesses(nest: FlatNest, phase: Phase) -> list[FlatLoad | FlatStore]:
    """The loads and stores that happen in a phase."""
    stops = frozenset(reductions(nest))
    found: set[int] = set()
    stores: list[FlatLoad | FlatStore] = []
    for stage in phase.stages:
        roots = stage_roots(nest, stage) + [nest.stores[k].statement for k in stage.row_stores]
        found |= closure(nest, roots, stops)
        stores += [nest.stores[k] for k in (*stage.stores, *stage.row_stores)]
    loads: list[FlatLoad | FlatStore] = [
        s for i, s in enumerate(nest.statements) if i in found and isinstance(s, FlatLoad)
    ]
    return loads + stores


def _order(nest: FlatNest, phase: Phase) -> list[str]:
    """Axes that may be a tile's, in the order of the nest."""
    axes = {a for a in phase.outer if a != PART.name} | set(phase.inner)
    return [a.name for a in nest.axes if a.name in axes]


def column_axes(nest: FlatNest, phase: Phase) -> list[str]:
    """Axes that may lie across a tile, best first: those that all stores run along, or that none
    needs, with most accesses of stride one. An access of whole tiles counts more than one of a row
    or a column of them."""
    accesses = phase_accesses(nest, phase)
    stores = [a for a in accesses if isinstance(a, FlatStore)]
    order = _order(nest, phase)
    if not order:
        return [NO_COLUMN]

    def unit(access: FlatLoad | FlatStore, axis: str) -> bool:
        return access.at.is_affine_in(axis) and access.at.coeff(axis).const == 1

    def fits(axis: str) -> bool:
        return all(unit(s, axis) for s in stores if axis in s.at.axes())

    def score(axis: str) -> tuple[int, int]:
        weight = sum(
            (3 if isinstance(a, FlatStore) else 2) * 4 ** len(a.at.axes())
            for a in accesses
            if unit(a, axis)
        )
        return weight, order.index(axis)

    return sorted((a for a in order if fits(a)), key=score, reverse=True) or [NO_COLUMN]


def row_axes(nest: FlatNest, phase: Phase, col: str) -> list[str]:
    """Axes that may lie along the rows, best first: those whose guards leave a rectangle of a tile,
    those that make stores of row vectors or transposed reads contiguous, the longest and last."""
    accesses = phase_accesses(nest, phase)
    order = [a for a in _order(nest, phase) if a != col]

    def slanted(access: FlatLoad | FlatStore, axis: str) -> bool:
        return any(g.index.coeff(axis) and g.index.coeff(col) for g in access.guards)

    def score(axis: str) -> tuple[int, int, int, int]:
        straight = -sum(slanted(a, axis) for a in accesses)
        alone = sum(
            a.at.is_affine_in(axis) and a.at.coeff(axis).const == 1 and axis in a.at.axes()
            for a in accesses
        )
        extent = nest.extent(axis)
        size = extent if isinstance(extent, int) else 1 << 20
        return straight, alone, min(size, 64), order.index(axis)

    return sorted(order, key=score, reverse=True)


def can_be_whole(nest: FlatNest, phase: Phase, row: str | None, col: str) -> bool:
    """Whether the inner axes can all lie in the tile."""
    return set(phase.inner) <= {row, col}

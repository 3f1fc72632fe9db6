"""Sharing axes: a reduction runs over an axis that its neighbours already have.

Lowering opens an axis of its own for a reduction unless a reader of the sum runs along it. A group
norm, which reshapes in between, then reads its rows twice, along different axes. Renaming them
makes the reads one statement, and a row kernel possible.
"""

from __future__ import annotations

from collections import Counter

from kernel_gen.fusion.draft import Draft, rewritten
from kernel_gen.ir.index import axis_index
from kernel_gen.ir.loopnest import Contract, Load, Reduce

Roles = Counter[tuple[int, int, int]]


def share_axes(draft: Draft) -> Draft:
    """Axes of reductions renamed to axes of equal extent that are read the same way."""
    waiting = [axis for s in draft.statements if isinstance(s, Reduce) for axis in s.axes]
    written = {axis for store in draft.stores for index in store.index for axis in index.axes()}
    for axis in dict.fromkeys(axis for axis in waiting if axis not in written):
        target = _best_target(draft, axis)
        if target is not None:
            extents = {name: e for name, e in draft.extents.items() if name != axis}
            draft = rewritten(draft, {axis: axis_index(target)}, extents)
    return draft


def _best_target(draft: Draft, axis: str) -> str | None:
    contracted = _contracted(draft)
    if axis in contracted or axis not in draft.extents:
        return None
    same, alike = _roles(draft, axis, named=True), _roles(draft, axis, named=False)
    best: tuple[tuple[int, int], str] | None = None
    for target in _possible(draft, axis):
        exact = (same & _roles(draft, target, named=True)).total()
        near = (alike & _roles(draft, target, named=False)).total()
        score = (exact, 0 if target in contracted else near)
        if score > (best[0] if best else (0, 0)):
            best = score, target
    return best[1] if best else None


def _contracted(draft: Draft) -> set[str]:
    return {axis for s in draft.statements if isinstance(s, Contract) for axis in s.axes}


def _possible(draft: Draft, axis: str) -> list[str]:
    """Axes of equal extent that no statement has together with `axis`."""
    taken = {axis}
    for statement, live in zip(draft.statements, draft.live, strict=True):
        if axis in live:
            taken |= live
        if isinstance(statement, Reduce | Contract) and axis in statement.axes:
            taken |= set(statement.axes) | live
    extent = draft.extents[axis]
    return [name for name, other in draft.extents.items() if other == extent and name not in taken]


def _roles(draft: Draft, axis: str, *, named: bool) -> Roles:
    """How loads read along `axis`: (buffer, or -1 for any; dimension from the right; stride)."""
    roles: Roles = Counter()
    for statement in draft.statements:
        if isinstance(statement, Load):
            for place, index in enumerate(reversed(statement.index)):
                coeff = index.coeff(axis)
                if coeff:
                    roles[statement.buffer if named else -1, place, coeff] += 1
    return roles

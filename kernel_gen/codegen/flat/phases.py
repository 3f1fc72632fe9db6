"""Planning of loops for nests with reductions: phases of rows, rows of stages.

A *phase* walks its outer axes; for each point of them (a *row*) its stages run one after another
over the inner axes, the ones that the phase's reductions drop. Softmax over i1 is one phase:

    for i0:                          phase (outer i0, inner i1)
        for i1: m = amax             stage 0
        for i1: s = sum(exp(x - m))  stage 1
        for i1: out = exp(x - m)/s   stage 2

Reductions over other axes that depend on each other become several phases with a barrier between;
their results pass through memory that all threads share.

With `cross`, a reduction that keeps the contiguous axis is taken in while rows along that axis are
walked: column sums then share one read of the input with row sums, and with each other.

    for i0:                          phase (outer i0, inner i1)
        for i1: r = sum; c[i1] += x  stage 0: reduces r, crosses c
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gen.codegen.flat.linear import FlatNest, FlatStore, flat_operands
from kernel_gen.ir.loopnest import Contract, Reduce


@dataclass(frozen=True, slots=True)
class Stage:
    """One walk over the inner axes: statements reduced, and stores written, in it.

    `row_stores` have no inner axis; they are written after the walk. `crosses` are reductions over
    the phase's outer axes, which accumulate at each point of the inner ones; `cross_stores` write
    them when all rows are done.
    """

    reduces: tuple[int, ...] = ()
    stores: tuple[int, ...] = ()
    row_stores: tuple[int, ...] = ()
    crosses: tuple[int, ...] = ()
    cross_stores: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Phase:
    """Rows over `outer`, stages over `inner` (both in the order of the nest's axes).

    `shared` are the reductions whose results later phases read.
    """

    outer: tuple[str, ...]
    inner: tuple[str, ...]
    stages: tuple[Stage, ...]
    shared: tuple[int, ...] = ()

    @property
    def crosses(self) -> tuple[int, ...]:
        """Reductions over the outer axes."""
        return tuple(r for stage in self.stages for r in stage.crosses)


@dataclass(slots=True)
class _Draft:
    inner: frozenset[str]
    outer: frozenset[str]
    reduces: dict[int, int] = field(default_factory=dict)  # statement -> stage
    stores: dict[int, int] = field(default_factory=dict)
    row_stores: dict[int, int] = field(default_factory=dict)
    crosses: dict[int, int] = field(default_factory=dict)

    def depth_after(self, needs: frozenset[int]) -> int:
        """The first stage in which results of this draft's own rows are known."""
        return 1 + max((self.reduces[d] for d in needs if d in self.reduces), default=-1)


def reductions(nest: FlatNest) -> tuple[int, ...]:
    """Positions of the statements that drop axes."""
    return tuple(i for i, s in enumerate(nest.statements) if isinstance(s, Reduce | Contract))


def closure(nest: FlatNest, roots: list[int], stop: frozenset[int]) -> frozenset[int]:
    """Statements that `roots` need, themselves included; nothing beyond those in `stop`."""
    found: set[int] = set()
    todo = list(roots)
    while todo:
        statement = todo.pop()
        if statement not in found:
            found.add(statement)
            if statement not in stop:
                todo += flat_operands(nest.statements[statement])
    return frozenset(found)


def stage_roots(nest: FlatNest, stage: Stage) -> list[int]:
    """Statements whose values a stage's walk asks for."""
    roots: list[int] = []
    for r in (*stage.reduces, *stage.crosses):
        roots += flat_operands(nest.statements[r])
    for k in stage.stores:
        roots += store_operands(nest.stores[k])
    return roots


def store_operands(store: FlatStore) -> list[int]:
    """The stored statement and those its index reads."""
    guarded = (g.index.statements() for g in store.guards)
    return [store.statement, *sorted(store.at.statements().union(*guarded))]


def store_axes(nest: FlatNest, position: int) -> frozenset[str]:
    """Axes a store runs over."""
    store = nest.stores[position]
    live = nest.statement_axes()
    axes = store.at.axes().union(*(g.index.axes() for g in store.guards))
    return axes.union(*(live[s] for s in store_operands(store)))


def plan_phases(nest: FlatNest, crossed: frozenset[int] = frozenset()) -> tuple[Phase, ...]:
    """Phases in execution order that compute every store of the nest; the reductions in `crossed`
    are taken in while other rows are walked."""
    live = nest.statement_axes()
    drafts: list[_Draft] = []
    at: dict[int, int] = {}
    stops = frozenset(reductions(nest))
    for r in sorted(stops):
        _place_reduction(nest, r, drafts, at, stops, live, crossed=r in crossed)
    for k in range(len(nest.stores)):
        _place_store(nest, k, drafts, at, stops)
    return tuple(_finished(nest, drafts, i, at) for i in range(len(drafts)))


def _needs(nest: FlatNest, roots: list[int], stops: frozenset[int]) -> frozenset[int]:
    return closure(nest, roots, stops) & stops


def _place_reduction(
    nest: FlatNest,
    r: int,
    drafts: list[_Draft],
    at: dict[int, int],
    stops: frozenset[int],
    live: tuple[frozenset[str], ...],
    *,
    crossed: bool,
) -> None:
    statement = nest.statements[r]
    assert isinstance(statement, Reduce | Contract)
    operands = list(flat_operands(statement))
    needs = _needs(nest, operands, stops)
    inner = frozenset(statement.axes)
    outer = frozenset().union(*(live[s] for s in operands)) - inner
    if crossed:
        inner, outer = outer, inner

    def after(d: int) -> int:
        """The first draft that may read reduction `d`: its own if that walks the same rows."""
        draft = drafts[at[d]]
        same = (draft.inner, draft.outer) == (inner, outer) and d in draft.reduces
        return at[d] + (not same)

    low = max(map(after, needs), default=0)
    fits = [d.inner == inner and d.outer == outer for d in drafts]
    place = next((i for i in range(low, len(drafts)) if fits[i]), len(drafts))
    if place == len(drafts):
        drafts.append(_Draft(inner, outer))
    draft = drafts[place]
    (draft.crosses if crossed else draft.reduces)[r] = draft.depth_after(needs)
    at[r] = place


def _place_store(
    nest: FlatNest, k: int, drafts: list[_Draft], at: dict[int, int], stops: frozenset[int]
) -> None:
    axes = store_axes(nest, k)
    needs = _needs(nest, store_operands(nest.stores[k]), stops)
    low = max((at[d] + (d in drafts[at[d]].crosses) for d in needs), default=0)
    for draft in drafts[low:]:
        in_row = not axes & draft.inner
        if axes - draft.inner == draft.outer and (in_row or draft.inner <= axes):
            depth = draft.depth_after(needs)
            if in_row and draft.inner:
                draft.row_stores[k] = max(depth - 1, 0)
            elif draft.inner:
                draft.stores[k] = depth
            else:
                draft.row_stores[k] = 0
            return
    drafts.append(_Draft(frozenset(), axes, row_stores={k: 0}))


def _finished(nest: FlatNest, drafts: list[_Draft], i: int, at: dict[int, int]) -> Phase:
    draft = drafts[i]
    parts = (draft.reduces, draft.stores, draft.row_stores, draft.crosses)
    depths = [depth for part in parts for depth in part.values()]
    stages = tuple(
        Stage(*(tuple(k for k, d in part.items() if d == depth) for part in parts))
        for depth in range(max(depths) + 1)
    )
    stops = frozenset(reductions(nest))
    later: set[int] = set()
    for draft_after in drafts[i + 1 :]:
        stage = Stage(
            (*draft_after.reduces, *draft_after.crosses),
            (*draft_after.stores, *draft_after.row_stores),
        )
        later |= _needs(nest, stage_roots(nest, stage), stops)
    order = [a.name for a in nest.axes]
    return Phase(
        tuple(a for a in order if a in draft.outer),
        tuple(a for a in order if a in draft.inner),
        stages,
        tuple(r for r in (*draft.reduces, *draft.crosses) if r in later),
    )

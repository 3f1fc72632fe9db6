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

from collections.abc import Iterable
from dataclasses import dataclass, field

from kernel_gen.codegen.flat.linear import FlatNest, FlatStore, flat_operands
from kernel_gen.ir import loopnest
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


def closure(
    nest: FlatNest, roots: Iterable[int], stop: frozenset[int] = frozenset()
) -> frozenset[int]:
    """Statements that `roots` need, themselves included; nothing beyond those in `stop`."""
    return loopnest.closure(roots, lambda s: flat_operands(nest.statements[s]), stop)


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
    planner = _Planner(nest)
    for r in reductions(nest):
        planner.place_reduction(r, crossed=r in crossed)
    for k in range(len(nest.stores)):
        planner.place_store(k)
    return planner.phases()


class _Planner:
    """Drafts of phases in execution order. Each reduction and store goes into the first of them
    that walks its rows after whatever it reads is known."""

    def __init__(self, nest: FlatNest) -> None:
        self._nest = nest
        self._live = nest.statement_axes()
        self._stops = frozenset(reductions(nest))
        self._drafts: list[_Draft] = []
        self._at: dict[int, int] = {}  # reduction -> draft

    def _needs(self, roots: list[int]) -> frozenset[int]:
        """The reductions that statements read, themselves among them."""
        return closure(self._nest, roots, self._stops) & self._stops

    def place_reduction(self, r: int, *, crossed: bool) -> None:
        statement = self._nest.statements[r]
        assert isinstance(statement, Reduce | Contract)
        operands = list(flat_operands(statement))
        needs = self._needs(operands)
        inner = frozenset(statement.axes)
        outer = frozenset().union(*(self._live[s] for s in operands)) - inner
        if crossed:
            inner, outer = outer, inner
        low = max((self._readable(d, inner, outer) for d in needs), default=0)
        fits = [d.inner == inner and d.outer == outer for d in self._drafts]
        place = next((i for i in range(low, len(fits)) if fits[i]), len(fits))
        if place == len(fits):
            self._drafts.append(_Draft(inner, outer))
        draft = self._drafts[place]
        (draft.crosses if crossed else draft.reduces)[r] = draft.depth_after(needs)
        self._at[r] = place

    def _readable(self, r: int, inner: frozenset[str], outer: frozenset[str]) -> int:
        """The first draft that may read reduction `r`: its own if that walks the same rows."""
        draft = self._drafts[self._at[r]]
        same = (draft.inner, draft.outer) == (inner, outer) and r in draft.reduces
        return self._at[r] + (not same)

    def place_store(self, k: int) -> None:
        axes = store_axes(self._nest, k)
        needs = self._needs(store_operands(self._nest.stores[k]))
        after = (self._at[d] + (d in self._drafts[self._at[d]].crosses) for d in needs)
        for draft in self._drafts[max(after, default=0) :]:
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
        self._drafts.append(_Draft(frozenset(), axes, row_stores={k: 0}))

    def phases(self) -> tuple[Phase, ...]:
        return tuple(self._phase(i) for i in range(len(self._drafts)))

    def _phase(self, i: int) -> Phase:
        draft = self._drafts[i]
        parts = (draft.reduces, draft.stores, draft.row_stores, draft.crosses)
        depths = [depth for part in parts for depth in part.values()]
        stages = tuple(
            Stage(*(tuple(k for k, d in part.items() if d == depth) for part in parts))
            for depth in range(max(depths) + 1)
        )
        later = frozenset().union(*(self._read_by(after) for after in self._drafts[i + 1 :]))
        order = [a.name for a in self._nest.axes]
        return Phase(
            tuple(a for a in order if a in draft.outer),
            tuple(a for a in order if a in draft.inner),
            stages,
            tuple(r for r in (*draft.reduces, *draft.crosses) if r in later),
        )

    def _read_by(self, draft: _Draft) -> frozenset[int]:
        """The reductions whose results a draft reads, its own among them."""
        whole = Stage((*draft.reduces, *draft.crosses), (*draft.stores, *draft.row_stores))
        return self._needs(stage_roots(self._nest, whole))

"""Candidates: the groups of a program that a search may choose from.

Groups grow from each node along producers, consumers and siblings that read the same value; only
groups that lower and that some template takes are grown further. First the program is cut greedily
into groups as large as can be, and grown from its outputs; then all growths are tried breadth
first, up to the limits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from kernel_gen.errors import Refusal
from kernel_gen.fusion.dag import Dag, bits, mask_of
from kernel_gen.fusion.group import FrameworkGroup, FusionGroup
from kernel_gen.fusion.judge import Candidate, Judge
from kernel_gen.fusion.legality import (
    Accepts,
    is_attention,
    matrix_products,
    refuse_nodes,
)
from kernel_gen.fusion.library import library_groups
from kernel_gen.fusion.region import constant_nodes, make_group
from kernel_gen.fusion.siblings import sibling_masks
from kernel_gen.fusion.together import keep_together
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.ir.target import Target


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the enumeration: nodes in a group, groups, and distinct groups lowered.

    A program so long that its single nodes are half of `groups` gets `per_node` for each node.
    """

    nodes: int = 24
    groups: int = 2000
    per_node: int = 3
    lowered: int = 400

    def of(self, nodes: int) -> int:
        """Most groups of a program of so many nodes."""
        return self.groups if 2 * nodes <= self.groups else max(self.groups, self.per_node * nodes)


@dataclass(frozen=True, slots=True)
class RefusedGroup:
    """Nodes that may not share a kernel, and why."""

    nodes: tuple[int, ...]
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class Candidates:
    """All choices for a program.

    `groups` are kernels to generate, `library` what torch can run (every node, so that a cover
    always exists). `refusals` tell of single nodes and pairs. Nodes in `constant` run once, when a
    plan is bound, and are in no cover option.
    """

    groups: tuple[Candidate, ...]
    library: tuple[FrameworkGroup, ...]
    refusals: tuple[RefusedGroup, ...]
    constant: tuple[int, ...]

    def tasks(self) -> dict[str, LoopNest]:
        """Distinct nests by digest, in the order of `groups`."""
        return {candidate.task: candidate.lowered.nest for candidate in self.groups}


@dataclass(frozen=True, slots=True)
class Constraints:
    """What rules ask of groups: pairs of nodes kept apart or together, nodes left to torch."""

    apart: frozenset[frozenset[int]] = frozenset()
    together: frozenset[frozenset[int]] = frozenset()
    framework: frozenset[int] = frozenset()

    def refuse(self, program: Graph, nodes: tuple[int, ...]) -> Refusal | None:
        """What keeps these nodes from sharing a kernel, if a rule does."""
        chosen = frozenset(nodes)
        if chosen & self.framework:
            return Refusal("rule-framework", "a rule leaves this op to the framework")
        for pair in self.apart:
            if pair <= chosen:
                names = " and ".join(program.nodes[i].op for i in sorted(pair))
                return Refusal("rule-never-fuse", f"a rule keeps {names} apart")
        return None


def candidates(
    program: Graph,
    templates: tuple[Accepts, ...],
    target: Target,
    constraints: Constraints | None = None,
    numerics: str = "fast",
    limits: Limits | None = None,
    check_stop: Callable[[], None] = lambda: None,
) -> Candidates:
    """Every group worth considering, always with the single nodes that have a template.

    `check_stop` is called for each group that is judged; what it raises ends the enumeration.
    """
    search = _Growth(
        program,
        Judge(program, templates, target, numerics),
        constraints or Constraints(),
        limits or Limits(),
        check_stop,
    )
    search.run()
    return search.result()


class _Growth:
    def __init__(
        self,
        program: Graph,
        judge: Judge,
        constraints: Constraints,
        limits: Limits,
        check_stop: Callable[[], None],
    ) -> None:
        self._program = program
        self._judge = judge
        self._constraints = constraints
        self._limits = limits
        self._check_stop = check_stop
        self._dag = Dag(program)
        self._made_by = program.producers()
        self._constant = frozenset(constant_nodes(program))
        self._seen: dict[int, bool] = {}
        self._found: dict[FusionGroup, Candidate] = {}
        self._refusals: dict[tuple[int, ...], Refusal] = {}
        self._siblings = [self._close(n, mask) for n, mask in enumerate(sibling_masks(program))]
        results = {output.value for output in program.outputs}
        self._returned = mask_of(self._made_by[v] for v in results if v in self._made_by)
        self._absorbed = mask_of(filter(self._is_absorbed, range(len(program.nodes))))

    def _close(self, node: int, siblings: int) -> int:
        """Those siblings that may share a group with `node`: a constant that all layers read makes
        siblings of ops with whole layers between them."""
        room = self._limits.nodes - 2
        return mask_of(
            other for other in bits(siblings) if self._dag.between(node, other).bit_count() <= room
        )

    def run(self) -> None:
        """Finds groups until all are known or a limit is reached."""
        seeds = [i for i in range(len(self._program.nodes)) if i not in self._constant]
        singles = [self._completed(1 << i) for i in seeds]
        kept = [mask for mask in singles if self._try(mask)]
        reached = 0
        for mask in kept:
            if not mask & reached & ~self._absorbed:
                reached |= self._grow_greedily(mask, reached)
        for mask in kept:
            if mask & self._returned:
                self._grow_greedily(mask, 0)
        waiting = deque(mask for mask, good in self._seen.items() if good)
        while waiting and not self._spent():
            mask = waiting.popleft()
            for grown in self._growths(mask):
                if grown not in self._seen and not self._spent() and self._try(grown):
                    waiting.append(grown)

    def result(self) -> Candidates:
        groups = sorted(self._found.values(), key=lambda c: (c.group.nodes, c.group.outputs))
        by_group = {candidate.group: candidate for candidate in groups}
        refusals = tuple(RefusedGroup(n, r) for n, r in sorted(self._refusals.items()))
        library = library_groups(self._program, self._dag, self._constant, dict(self._refusals))
        kept = keep_together([*by_group, *library], self._constraints.together)
        return Candidates(
            tuple(by_group[g] for g in kept if isinstance(g, FusionGroup)),
            tuple(g for g in kept if isinstance(g, FrameworkGroup)),
            refusals,
            tuple(sorted(self._constant)),
        )

    def _spent(self) -> bool:
        limits = self._limits
        groups = limits.of(len(self._program.nodes))
        return len(self._found) >= groups or self._judge.judged >= limits.lowered

    def _grow_greedily(self, mask: int, reached: int) -> int:
        """Takes the first legal growth outside `reached` again and again; the largest group."""
        grown: int | None = mask
        closed = reached & ~self._absorbed
        while grown is not None and not self._spent():
            mask = grown
            free = (g for g in self._growths(mask) if not g & closed)
            grown = next((g for g in free if self._try(g)), None)
        return mask

    def _growths(self, mask: int) -> list[int]:
        """Completed groups that are one neighbour larger: producers and consumers first. A source
        that all layers read, such as a number, makes no neighbours."""
        near = self._dag.around(mask & ~self._absorbed) & ~mask
        side = 0
        for node in bits(mask):
            side |= self._siblings[node]
        order = [*bits(near), *bits(side & ~near & ~mask)]
        grown = [self._completed(mask | (1 << n)) for n in order if n not in self._constant]
        return list(dict.fromkeys(grown))

    def _completed(self, mask: int) -> int:
        """The mask made convex, with sources and views of constants that it reads; an attention
        also with views that it alone reads: else each set of them would be another group."""
        mask |= self._dag.closure(mask & ~self._absorbed)  # sources are made in each group anew
        if mask.bit_count() > self._limits.nodes:
            return mask  # refused as it is
        attention = self._is_attention(mask)
        waiting = list(bits(mask))
        while waiting:
            for producer in bits(self._dag.producers[waiting.pop()] & ~mask):
                own = attention and self._is_own_view(producer, mask)
                if own or self._is_absorbed(producer):
                    mask |= 1 << producer
                    waiting.append(producer)
        return mask

    def _is_attention(self, mask: int) -> bool:
        nodes = [self._program.nodes[node] for node in bits(mask)]
        return sum(map(matrix_products, nodes)) > 1 and is_attention(nodes)

    def _is_own_view(self, node: int, mask: int) -> bool:
        view = spec(self._program.nodes[node].op).kind is OpKind.VIEW
        return view and not self._dag.consumers[node] & ~mask and not self._returned >> node & 1

    def _is_absorbed(self, node: int) -> bool:
        kind = spec(self._program.nodes[node].op).kind
        return kind is OpKind.SOURCE or (kind is OpKind.VIEW and node in self._constant)

    def _try(self, mask: int) -> bool:
        """Judges a group once; records it with its variants, or its refusal."""
        if mask not in self._seen:
            self._check_stop()
            self._seen[mask] = self._judged(tuple(bits(mask)))
        return self._seen[mask]

    def _judged(self, nodes: tuple[int, ...]) -> bool:
        refusal = refuse_nodes(self._program, nodes, self._limits.nodes)
        refusal = refusal or self._constraints.refuse(self._program, nodes)
        if refusal is not None:
            return self._refuse(nodes, refusal)
        variants = self._variants(nodes)
        if len(variants[0].outputs) > 1 and self._only_views(nodes):
            return False  # copies of several views gain nothing from each other
        good = [group for group in variants if self._keep(group)]
        if not good:
            again = self._product_alone(variants[0])
            good = [again] if again is not None and self._keep(again) else []
        return bool(good)

    def _keep(self, group: FusionGroup) -> bool:
        """Whether the group is a candidate; records it, or its refusal."""
        answer = self._judge.judge(group)
        if isinstance(answer, Refusal):
            return self._refuse(group.nodes, answer)
        self._found[group] = answer
        return True

    def _product_alone(self, group: FusionGroup) -> FusionGroup | None:
        """The group without the results that stand before its product, such as a norm that others
        read, too: another group makes those, and this one computes them again."""
        after = mask_of(n for n in group.nodes if matrix_products(self._program.nodes[n]))
        if not after:
            return None
        for node in group.nodes:
            if self._dag.producers[node] & after:
                after |= 1 << node
        before = {v for v in group.outputs if not after >> self._made_by[v] & 1}
        return _without(group, before) if 0 < len(before) < len(group.outputs) else None

    def _refuse(self, nodes: tuple[int, ...], refusal: Refusal) -> bool:
        computing = tuple(n for n in nodes if n not in self._constant)
        if len(computing) <= 2:
            self._refusals.setdefault(computing, refusal)
        return False

    def _variants(self, nodes: tuple[int, ...]) -> list[FusionGroup]:
        """Groups that write all that others read, or leave cheap values to be computed again."""
        full = make_group(self._program, nodes)
        inside = mask_of(nodes)
        optional = {v for v in full.outputs if self._is_repeatable(v, inside)}
        views = {v for v in optional if self._kind(v) in (OpKind.VIEW, OpKind.SOURCE)}
        found = [_without(full, views), _without(full, optional)]
        return list(dict.fromkeys(group for group in found if group.outputs))

    def _only_views(self, nodes: tuple[int, ...]) -> bool:
        return all(spec(self._program.nodes[i].op).kind is OpKind.VIEW for i in nodes)

    def _is_repeatable(self, value: int, inside: int) -> bool:
        """Whether the value is cheap to make again and read within the group."""
        node = self._made_by[value]
        op = spec(self._program.nodes[node].op)
        cheap = op.is_elementwise or op.kind in (OpKind.VIEW, OpKind.SOURCE)
        return cheap and bool(self._dag.consumers[node] & inside)

    def _kind(self, value: int) -> OpKind:
        return spec(self._program.nodes[self._made_by[value]].op).kind


def _without(group: FusionGroup, values: set[int]) -> FusionGroup:
    kept = tuple(value for value in group.outputs if value not in values)
    return FusionGroup(group.nodes, group.inputs, kept)

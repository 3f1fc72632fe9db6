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
from kernel_gen.fusion.dag import bits
from kernel_gen.fusion.group import FrameworkGroup, FusionGroup
from kernel_gen.fusion.growths import Growths
from kernel_gen.fusion.judge import Candidate, Judge
from kernel_gen.fusion.legality import Accepts, refuse_nodes
from kernel_gen.fusion.library import library_groups
from kernel_gen.fusion.together import keep_together
from kernel_gen.fusion.variants import Variants
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.ir.target import DeviceKind, Target


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the enumeration: nodes in a group (numbers and other sources not counted), groups,
    and distinct groups lowered.

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
    limits = limits or Limits()
    # an NPU would widen the operands of its products into memory, at each call
    growths = Growths(program, limits.nodes, widening=target.kind is DeviceKind.CPU)
    judge = Judge(program, templates, target, numerics)
    search = _Enumeration(program, growths, judge, constraints or Constraints(), limits, check_stop)
    search.run()
    return search.result()


class _Enumeration:
    """Judges groups, each once, as long as the limits allow."""

    def __init__(
        self,
        program: Graph,
        growths: Growths,
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
        self._growths = growths
        self._variants = Variants(program, growths.dag)
        self._seen: dict[int, bool] = {}
        self._found: dict[FusionGroup, Candidate] = {}
        self._refusals: dict[tuple[int, ...], Refusal] = {}

    def run(self) -> None:
        """Finds groups until all are known or a limit is reached."""
        seeds = [i for i in range(len(self._program.nodes)) if i not in self._growths.constant]
        singles = [self._growths.completed(1 << i) for i in seeds]
        kept = [mask for mask in singles if self._try(mask)]
        reached = 0
        for mask in kept:
            if not mask & reached & ~self._growths.absorbed:
                reached |= self._grow_greedily(mask, reached)
        for mask in kept:
            if mask & self._growths.returned:
                self._grow_greedily(mask, 0)
        waiting = deque(mask for mask, good in self._seen.items() if good)
        while waiting and not self._spent():
            mask = waiting.popleft()
            for grown in self._growths.of(mask):
                if grown not in self._seen and not self._spent() and self._try(grown):
                    waiting.append(grown)

    def result(self) -> Candidates:
        groups = sorted(self._found.values(), key=lambda c: (c.group.nodes, c.group.outputs))
        by_group = {candidate.group: candidate for candidate in groups}
        refusals = tuple(RefusedGroup(n, r) for n, r in sorted(self._refusals.items()))
        library = library_groups(
            self._program, self._growths.dag, self._growths.constant, dict(self._refusals)
        )
        kept = keep_together([*by_group, *library], self._constraints.together)
        return Candidates(
            tuple(by_group[g] for g in kept if isinstance(g, FusionGroup)),
            tuple(g for g in kept if isinstance(g, FrameworkGroup)),
            refusals,
            tuple(sorted(self._growths.constant)),
        )

    def _spent(self) -> bool:
        limits = self._limits
        groups = limits.of(len(self._program.nodes))
        return len(self._found) >= groups or self._judge.judged >= limits.lowered

    def _grow_greedily(self, mask: int, reached: int) -> int:
        """Takes the first legal growth outside `reached` again and again; the largest group."""
        grown: int | None = mask
        closed = reached & ~self._growths.absorbed
        while grown is not None and not self._spent():
            mask = grown
            free = (g for g in self._growths.of(mask) if not g & closed)
            grown = next((g for g in free if self._try(g)), None)
        return mask

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
        variants = self._variants.of(nodes)
        if len(variants[0].outputs) > 1 and self._only_views(nodes):
            return False  # copies of several views gain nothing from each other
        good = [group for group in variants if self._keep(group)]
        if not good:
            again = self._variants.product_alone(variants[0])
            good = [again] if again is not None and self._keep(again) else []
        return bool(good)

    def _keep(self, group: FusionGroup) -> bool:
        """Whether the group is a candidate; records it, or its refusal."""
        answer = self._judge.judge(group)
        if isinstance(answer, Refusal):
            return self._refuse(group.nodes, answer)
        self._found[group] = answer
        return True

    def _refuse(self, nodes: tuple[int, ...], refusal: Refusal) -> bool:
        computing = tuple(n for n in nodes if n not in self._growths.constant)
        if len(computing) <= 2:
            self._refusals.setdefault(computing, refusal)
        return False

    def _only_views(self, nodes: tuple[int, ...]) -> bool:
        return all(spec(self._program.nodes[i].op).kind is OpKind.VIEW for i in nodes)

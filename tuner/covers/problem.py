"""What a cover is made of, and which choices of options are covers."""

from __future__ import annotations

import copy
import heapq
import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.group import FrameworkGroup, FusionPlan, Group
from kernel_gen.fusion.library import constant_group
from kernel_gen.fusion.region import constant_values
from kernel_gen.fusion.sharing import Sharing
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.ops import OpKind, spec

_SHARING = 0.1  # times of kernels measured once, at different moments, are hardly surer


@dataclass(frozen=True, slots=True)
class CoverOption:
    """A group that may be chosen, and its time alone (measured or predicted)."""

    group: Group
    cost_us: float

    def __post_init__(self) -> None:
        if not 0 <= self.cost_us < float("inf"):
            raise InvalidInput(f"option {self.group.nodes}: cost {self.cost_us} µs")


@dataclass(frozen=True, slots=True)
class Overheads:
    """Cost of having one more group in a plan. Estimates: a call through a pointer and its cold
    start in cache; leaving the compiled segment, one dispatch in torch, coming back.

    `alone`, a share of a group's time, counts where its ops share no kernel: times come from warm
    caches and are sure to a few percent, so of equal covers the one with less traffic wins. So does
    `alone_us` for each such op, however short it is.
    """

    kernel_us: float = 0.5
    framework_us: float = 4.0
    alone: float = 0.02
    alone_us: float = 0.0

    def of(self, group: Group) -> float:
        """Microseconds that `group` costs besides its own time."""
        return self.framework_us if isinstance(group, FrameworkGroup) else self.kernel_us

    def of_alone(self, cost_us: float, ops: int) -> float:
        """What a group of `cost_us` counts for its ops that share no kernel."""
        return self.alone * cost_us + self.alone_us * ops if ops else 0.0


def for_sharing(cost_us: float, ops: int) -> Overheads:
    """Of covers of about `cost_us` of a program of `ops`, the one that leaves fewest alone at a
    small price: a tenth of the time of a group, a twentieth of the program's for all ops."""
    return Overheads(alone=_SHARING, alone_us=_SHARING / 2 * cost_us / max(1, ops))


@dataclass(frozen=True, slots=True)
class Cover:
    """A cover, its cost with overheads (without `alone`), its options' positions as they run."""

    plan: FusionPlan
    cost_us: float
    chosen: tuple[int, ...]


class Problem:
    """What the options produce and read, without what is always there."""

    def __init__(
        self,
        program: Graph,
        options: Sequence[CoverOption],
        forbidden: Collection[Group],
        overheads: Overheads,
    ) -> None:
        self.program = program
        self.options = options
        sharing = Sharing(program)
        self.costs = [o.cost_us + overheads.of(o.group) for o in options]
        self.weighed = [
            cost + overheads.of_alone(option.cost_us, len(sharing.alone(option.group)))
            for cost, option in zip(self.costs, options, strict=True)
        ]
        self.barred = [i for i, o in enumerate(options) if o.group in forbidden]
        self._constants = constant_values(program)
        free = self._constants | {i.value for i in program.inputs}
        self.needed = {o.value for o in program.outputs} - free
        self.reads = [frozenset(o.group.inputs) - free for o in options]
        self.makes = [frozenset(o.group.outputs) - free for o in options]
        self.makers = _makers(self.makes)
        runners = _runners(program, options)
        self.effect_nodes, self.effects = list(runners), list(runners.values())

    def part(self, positions: Sequence[int], needed: set[int], inside: Collection[int]) -> Problem:
        """The same with the options at `positions` only, which are counted anew: to make `needed`
        of the values `inside`, with all others there. Of effects, those that they may have."""
        place = {position: new for new, position in enumerate(positions)}
        part = copy.copy(self)
        part.options = [self.options[p] for p in positions]
        part.costs = [self.costs[p] for p in positions]
        part.weighed = [self.weighed[p] for p in positions]
        part.barred = [place[p] for p in self.barred if p in place]
        part.needed = needed
        part.reads = [self.reads[p].intersection(inside) for p in positions]
        part.makes = [self.makes[p] for p in positions]
        part.makers = _makers(part.makes)
        users = [[place[p] for p in users if p in place] for users in self.effects]
        kept = [i for i, own in enumerate(users) if own]
        part.effect_nodes = [self.effect_nodes[i] for i in kept]
        part.effects = [users[i] for i in kept]
        return part

    def shape(self, first: int) -> object:
        """What the choice hangs on, with values counted from `first`: equal for equal layers."""

        def counted(values: Iterable[int]) -> tuple[int, ...]:
            return tuple(sorted(value - first for value in values))

        options = zip(self.makes, self.reads, self.weighed, self.options, strict=True)
        return (
            counted(self.needed),
            tuple(self.barred),
            tuple((counted(m), counted(r), w, len(o.group.nodes)) for m, r, w, o in options),
            tuple(map(tuple, self.effects)),
        )

    def start(self) -> list[int] | None:
        """A choice that makes each value once: of the options that cost least for each of their
        nodes, or where that goes in circles, of the smallest. None where that leads nowhere, too.
        What a large program gets that the solver finds nothing for in its time."""
        for rank in (self._cost_per_node, self._size):
            chosen = self._greedy(rank)
            if chosen is not None and not cycles(self.edges(chosen)):
                return chosen
        return None

    def _greedy(self, rank: Callable[[int], tuple[float, int]]) -> list[int] | None:
        """From the results upwards, for each value the option of lowest rank that fits."""
        taken: set[int] = set()
        made: set[int] = set()
        waiting = sorted(self.needed)
        barred = set(self.barred)

        def take(makers: Sequence[int]) -> bool:
            fit = [p for p in makers if p not in barred and not self.makes[p] & made]
            if fit:
                best = min(fit, key=rank)
                taken.add(best)
                made.update(self.makes[best])
                waiting.extend(self.reads[best] - made)
            return bool(fit)

        for users in self.effects:
            if taken.isdisjoint(users) and not take(users):
                return None
        while waiting:
            value = waiting.pop()
            if value not in made and not take(self.makers.get(value, ())):
                return None
        once = all(len(taken.intersection(users)) == 1 for users in self.effects)
        return sorted(taken) if once else None

    def _cost_per_node(self, position: int) -> tuple[float, int]:
        nodes = len(self.options[position].group.nodes)
        return self.weighed[position] / nodes, -nodes

    def _size(self, position: int) -> tuple[float, int]:
        return float(len(self.options[position].group.nodes)), position

    def edges(self, chosen: Sequence[int]) -> dict[int, set[int]]:
        """Chosen option -> chosen options that must run before it."""
        maker = {value: p for p in chosen for value in self.makes[p]}
        before = {p: {maker[v] for v in self.reads[p] if v in maker} - {p} for p in chosen}
        ordered = [p for users in self.effects for p in users if p in before]
        for first, second in itertools.pairwise(ordered):
            if first != second:
                before[second].add(first)
        return before

    def cover(self, chosen: Sequence[int]) -> Cover:
        """The cover of an acyclic choice."""
        order = _topological(self.edges(chosen), self.options)
        groups: list[Group] = [self.options[p].group for p in order]
        read = {value for group in groups for value in group.inputs}
        read |= {output.value for output in self.program.outputs}
        constant = constant_group(self.program, frozenset(read & self._constants))
        if constant is not None:
            groups.insert(0, constant)
        return Cover(FusionPlan(tuple(groups)), sum(self.costs[p] for p in order), tuple(order))

    def why_infeasible(self) -> str:
        """A sentence for the caller: the first value that nothing can make."""
        allowed = set(range(len(self.options))) - set(self.barred)
        for value in sorted(self.needed | set().union(*self.reads)):
            if not allowed.intersection(self.makers.get(value, ())):
                return f"no option produces value {value}: there is no cover of the program"
        return "the options cover the program only with groups that wait for each other"


def _makers(makes: Sequence[frozenset[int]]) -> dict[int, list[int]]:
    """Value -> positions of the options that make it."""
    found: dict[int, list[int]] = {}
    for position, values in enumerate(makes):
        for value in values:
            found.setdefault(value, []).append(position)
    return found


def _runners(program: Graph, options: Sequence[CoverOption]) -> dict[int, list[int]]:
    """For each framework node, in order, the options that run it."""
    found: dict[int, list[int]] = {
        index: []
        for index, node in enumerate(program.nodes)
        if spec(node.op).kind is OpKind.FRAMEWORK
    }
    for position, option in enumerate(options):
        for node in option.group.nodes:
            if node in found:
                found[node].append(position)
    return found


def _topological(before: dict[int, set[int]], options: Sequence[CoverOption]) -> list[int]:
    """Order in which no group runs before those it reads from, early nodes first."""
    waiting = {p: len(sources) for p, sources in before.items()}
    after: dict[int, list[int]] = {p: [] for p in before}
    for p, sources in before.items():
        for source in sources:
            after[source].append(p)
    ready = [(options[p].group.nodes, p) for p, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, p = heapq.heappop(ready)
        order.append(p)
        for follower in after[p]:
            waiting[follower] -= 1
            if waiting[follower] == 0:
                heapq.heappush(ready, (options[follower].group.nodes, follower))
    return order


def cycles(before: dict[int, set[int]]) -> list[list[int]]:
    """Some circles, no two with a common group; none if the choice is acyclic."""
    found: list[list[int]] = []
    state: dict[int, int] = {}  # 1: on the path, 2: done
    for root in before:
        if root in state:
            continue
        path, stack = [root], [iter(sorted(before[root]))]
        state[root] = 1
        while stack:
            step = next(stack[-1], None)
            if step is None:
                state[path.pop()] = 2
                stack.pop()
            elif state.get(step) == 1 and not _touches(found, path[path.index(step) :]):
                found.append(path[path.index(step) :])
            elif step not in state:
                state[step] = 1
                path.append(step)
                stack.append(iter(sorted(before[step])))
    return found


def _touches(found: list[list[int]], path: list[int]) -> bool:
    return any(set(path) & set(other) for other in found)

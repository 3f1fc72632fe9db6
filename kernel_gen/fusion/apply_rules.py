"""Applying rules to a program: rewrites first, then what they ask of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kernel_gen.fusion.candidates import Constraints
from kernel_gen.fusion.channels_last import channels_last
from kernel_gen.fusion.fold_norms import fold_norms
from kernel_gen.fusion.region import constant_nodes
from kernel_gen.fusion.rewrite import expand_nodes, merge_products, mergeable
from kernel_gen.fusion.rules import Action, Match, Rule
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.ir.target import DeviceKind


@dataclass(frozen=True, slots=True)
class Ruled:
    """A program after its rules: rewritten, with constraints on its groups (by node index).

    `fired` names the rules that changed or constrained something, in order.
    """

    program: Graph
    constraints: Constraints
    fired: tuple[str, ...]


def apply_rules(
    program: Graph, rules: Sequence[Rule], device: DeviceKind = DeviceKind.CPU
) -> Ruled:
    """The first rule that matches a node decides, per kind of action, of those for the device."""
    rules = [rule for rule in rules if not rule.match.device or device in rule.match.device]
    fired: list[str] = []
    for rule in rules:
        changed = _rewritten(program, rule)
        if changed is not program:
            fired.append(rule.name)
            program = changed
    constraints = _constraints(program, rules, fired)
    return Ruled(program, constraints, tuple(dict.fromkeys(fired)))


def _rewritten(program: Graph, rule: Rule) -> Graph:
    nodes = _matching(program, rule.match)
    if rule.action is Action.EXPAND:
        composites = [i for i in nodes if spec(program.nodes[i].op).kind is OpKind.COMPOSITE]
        return expand_nodes(program, composites)
    if rule.action is Action.MERGE:
        return merge_products(program, mergeable(program, nodes))
    if rule.action is Action.FOLD:
        return fold_norms(program, nodes)
    if rule.action is Action.CHANNELS_LAST:
        return channels_last(program, nodes)
    return program


def _constraints(program: Graph, rules: Sequence[Rule], fired: list[str]) -> Constraints:
    apart: set[frozenset[int]] = set()
    together: set[frozenset[int]] = set()
    framework: set[int] = set()
    for rule in rules:
        nodes = _matching(program, rule.match)
        before = len(apart) + len(together) + len(framework)
        if rule.action is Action.FRAMEWORK:
            framework.update(nodes)
        elif rule.action is Action.NEVER_FUSE:
            apart.update(_pairs(program, nodes, rule.match))
        elif rule.action is Action.FUSE:
            together.update(_pairs(program, nodes, rule.match))
        if len(apart) + len(together) + len(framework) > before:
            fired.append(rule.name)
    return Constraints(frozenset(apart), frozenset(together - apart), frozenset(framework))


def _matching(program: Graph, match: Match) -> list[int]:
    """Indices of the nodes that `match` is about."""
    makers, users = program.producers(), program.consumers()
    return [
        i
        for i, node in enumerate(program.nodes)
        if node.op in match.op
        and _fits_type(program, i, match)
        and (not match.producer or _near(program, _producers(program, i, makers), match.producer))
        and (not match.consumer or _near(program, _consumers(program, i, users), match.consumer))
    ]


def _fits_type(program: Graph, position: int, match: Match) -> bool:
    result = program.type_of(program.nodes[position].outputs[0])
    if match.dtype and result.dtype not in match.dtype:
        return False
    if match.min_elems is None and match.max_elems is None:
        return True
    if not result.is_static:
        return False
    low = match.min_elems if match.min_elems is not None else 0
    return low <= result.elems and (match.max_elems is None or result.elems <= match.max_elems)


def _producers(program: Graph, position: int, makers: dict[int, int]) -> list[int]:
    return [makers[value] for value in program.nodes[position].inputs if value in makers]


def _consumers(program: Graph, position: int, users: dict[int, tuple[int, ...]]) -> list[int]:
    return [user for value in program.nodes[position].outputs for user in users.get(value, ())]


def _near(program: Graph, neighbours: Iterable[int], ops: Sequence[str]) -> bool:
    return any(program.nodes[i].op in ops for i in neighbours)


def _pairs(program: Graph, nodes: Iterable[int], match: Match) -> set[frozenset[int]]:
    """Each node with its named neighbours. Where none is named, with all of them: those that read
    an operand of it as well, too, but not the fills and views of constants that any kernel holds
    of its own."""
    makers, users = program.producers(), program.consumers()
    everyone = not match.producer and not match.consumer
    free = _held_by_any_kernel(program)

    def wanted(ops: Sequence[str]) -> Callable[[int], bool]:
        return lambda i: i not in free if everyone else program.nodes[i].op in ops

    found: set[frozenset[int]] = set()
    for node in nodes:
        if everyone and node in free:
            continue
        near = [*filter(wanted(match.producer), _producers(program, node, makers))]
        near += filter(wanted(match.consumer), _consumers(program, node, users))
        if everyone:
            near += filter(wanted(()), _siblings(program, node, users))
        found |= {frozenset((node, other)) for other in near if other != node}
    return found


def _siblings(program: Graph, position: int, users: dict[int, tuple[int, ...]]) -> list[int]:
    return [user for value in program.nodes[position].inputs for user in users.get(value, ())]


def _held_by_any_kernel(program: Graph) -> frozenset[int]:
    """Sources, and views of constants."""
    constant = frozenset(constant_nodes(program))

    def is_held(position: int) -> bool:
        kind = spec(program.nodes[position].op).kind
        return kind is OpKind.SOURCE or (kind is OpKind.VIEW and position in constant)

    return frozenset(filter(is_held, range(len(program.nodes))))

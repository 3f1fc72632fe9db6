"""What the framework can run in place of a generated kernel."""

from __future__ import annotations

from collections.abc import Mapping

from kernel_gen.errors import Refusal
from kernel_gen.fusion.dag import Dag, bits
from kernel_gen.fusion.group import CONSTANT_CODE, FrameworkGroup
from kernel_gen.fusion.legality import matrix_products, unfusable
from kernel_gen.fusion.region import constant_values, make_group
from kernel_gen.ir.fused_convolution import FusedConvolution, extended, is_for_library
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.largest import largest_pairs
from kernel_gen.ir.ops import OpKind, spec

_LIBRARY = Refusal("library", "The library's kernel is a choice of the search.")


def library_groups(
    program: Graph,
    dag: Dag,
    constant: frozenset[int],
    refusals: Mapping[tuple[int, ...], Refusal],
) -> tuple[FrameworkGroup, ...]:
    """A framework group for each node that is not constant, for each library op with the views
    that it alone reads (torch reads them without a copy), and for nodes that are one call."""
    found: list[FrameworkGroup] = []
    fixed = constant_values(program)
    for node in range(len(program.nodes)):
        if node in constant:
            continue
        reason = unfusable(program.nodes[node]) or refusals.get((node,)) or _LIBRARY
        found.append(framework_group(program, (node,), reason))
        views = _own_views(program, dag, constant, node)
        if views and matrix_products(program.nodes[node]):
            found.append(framework_group(program, (*views, node), reason))
        found += _fused_convolutions(program, dag, fixed, node)
    pairs = [sorted(pair) for pair in largest_pairs(program) if constant.isdisjoint(pair)]
    found += [framework_group(program, (first, second), _LIBRARY) for first, second in pairs]
    return tuple(found)


def _fused_convolutions(
    program: Graph, dag: Dag, fixed: frozenset[int], node: int
) -> list[FrameworkGroup]:
    """Groups of a convolution of constant weights with a sum and an activation that alone read
    it."""
    returned = {output.value for output in program.outputs}
    suits = is_for_library(program, node) and program.nodes[node].inputs[1] in fixed
    call = FusedConvolution(node) if suits else None
    found: list[FrameworkGroup] = []
    while call is not None:
        last = call.nodes[-1]
        readers = list(bits(dag.consumers[last]))
        alone = len(readers) == 1 and program.nodes[last].output not in returned
        call = extended(program, call, readers[0]) if alone else None
        if call is not None:
            found.append(framework_group(program, call.nodes, _LIBRARY))
    return found


def framework_group(program: Graph, nodes: tuple[int, ...], reason: Refusal) -> FrameworkGroup:
    """`nodes` run by the framework for `reason`."""
    group = make_group(program, nodes)
    return FrameworkGroup(group.nodes, group.inputs, group.outputs, reason.code, reason.sentence)


def constant_group(program: Graph, needed: frozenset[int]) -> FrameworkGroup | None:
    """The constant nodes behind the constant values `needed`, run once when a plan is bound."""
    made_by = program.producers()
    waiting = [value for value in needed if value in made_by]
    nodes: set[int] = set()
    while waiting:
        node = made_by[waiting.pop()]
        if node not in nodes:
            nodes.add(node)
            waiting += [value for value in program.nodes[node].inputs if value in made_by]
    if not nodes:
        return None
    group = make_group(program, sorted(nodes))
    outputs = tuple(v for i in sorted(nodes) for v in program.nodes[i].outputs if v in needed)
    sentence = "These ops read constants only; they run once, when the plan is bound."
    return FrameworkGroup(group.nodes, group.inputs, outputs, CONSTANT_CODE, sentence)


def _own_views(program: Graph, dag: Dag, constant: frozenset[int], node: int) -> tuple[int, ...]:
    """Views, through chains, that only `node` reads."""
    returned = {output.value for output in program.outputs}
    inside = 1 << node
    waiting = [node]
    while waiting:
        for producer in bits(dag.producers[waiting.pop()] & ~inside):
            view = program.nodes[producer]
            own = not dag.consumers[producer] & ~inside and not returned & set(view.outputs)
            if spec(view.op).kind is OpKind.VIEW and own and producer not in constant:
                inside |= 1 << producer
                waiting.append(producer)
    return tuple(n for n in bits(inside) if n != node)

"""Real plans without a search: the whole program as one kernel where that is legal, otherwise a
kernel per node, and torch for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graph_autofusion.resolution import Accepts, Resolution
from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.errors import Refusal
from kernel_gen.fusion.group import FrameworkGroup, FusionGroup, FusionPlan
from kernel_gen.fusion.lower import Lowered, Lowering
from kernel_gen.fusion.region import constant_nodes, make_group
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import Target
from kernel_gen.runtime.assemble import assemble
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.key import plan_key
from kernel_gen.runtime.plan import UNMEASURED, Kernel, Plan, SearchSummary, Unfused

SUMMARY = SearchSummary(2.0, 1.0, 1.5, True, 3, 1, 0.5, 1.0)


def quick_plan(graph: Graph, compiler: Compiler, summary: SearchSummary = SUMMARY) -> Plan:
    """A plan for this machine under the key that `optimize` asks for."""
    target = host_target()
    cover, kernels = _whole(graph, target) or _per_node(graph, target)
    key = plan_key(graph, target)
    return assemble(graph, graph, key, cover, kernels, target, compiler, summary)


def framework_plan(
    graph: Graph,
    compiler: Compiler,
    summary: SearchSummary,
    cut: Sequence[tuple[int, ...]] | None = None,
) -> Plan:
    """What a search publishes that measured no kernel; `cut` has the nodes of each call."""
    groups = [make_group(graph, nodes) for nodes in cut or [(n,) for n in range(len(graph.nodes))]]
    cover = FusionPlan(
        tuple(FrameworkGroup(g.nodes, g.inputs, g.outputs, UNMEASURED, ".") for g in groups)
    )
    unfused = tuple(Unfused(node.op, UNMEASURED, ".") for node in graph.nodes)
    summary = replace(summary, unfused=unfused, improved=False, measured_us=2.0)
    target = host_target()
    return assemble(graph, graph, plan_key(graph, target), cover, (), target, compiler, summary)


def _whole(graph: Graph, target: Target) -> tuple[FusionPlan, list[Kernel]] | None:
    nodes = [n for n in range(len(graph.nodes)) if n not in constant_nodes(graph)]
    try:
        group = make_group(graph, tuple(nodes))
        kernel = _kernel(Lowering(graph), group, target)
    except (ValueError, IndexError):
        return None
    return (FusionPlan((group,)), [kernel]) if isinstance(kernel, Kernel) else None


def _per_node(graph: Graph, target: Target) -> tuple[FusionPlan, list[Kernel]]:
    lowering, constant = Lowering(graph), constant_nodes(graph)
    groups: list[FusionGroup | FrameworkGroup] = []
    kernels: list[Kernel] = []
    for node in range(len(graph.nodes)):
        if node in constant:
            continue
        group = make_group(graph, (node,))
        kernel = _kernel(lowering, group, target)
        if isinstance(kernel, Kernel):
            kernels.append(kernel)
            groups.append(group)
        else:
            groups.append(FrameworkGroup(group.nodes, group.inputs, group.outputs, "library", "."))
    return FusionPlan(tuple(groups)), kernels


def _kernel(lowering: Lowering, group: FusionGroup, target: Target) -> Kernel | Refusal:
    lowered = lowering.lower(group)
    if not isinstance(lowered, Lowered):
        return lowered
    for template in templates(target):
        if template.refuse(lowered.nest, target) is not None:
            continue
        point = dict(template.space(lowered.nest, target).seeds[0])
        schedule = template.schedule(lowered.nest, target, point)
        if isinstance(schedule, Refusal):
            continue
        source = template.generate(lowered.nest, target, schedule, f"k{group.nodes[0]}")
        ops = tuple(lowering_ops(lowering, group.nodes))
        return Kernel(group, lowered.operands, lowered.nest, schedule, source, ops)
    return Refusal("no-template", "No template takes it.")


def lowering_ops(lowering: Lowering, nodes: Sequence[int]) -> list[str]:
    """Names for people."""
    return [f"node {node}" for node in nodes]


class QuickSource:
    """A plan source that has a quick plan for everything; `asked` are the graphs it was shown."""

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler
        self.asked: list[Graph] = []
        self.cache = "hit"
        self.changes: dict[str, object] = {}

    def resolve(self, graph: Graph, accepts: Accepts) -> Resolution:
        self.asked.append(graph)
        plan = quick_plan(graph, self.compiler, replace(SUMMARY, **self.changes))
        return Resolution(plan, self.cache)

    def follow(self, job: str, graph: Graph, accepts: Accepts) -> Resolution | None:
        return self.resolve(graph, accepts)

"""Why two groups of a cover are two: what forbids one kernel for both, or that nothing does."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codec import digest
from kernel_gen.errors import Refusal
from kernel_gen.fusion.candidates import Constraints, Limits
from kernel_gen.fusion.dag import Dag, bits, mask_of
from kernel_gen.fusion.group import FusionPlan, Group
from kernel_gen.fusion.legality import Accepts, accepting, refuse_nodes
from kernel_gen.fusion.lower import lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import Target

_ENCLOSES = "one kernel for both would enclose {} more ops that run between them"


@dataclass(frozen=True, slots=True)
class Union:
    """Two groups as one kernel: `refusal` says why that cannot be; else `task` is the digest of
    the nest that the search could have tuned."""

    refusal: Refusal | None
    task: str | None


def neighbours(cover: FusionPlan, number: int) -> tuple[int, ...]:
    """Numbers of the groups that `number` reads from or that read from it, in execution order.
    Groups that run once, on constants, are left out."""
    group = cover.groups[number]
    return tuple(
        other
        for other, near in enumerate(cover.groups)
        if other != number and not getattr(near, "is_constant", False) and _touch(group, near)
    )


def _touch(first: Group, second: Group) -> bool:
    return bool({*first.inputs} & {*second.outputs} or {*first.outputs} & {*second.inputs})


def union_of(
    program: Graph,
    first: Group,
    second: Group,
    templates: tuple[Accepts, ...],
    target: Target,
    constraints: Constraints,
    numerics: str,
) -> Union:
    """What the search knows of one kernel for both groups."""
    nodes = tuple(sorted({*first.nodes, *second.nodes}))
    refusal = (
        refuse_nodes(program, nodes, Limits().nodes)
        or _between(program, nodes)
        or constraints.refuse(program, nodes)
    )
    if refusal is not None:
        return Union(refusal, None)
    lowered = lower(program, make_group(program, nodes), numerics)
    if isinstance(lowered, Refusal):
        return Union(lowered, None)
    names = accepting(lowered.nest, target, templates, fused=True)
    if isinstance(names, Refusal):
        return Union(names, None)
    return Union(None, digest(lowered.nest))


def _between(program: Graph, nodes: tuple[int, ...]) -> Refusal | None:
    """A kernel runs as a whole: what lies between its nodes must be in it."""
    more = [n for n in bits(Dag(program).closure(mask_of(nodes))) if n not in nodes]
    return Refusal("not-convex", _ENCLOSES.format(len(more))) if more else None

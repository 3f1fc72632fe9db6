"""Which of its values a group writes: one set of nodes may be several groups."""

from __future__ import annotations

from kernel_gen.fusion.dag import Dag, mask_of
from kernel_gen.fusion.group import FusionGroup
from kernel_gen.fusion.legality import matrix_products
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.ops import OpKind, spec


class Variants:
    """Groups of one program that compute the same nodes."""

    def __init__(self, program: Graph, dag: Dag) -> None:
        self._program, self._dag = program, dag
        self._made_by = program.producers()

    def of(self, nodes: tuple[int, ...]) -> list[FusionGroup]:
        """Groups that write all that others read, or leave cheap values to be computed again."""
        full = make_group(self._program, nodes)
        inside = mask_of(nodes)
        optional = {v for v in full.outputs if self._is_repeatable(v, inside)}
        views = {v for v in optional if self._kind(v) in (OpKind.VIEW, OpKind.SOURCE)}
        found = [_without(full, views), _without(full, optional)]
        return list(dict.fromkeys(group for group in found if group.outputs))

    def product_alone(self, group: FusionGroup) -> FusionGroup | None:
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

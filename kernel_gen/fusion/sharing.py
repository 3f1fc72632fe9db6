"""Which ops of a program share a kernel with another one, and how large their share is."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kernel_gen.fusion.fold_norms import holds_norm
from kernel_gen.fusion.group import FusionGroup, Group
from kernel_gen.fusion.legality import matrix_products
from kernel_gen.fusion.region import constant_values
from kernel_gen.ir.fused_convolution import fused_convolution
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.ops import OpKind, spec

_NOT_COMPUTING = frozenset((OpKind.VIEW, OpKind.SOURCE))


class Sharing:
    """The computing ops of a program, and which of them a group lets share a kernel.

    Products that a rule has joined count as the products that they were, and share a kernel; so do
    a convolution and the norm that a rule has folded into it. A generated attention counts as
    shared: two products and a softmax of its expansion. Ops that run once, when the plan is bound
    (`folded`), are no part of a call and count on neither side.
    """

    def __init__(self, program: Graph, folded: Collection[int] = ()) -> None:
        self._program = program
        self._constants = constant_values(program)
        self._makers = program.producers()
        each_call = set(range(len(program.nodes))) - set(folded)
        self._ops = {i: self._joined(i) for i in sorted(each_call) if _computes(program, i)}

    @property
    def ops(self) -> int:
        """How many computing ops the program has."""
        return sum(self._ops.values())

    def computing(self, group: Group) -> tuple[int, ...]:
        """The computing nodes of `group`."""
        return tuple(sorted(self._ops.keys() & set(group.nodes)))

    def alone(self, group: Group) -> tuple[int, ...]:
        """The computing nodes of `group` that share no kernel with another op."""
        members = self.computing(group)
        several = sum(self._ops[i] for i in members) > 1
        shares = several or _is_generated_attention(self._program, group)
        return () if shares and self._is_one_kernel(group) else members

    def left_alone(self, groups: Sequence[Group]) -> list[tuple[int, Group]]:
        """The computing nodes that share a kernel in none of `groups`, each with its group. Where
        several groups compute one, it may be alone in one of them and share in another."""
        fused = self._fused(groups)
        return [(n, group) for group in groups for n in self.alone(group) if n not in fused]

    def rate(self, groups: Sequence[Group]) -> float:
        """The fusion rate: the share of the computing ops that share a kernel with another one."""
        return sum(self._ops[i] for i in self._fused(groups)) / self.ops if self._ops else 0.0

    def _fused(self, groups: Sequence[Group]) -> frozenset[int]:
        shared = (self.computing(group) for group in groups if not self.alone(group))
        return frozenset(node for nodes in shared for node in nodes)

    def _joined(self, node: int) -> int:
        """How many ops a node stands for: as many as its constant weights are joined from, and one
        more where they hold a norm."""
        if holds_norm(self._program, node):
            return 2
        product = self._program.nodes[node]
        maker = self._makers.get(product.inputs[1]) if matrix_products(product) == 1 else None
        if maker is None or self._program.nodes[maker].op != "concat":
            return 1
        joined = self._program.nodes[maker].inputs
        return len(joined) if self._constants.issuperset(joined) else 1

    def _is_one_kernel(self, group: Group) -> bool:
        """Generated kernels, and those groups that the library has one kernel for."""
        if isinstance(group, FusionGroup):
            return True
        call = fused_convolution(self._program, group.nodes)
        if call is not None:
            return call.is_one_kernel(self._program)
        return len(self.computing(group)) == 1


def _computes(program: Graph, node: int) -> bool:
    return spec(program.nodes[node].op).kind not in _NOT_COMPUTING


def _is_generated_attention(program: Graph, group: Group) -> bool:
    generated = isinstance(group, FusionGroup)
    return generated and any(matrix_products(program.nodes[i]) > 1 for i in group.nodes)

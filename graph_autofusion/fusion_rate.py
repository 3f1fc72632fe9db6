"""The fusion rate: ops that share a kernel with another one, over all computing ops."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kernel_gen.fusion.fold_norms import holds_norm
from kernel_gen.fusion.group import FusionGroup, Group
from kernel_gen.fusion.legality import matrix_products
from kernel_gen.fusion.region import constant_values
from kernel_gen.ir.fused_convolution import fused_convolution
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.ops import OpKind, spec

_NOT_COMPUTING = frozenset((OpKind.VIEW, OpKind.SOURCE))


def shared_share(program: Graph, groups: Iterable[Group], folded: Collection[int] = ()) -> float:
    """Share of the computing ops of `program` that share a kernel with another one.

    Ops that run once, when the plan is bound (`folded`), are no part of a call and count on neither
    side. Products that a rule has joined count as the products that they were, and share a kernel;
    so do a convolution and the norm that a rule has folded into it.
    A generated attention counts as shared: two products and a softmax of its expansion.
    """
    each_call = set(range(len(program.nodes))) - set(folded)
    ops = {i: _joined(program, i) for i in each_call if _computes(program, i)}
    fused: set[int] = set()
    for group in groups:
        members = ops.keys() & set(group.nodes)
        shared = sum(ops[i] for i in members) > 1 or _is_generated_attention(program, group)
        if shared and _is_one_kernel(program, group):
            fused |= members
    return sum(ops[i] for i in fused) / sum(ops.values()) if ops else 0.0


def _computes(program: Graph, node: int) -> bool:
    return spec(program.nodes[node].op).kind not in _NOT_COMPUTING


def _joined(program: Graph, node: int) -> int:
    """How many ops a node stands for: as many as its constant weights are joined from, and one more
    where they hold a norm."""
    if holds_norm(program, node):
        return 2
    product = program.nodes[node]
    maker = program.producers().get(product.inputs[1]) if matrix_products(product) == 1 else None
    if maker is None or program.nodes[maker].op != "concat":
        return 1
    joined = program.nodes[maker].inputs
    return len(joined) if constant_values(program).issuperset(joined) else 1


def _is_one_kernel(program: Graph, group: Group) -> bool:
    """Generated kernels, and those groups that the library has one kernel for."""
    if isinstance(group, FusionGroup):
        return True
    call = fused_convolution(program, group.nodes)
    if call is not None:
        return call.is_one_kernel(program)
    return sum(_computes(program, i) for i in group.nodes) == 1


def _is_generated_attention(program: Graph, group: Group) -> bool:
    generated = isinstance(group, FusionGroup)
    return generated and any(matrix_products(program.nodes[i]) > 1 for i in group.nodes)

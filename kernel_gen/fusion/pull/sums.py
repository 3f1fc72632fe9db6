"""Reductions and matrix products: sums along axes that the element itself does not have."""

from __future__ import annotations

from kernel_gen.fusion.affine import ZERO
from kernel_gen.fusion.pull.puller import Guards, Puller
from kernel_gen.fusion.views import Indices, broadcast_index, int_tuple
from kernel_gen.ir.graph import Node
from kernel_gen.ir.index import axis_index
from kernel_gen.ir.loopnest import Contract, Reduce


def pull_reduction(puller: Puller, node: Node, at: Indices, guards: Guards) -> int:
    """y[i] = Σ over r of x[i, r], or the like for the node's op."""
    (value,) = node.inputs
    shape, dims, dtype = puller.shape(value), int_tuple(node, "dims"), puller.dtype(node.output)
    rest = [i for d, i in enumerate(at) if d not in dims] if node.attr("keepdim") else list(at)
    taken, axes = puller.taken(at, guards), {}
    for d in (d for d in dims if shape[d] != 1):
        axes[d] = puller.inner_axis(node, d, taken, shared=True)
        taken |= {axes[d]}
    source = [
        axis_index(axes[d]) if d in axes else ZERO if d in dims else rest.pop(0)
        for d in range(len(shape))
    ]
    if not axes and node.op in ("argmax", "argmin"):  # the position of an only element
        return puller.nest.const(0, dtype)
    arg = puller.pull(value, tuple(source), guards)
    if not axes:
        return arg
    return puller.nest.add(Reduce(node.op, arg, tuple(axes.values()), dtype.compute))


def pull_product(puller: Puller, node: Node, at: Indices, guards: Guards) -> int:
    """y[…, i, j] = Σ over k of a[…, i, k] · b[…, k, j]; products of one left operand share k."""
    lhs, rhs = node.inputs
    first = puller.first_product(node)
    axis = puller.inner_axis(first, len(puller.shape(lhs)) - 1, puller.taken(at, guards))
    inner, batch = axis_index(axis), puller.shape(node.output)[:-2]
    left = (*broadcast_index(puller.shape(lhs)[:-2], batch, at[:-2]), at[-2], inner)
    right = (*broadcast_index(puller.shape(rhs)[:-2], batch, at[:-2]), inner, at[-1])
    args = puller.pull(lhs, left, guards), puller.pull(rhs, right, guards)
    return puller.nest.add(Contract(*args, (axis,), puller.dtype(node.output).compute))

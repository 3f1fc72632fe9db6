"""Batch norms by their batch's own statistics as the one call of torch's that eager makes.

    m = mean(x), v = var(x), y = batch_norm(x, m, v, w, b)   ->   y, m, v = call(x, w, b)

torch takes several times as long for a mean and a variance of channels by themselves: a baseline of
three calls would be one that no user has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch

from kernel_gen.frontend.torch_calls.attrs import Attrs
from kernel_gen.frontend.torch_calls.joint import JointCall
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.ir.types import static_shape

Tensor = torch.Tensor


def batch_norm_calls(program: Graph) -> Iterator[JointCall]:
    """Those of a static program, each to be made where its first node stands."""
    made_by = program.producers()
    for position, node in enumerate(program.nodes):
        if node.op != "batch_norm":
            continue
        x, mean, var, *parameters = (made_by.get(value, -1) for value in node.inputs)
        first = min(mean, var)
        ready = first >= 0 and all(place < first for place in (x, *parameters))
        if ready and _are_statistics(program, program.nodes[mean], program.nodes[var], node):
            yield _call(program, node, (mean, var, position))


def _are_statistics(program: Graph, mean: Node, var: Node, norm: Node) -> bool:
    """Whether two nodes are mean and variance of each channel of what a norm is of."""
    if (mean.op, var.op) != ("mean", "var") or mean.inputs != var.inputs:
        return False
    x, made_by = norm.inputs[0], program.producers()
    source = program.nodes[made_by[mean.inputs[0]]] if mean.inputs[0] in made_by else None
    widened = source is not None and source.op == "cast" and source.inputs == (x,)
    if mean.inputs != (x,) and not widened:
        return False
    dims = tuple(dim for dim in range(program.type_of(x).rank) if dim != 1)
    whole = all(node.attr("dims") == dims and not node.attr("keepdim") for node in (mean, var))
    return whole and var.attr("correction") == 0 and _count(program, norm) > 1


def _count(program: Graph, norm: Node) -> int:
    """Elements of each channel."""
    batch, _, *image = static_shape(program.type_of(norm.inputs[0]).shape)
    return batch * math.prod(image)


def _call(program: Graph, norm: Node, nodes: tuple[int, int, int]) -> JointCall:
    x, mean, var, *parameters = norm.inputs
    a, count = Attrs(norm), _count(program, norm)
    has_weight, has_bias, eps = a.flag("weight"), a.flag("bias"), a.float("eps")

    def call(value: Tensor, *given: Tensor) -> Sequence[Tensor]:
        wide = torch.promote_types(value.dtype, torch.float32)
        left = [tensor.to(wide) for tensor in given]
        weight = left.pop(0) if has_weight else None
        bias = left.pop(0) if has_bias else None
        found, unbiased = torch.zeros((2, value.shape[1]), dtype=wide)
        y = torch.batch_norm(value, weight, bias, found, unbiased, True, 1.0, eps, True)
        return y, found, unbiased.mul_((count - 1) / count)

    return JointCall(nodes, (x, *parameters), (norm.output, mean, var), call)

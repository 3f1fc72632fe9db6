"""The largest elements and their positions as the one `torch.topk` that eager calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from kernel_gen.frontend.torch_calls.attrs import Attrs
from kernel_gen.frontend.torch_calls.joint import JointCall
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.largest import largest_pairs

Tensor = torch.Tensor


def largest_calls(program: Graph) -> Iterator[JointCall]:
    """Those of a program, each to be made where its first node stands."""
    for pair in largest_pairs(program):
        yield _call(program, pair)


def largest_call(program: Graph, nodes: Sequence[int]) -> JointCall | None:
    """The nodes as one call; None if they are anything else."""
    pairs = (pair for pair in largest_pairs(program) if sorted(pair) == sorted(nodes))
    found = next(pairs, None) if len(nodes) == 2 else None
    return None if found is None else _call(program, found)


def _call(program: Graph, pair: tuple[int, int]) -> JointCall:
    values, positions = (program.nodes[place] for place in pair)
    a = Attrs(values)
    dim, k = a.int("dim"), a.int("k")

    def call(x: Tensor) -> tuple[Tensor, Tensor]:
        found = torch.topk(x, k, dim)
        return found.values, found.indices

    return JointCall(pair, values.inputs, (values.output, positions.output), call)

"""Nodes as torch calls: the function that eager would have called for each op.

`call_for(node)` gives a function of the node's operand tensors; `call_with_numbers`
takes 0-d constants as Python numbers, as in the user's own program.
"""

from __future__ import annotations

from typing import Any

import torch

from kernel_gen.errors import InvalidGraph
from kernel_gen.frontend import framework
from kernel_gen.frontend.complex_values import parts_of
from kernel_gen.frontend.torch_calls import convolutions, layers, layout, pooling_back, reductions
from kernel_gen.frontend.torch_calls.attrs import Attrs, Call, Maker
from kernel_gen.frontend.torch_calls.direct import DIRECT, NUMBER_RIGHT, SWAPPED
from kernel_gen.ir.graph import Attr, Node

Tensor = torch.Tensor


def call_for(node: Node) -> Call:
    """The torch call of a node with static attributes; raises InvalidGraph for an unknown op."""
    direct = DIRECT.get(node.op)
    if direct is not None:
        return direct
    make = _MAKERS.get(node.op)
    if make is None:
        raise InvalidGraph(f"torch has no call for op {node.op!r}")
    return make(Attrs(node))


def call_with_numbers(node: Node, numbers: dict[int, float]) -> tuple[Call, tuple[int, ...]]:
    """The call with 0-d constants as Python numbers, and which operands remain tensors.

    `numbers` maps operand positions to the constants' values.
    """
    if len(numbers) == 1 and len(node.inputs) == 2:
        ((position, value),) = numbers.items()
        if position == 1 and node.op in NUMBER_RIGHT:
            function = DIRECT[node.op]
            return lambda x: function(x, value), (0,)
        if position == 0 and node.op == "sub":
            return lambda x: torch.rsub(x, value), (1,)
        if position == 0 and node.op in SWAPPED:
            swapped = DIRECT[SWAPPED[node.op]]
            return lambda x: swapped(x, value), (1,)
    return call_for(node), tuple(range(len(node.inputs)))


def call_in_place(node: Node) -> Call:
    """The call of a framework node that writes its result into its first operand; raises
    InvalidGraph where torch has none."""
    a = Attrs(node)
    return _decoding(framework.resolve_in_place(a.text("target")), a.raw("args"))


def _framework(a: Attrs) -> Call:
    return _decoding(framework.resolve(a.text("target")), a.raw("args"))


def _decoding(function: Call, encoded: Attr) -> Call:
    def call(*tensors: Tensor) -> Any:
        positional, named = framework.decode(encoded, tensors)
        return parts_of(function(*positional, **named))

    return call


_MAKERS: dict[str, Maker] = {
    **layout.MAKERS,
    **reductions.MAKERS,
    **layers.MAKERS,
    **convolutions.MAKERS,
    **pooling_back.MAKERS,
    "framework": _framework,
}


def torch_ops() -> frozenset[str]:
    """All ops that `call_for` knows."""
    return frozenset(DIRECT) | frozenset(_MAKERS)

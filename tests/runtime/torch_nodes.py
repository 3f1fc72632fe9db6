"""A minimal stand-in for the front end's runner: a few ops, by torch."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

import torch

from kernel_gen.ir.graph import Graph, Node


def run_nodes(program: Graph, nodes: Sequence[int], env: MutableMapping[int, torch.Tensor]) -> None:
    """Runs `nodes` in order over `env`."""
    for number in nodes:
        node = program.nodes[number]
        env[node.output] = _apply(node, [env[value] for value in node.inputs])


def _apply(node: Node, operands: list[torch.Tensor]) -> torch.Tensor:
    first = operands[0]
    match node.op:
        case "permute":
            return first.permute(node.attr("dims"))
        case "reshape":
            return first.reshape(node.attr("shape"))
        case "slice":
            index = [slice(None)] * first.ndim
            index[int(node.attr("dim"))] = slice(
                node.attr("start"), node.attr("stop"), node.attr("step")
            )
            return first[tuple(index)]
        case "concat":
            return torch.cat(operands, int(node.attr("dim")))
        case name:
            return getattr(torch, name)(*operands)

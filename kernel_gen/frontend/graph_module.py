"""A graph as a model: what a file of graph JSON stands for where a model is expected."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend.torch_run import TorchProgram
from kernel_gen.ir.graph import Graph, InputKind


class GraphModule(nn.Module):
    """Takes the graph's inputs in order; gives its output, or a tuple of several.

    Raises UnsupportedModel for a graph that needs weights, which its JSON does not hold, or that
    writes to its inputs.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        held = [i.name or f"#{i.value}" for i in graph.inputs if i.kind is not InputKind.USER]
        if held:
            raise UnsupportedModel(
                f"the graph needs {len(held)} weights ({', '.join(held[:3])}, …), which its JSON "
                "does not hold: pass the model it was captured from"
            )
        if any(output.mutates is not None for output in graph.outputs):
            raise UnsupportedModel(
                "the graph writes to its inputs: pass the model it was captured from"
            )
        self.graph = graph
        self._program = TorchProgram(graph)

    def forward(self, *inputs: torch.Tensor) -> Any:
        outputs = self._program(*inputs)
        return outputs[0] if len(outputs) == 1 else outputs

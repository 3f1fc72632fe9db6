"""The state of one pass over an exported program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend.captured import Binding
from kernel_gen.frontend.lower.core import Lowering, NotLowered, Val
from kernel_gen.frontend.symbols import Symbols
from kernel_gen.ir.builder import GraphBuilder


@dataclass(slots=True)
class Reading:
    """The state of one pass over an exported program."""

    program: torch.export.ExportedProgram
    literals: frozenset[str]
    builder: GraphBuilder
    symbols: Symbols
    lowering: Lowering
    values: dict[fx.Node, Val | tuple[Val | None, ...]] = field(default_factory=dict)
    bindings: list[Binding] = field(default_factory=list)
    input_of: dict[str, int] = field(default_factory=dict)  # placeholder -> graph input
    leaves: list[object] = field(default_factory=list)  # user placeholders in order
    refused: dict[Any, NotLowered] = field(default_factory=dict)  # operator -> why
    is_partial: bool = False  # stopped at a call that may go away by decomposition
    strides: dict[int, tuple[int, ...]] = field(default_factory=dict)  # of output values

    def tensor(self, node: fx.Node) -> Val:
        found = self.values.get(node)
        if not isinstance(found, Val):
            raise UnsupportedModel(f"{node.target} gives no tensor that the graph can hold")
        return found

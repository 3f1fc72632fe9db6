"""`torch.compile(model, backend="autofusion")`.

Dynamo hands over an FX graph whose placeholders are the user's tensors, the model's parameters
and, with dynamic shapes, symbolic sizes. Parameters become constants of a module of our own; sizes
come as plain integers at the call, and each shape gets its own plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from graph_autofusion.module import OptimizedModule
from graph_autofusion.options import Options, parse_options


class _Lifted(torch.nn.Module):
    """An FX graph with some placeholders bound to parameters that it owns."""

    def __init__(self, graph: torch.fx.GraphModule, bound: dict[int, torch.Tensor]) -> None:
        super().__init__()
        self.graph_module = graph
        self._positions = tuple(sorted(bound))
        for position, tensor in bound.items():
            self._hold(position, tensor)

    def _hold(self, position: int, tensor: torch.Tensor) -> None:
        name = f"constant_{position}"
        if isinstance(tensor, torch.nn.Parameter):
            self.register_parameter(name, tensor)
        else:
            self.register_buffer(name, tensor)

    def rebind(self, args: Sequence[Any]) -> None:
        """Takes the tensors that this call brought, where they are others than before."""
        for position in self._positions:
            if getattr(self, f"constant_{position}") is not args[position]:
                self._hold(position, args[position])

    def forward(self, *user: Any) -> Any:
        merged = list(user)
        for position in self._positions:
            merged.insert(position, getattr(self, f"constant_{position}"))
        return self.graph_module(*merged)


def autofusion(
    graph: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """The backend. `options` takes the keyword arguments of `gaf.optimize`."""
    parsed: Options = parse_options(**{**_DEFAULTS, **(options or {})})
    constant = {i for i, value in enumerate(example_inputs) if _is_constant(graph, i, value)}
    state: dict[str, tuple[_Lifted, OptimizedModule]] = {}

    def run(*args: Any) -> Any:
        if "module" not in state:
            lifted = _Lifted(graph, {i: args[i] for i in constant})
            state["module"] = (lifted, OptimizedModule(lifted, parsed))
        lifted, optimized = state["module"]
        lifted.rebind(args)
        return optimized(*(arg for i, arg in enumerate(args) if i not in constant))

    return run


def _is_constant(graph: torch.fx.GraphModule, position: int, value: Any) -> bool:
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    original = placeholders[position].meta.get("example_value", value)
    return isinstance(value, torch.nn.Parameter) or isinstance(original, torch.nn.Parameter)


_DEFAULTS: dict[str, Any] = {
    "device": "cpu",
    "budget": None,
    "service": None,
    "store": None,
    "on_miss": None,
    "training": False,
    "dynamic_shapes": None,
    "rules": None,
    "numerics": "fast",
    "strict": False,
}

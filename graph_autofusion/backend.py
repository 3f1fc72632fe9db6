"""`torch.compile(model, backend="autofusion")`.

Dynamo hands over an FX graph whose placeholders are the user's tensors, the model's parameters
and, with dynamic shapes, symbolic sizes. Parameters become constants of a module of our own; sizes
and other numbers come as plain ones at the call, and each shape gets its own plan.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch

from graph_autofusion.module import OptimizedModule
from graph_autofusion.options import Options, parse_mapping


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


class _Compiled:
    """What Dynamo calls instead of the graph, with all of the graph's arguments."""

    def __init__(
        self, graph: torch.fx.GraphModule, examples: Sequence[Any], options: Options
    ) -> None:
        self._graph = _copy(graph)
        self._numbers = _numbers(self._graph)
        self._constants = _constants(self._graph, examples)
        self._options = options
        self._made: tuple[_Lifted, OptimizedModule] | None = None
        self._lock = threading.Lock()

    def __call__(self, *args: Any) -> Any:
        given = [a.item() if i in self._numbers else a for i, a in enumerate(args)]
        lifted, optimized = self._made or self._make(given)
        lifted.rebind(given)
        return optimized(*(arg for i, arg in enumerate(given) if i not in self._constants))

    def _make(self, args: Sequence[Any]) -> tuple[_Lifted, OptimizedModule]:
        with self._lock:
            if self._made is None:
                lifted = _Lifted(self._graph, {i: args[i] for i in self._constants})
                self._made = (lifted, OptimizedModule(lifted, self._options))
            return self._made


def autofusion(
    graph: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """The backend. `options` takes the keyword arguments of `gaf.optimize`; `mode` is ignored.

    Raises InvalidInput for other options.
    """
    return _Compiled(graph, example_inputs, parse_mapping(options or {}))


def _copy(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same members under a graph that may be edited."""
    copied = torch.fx.Graph()
    copied.output(copied.graph_copy(graph.graph, {}))
    return torch.fx.GraphModule(graph, copied)


def _placeholders(graph: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]


def _constants(graph: torch.fx.GraphModule, examples: Sequence[Any]) -> frozenset[int]:
    """Positions of the parameters among the graph's arguments."""
    pairs = zip(_placeholders(graph), examples, strict=True)
    return frozenset(
        i
        for i, (node, value) in enumerate(pairs)
        if isinstance(value, torch.nn.Parameter)
        or isinstance(node.meta.get("example_value"), torch.nn.Parameter)
    )


def _numbers(graph: torch.fx.GraphModule) -> frozenset[int]:
    """Positions of arguments that are numbers, and takes them as such.

    With dynamic=True a float such as `eps` comes as a tensor of which the graph takes the item:

        item = l_eps.item(); layer_norm(x, …, item)   ->   layer_norm(x, …, l_eps)
    """
    found = set()
    for position, node in enumerate(_placeholders(graph)):
        items = [u for u in node.users if u.op == "call_method" and u.target == "item"]
        if not items or len(items) != len(node.users):
            continue
        found.add(position)
        for item in items:
            item.replace_all_uses_with(node)
            graph.graph.erase_node(item)
    if found:
        graph.recompile()
    return frozenset(found)

"""Recurrent layers: torch's own, whose gates stand in another order.

ONNX: LSTM input, output, forget, cell; GRU update, reset, hidden. torch: input, forget, cell,
output; reset, update, new.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kernel_gen.frontend.onnx.values import Call, rule

_GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
_ACTIVATIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"], "RNN": ["Tanh"]}
_LAYERS: dict[str, Callable[..., Any]] = {
    "LSTM": torch.lstm,
    "GRU": torch.gru,
    "RNN": torch.rnn_tanh,
}
_MOST_STEPS = 64  # that are written out where torch has no layer that computes them


@dataclass(frozen=True, slots=True)
class _Layer:
    """Operands in torch's order: `value` [steps, batch, features], `states` of [directions, batch,
    hidden] each, and for each direction the weights [gates * hidden, features], [gates * hidden,
    hidden] and their two biases."""

    value: Tensor
    states: tuple[Tensor, ...]
    weights: tuple[tuple[Tensor, ...], ...]


@rule("LSTM", "GRU", "RNN")
def recurrent(call: Call) -> list[Tensor]:
    function = _function(call)
    batch_first = bool(call.attr("layout", 0))
    layer = _layer(call, batch_first=batch_first)
    backwards = _direction(call) == "reverse"
    value = layer.value.flip(0) if backwards else layer.value
    if call.op == "GRU" and not call.attr("linear_before_reset", 0):
        found, *states = _gru_reset_first(call, value, layer)
    else:
        weights = [tensor for group in layer.weights for tensor in group]
        given: Any = layer.states if call.op == "LSTM" else layer.states[0]
        both = len(layer.weights) == 2
        found, *states = function(value, given, weights, True, 1, 0.0, False, both, False)
    count = len(layer.weights)
    steps = found.reshape(*found.shape[:2], count, -1).transpose(1, 2)
    steps = steps.flip(0) if backwards else steps
    if batch_first:
        results = [steps.permute(2, 0, 1, 3), *(state.transpose(0, 1) for state in states)]
    else:
        results = [steps, *states]
    return results[: call.outputs]


def _direction(call: Call) -> str:
    return str(call.attr("direction", b"forward").decode())


def _function(call: Call) -> Callable[..., Any]:
    """torch's layer for a node; raises UnsupportedModel for what it does not compute."""
    count = 2 if _direction(call) == "bidirectional" else 1
    named = [name.decode() for name in call.attr("activations", [])]
    wanted = named or _ACTIVATIONS[call.op] * count
    if call.attr("clip") is not None or call.attr("input_forget", 0) or call.has(7):
        raise call.refuse("clipped, coupled or peephole gates")
    if call.op == "RNN" and wanted == ["Relu"] * count:
        relu: Callable[..., Any] = torch.rnn_relu
        return relu
    if wanted != _ACTIVATIONS[call.op] * count:
        raise call.refuse(f"its activations {', '.join(wanted)}")
    return _LAYERS[call.op]


def _layer(call: Call, *, batch_first: bool) -> _Layer:
    value, inner, outer = call.tensor(0), call.tensor(1), call.tensor(2)
    value = value.transpose(0, 1) if batch_first else value
    steps, batch = value.shape[:2]
    if call.has(4) and any(n != steps for n in call.ints(4, "sequence lengths")):
        raise call.refuse("sequences of several lengths")
    directions, hidden = outer.shape[0], outer.shape[2]
    count = 2 if call.op == "LSTM" else 1
    none = torch.zeros(directions, batch, hidden, dtype=value.dtype)
    given = (call.optional(5 + position) for position in range(count))
    states = tuple(none if s is None else s.transpose(0, 1) if batch_first else s for s in given)
    bias = call.optional(3)
    if bias is None:
        bias = torch.zeros(directions, 2 * inner.shape[1], dtype=value.dtype)
    parts = (inner, outer, *bias.chunk(2, 1))
    weights = (tuple(_reordered(call.op, part[d]) for part in parts) for d in range(directions))
    return _Layer(value, states, tuple(weights))


def _reordered(op: str, weight: Tensor) -> Tensor:
    gates = weight.chunk(len(_GATES[op]), 0)
    return torch.cat([gates[place] for place in _GATES[op]])


def _gru_reset_first(call: Call, value: Tensor, layer: _Layer) -> tuple[Tensor, Tensor]:
    """A GRU that resets the state before its product, step by step: torch's resets after it."""
    if value.shape[0] > _MOST_STEPS:
        raise call.refuse(f"linear_before_reset=0 over more than {_MOST_STEPS} steps")
    found, last = [], []
    for d, (inner, outer, bias, state_bias) in enumerate(layer.weights):
        order = range(value.shape[0]) if d == 0 else reversed(range(value.shape[0]))
        state, steps = layer.states[0][d], {}
        for step in order:
            gates = F.linear(value[step], inner, bias + state_bias).chunk(3, 1)
            state_reset, state_update, state_new = outer.chunk(3, 0)
            reset = torch.sigmoid(gates[0] + state @ state_reset.t())
            update = torch.sigmoid(gates[1] + state @ state_update.t())
            new = torch.tanh(gates[2] + (reset * state) @ state_new.t())
            state = steps[step] = (1 - update) * new + update * state
        found.append(torch.stack([steps[step] for step in range(value.shape[0])]))
        last.append(state)
    return torch.cat(found, -1), torch.stack(last)

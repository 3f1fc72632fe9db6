"""Reductions, softmax, cumulative sums, selections of extremes."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from kernel_gen.frontend.onnx.values import Call, rule
from kernel_gen.frontend.torch_calls.reductions import extreme

_REDUCE: dict[str, Callable[[Tensor, list[int], bool], Tensor]] = {
    "ReduceL1": lambda x, axes, keep: x.abs().sum(axes, keepdim=keep, dtype=x.dtype),
    "ReduceL2": lambda x, axes, keep: _root((x * x).sum(axes, keepdim=keep, dtype=x.dtype)),
    "ReduceLogSum": lambda x, axes, keep: x.sum(axes, keepdim=keep).log(),
    "ReduceLogSumExp": lambda x, axes, keep: torch.logsumexp(x, axes, keepdim=keep),
    "ReduceMax": lambda x, axes, keep: _extreme(x, axes, keep, largest=True),
    "ReduceMean": lambda x, axes, keep: _mean(x, axes, keep),
    "ReduceMin": lambda x, axes, keep: _extreme(x, axes, keep, largest=False),
    "ReduceSum": lambda x, axes, keep: x.sum(axes, keepdim=keep, dtype=x.dtype),
    "ReduceSumSquare": lambda x, axes, keep: (x * x).sum(axes, keepdim=keep, dtype=x.dtype),
}
_OPERAND_SINCE = {"ReduceSum": 13}


def _root(total: Tensor) -> Tensor:
    return total.sqrt() if total.is_floating_point() else total.double().sqrt().to(total.dtype)


def _mean(x: Tensor, axes: list[int], keep: bool) -> Tensor:
    if x.is_floating_point():
        return x.mean(axes, keepdim=keep)
    return x.double().mean(axes, keepdim=keep).to(x.dtype)


@rule(*_REDUCE, "ReduceProd")
def reduce(call: Call) -> Tensor:
    value, keep = call.tensor(0), bool(call.attr("keepdims", 1))
    axes = call.axes(1, since=_OPERAND_SINCE.get(call.op, 18))
    if not axes:
        if call.attr("noop_with_empty_axes", 0):
            return value
        axes = list(range(value.ndim))
    if not axes:
        return _REDUCE[call.op](value.reshape(1), [0], False) if call.op in _REDUCE else value
    if call.op == "ReduceProd":
        return _product(value, axes, keep)
    return _REDUCE[call.op](value, axes, keep)


def _extreme(value: Tensor, axes: list[int], keep: bool, *, largest: bool) -> Tensor:
    if value.dtype is torch.bool:  # largest: any, smallest: all
        value = value.to(torch.uint8)
        return extreme(value, axes, keep, largest=largest).to(torch.bool)
    return extreme(value, axes, keep, largest=largest)


def _product(value: Tensor, axes: list[int], keep: bool) -> Tensor:
    order = sorted((axis % value.ndim for axis in axes), reverse=True)
    for axis in order:
        value = torch.prod(value, axis, keepdim=keep, dtype=value.dtype)
    return value


@rule("Softmax", "LogSoftmax", "Hardmax")
def softmax(call: Call) -> Tensor:
    """Before opset 13 all axes from `axis` on are one row."""
    value = call.tensor(0)
    if call.opset >= 13:
        return _softmax(call.op, value, call.attr("axis", -1))
    axis = call.attr("axis", 1) % max(value.ndim, 1)
    return _softmax(call.op, value.flatten(axis), -1).reshape(value.shape)


def _softmax(op: str, value: Tensor, axis: int) -> Tensor:
    if op == "Softmax":
        return torch.softmax(value, axis)
    if op == "LogSoftmax":
        return torch.log_softmax(value, axis)
    best = torch.argmax(value, axis, keepdim=True)
    extents = [1] * value.ndim
    extents[axis] = -1
    positions = torch.arange(value.shape[axis]).reshape(extents)
    return (positions == best).to(value.dtype)


@rule("ArgMax", "ArgMin")
def arg_extreme(call: Call) -> Tensor:
    value, axis = call.tensor(0), call.attr("axis", 0)
    find: Callable[..., Tensor] = torch.argmax if call.op == "ArgMax" else torch.argmin
    keep = bool(call.attr("keepdims", 1))
    if not call.attr("select_last_index", 0):
        return find(value, axis, keepdim=keep)
    last: Tensor = value.shape[axis] - 1 - find(value.flip(axis), axis, keepdim=keep)
    return last


@rule("CumSum", "CumProd")
def cumulate(call: Call) -> Tensor:
    value, axis = call.tensor(0), int(call.known(1, "axis").item()) % call.tensor(0).ndim
    flipped = bool(call.attr("reverse", 0))
    value = value.flip(axis) if flipped else value
    if call.attr("exclusive", 0):
        first = torch.full_like(value.narrow(axis, 0, 1), 0 if call.op == "CumSum" else 1)
        value = torch.cat([first, value.narrow(axis, 0, value.shape[axis] - 1)], axis)
    function = torch.cumsum if call.op == "CumSum" else torch.cumprod
    total = function(value, axis, dtype=value.dtype)
    return total.flip(axis) if flipped else total


@rule("TopK")
def top_k(call: Call) -> list[Tensor]:
    """Equal values come in the order of their positions, which torch.topk does not promise."""
    value, k, axis = call.tensor(0), int(call.known(1, "k").item()), call.attr("axis", -1)
    ordered = torch.sort(value, dim=axis, descending=bool(call.attr("largest", 1)), stable=True)
    return [found.narrow(axis, 0, k) for found in ordered]

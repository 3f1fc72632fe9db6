"""Convolutions with a sum and an activation as one call of oneDNN, their weights packed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from kernel_gen.frontend.torch_ops import call_for
from kernel_gen.ir.fused_convolution import APPLIED, FusedConvolution, fused_convolution
from kernel_gen.ir.graph import Graph, Node

Tensor = torch.Tensor
_NAMES = {"silu": "swish"}
_IN_PLACE: dict[str, Callable[[Tensor, Node], Tensor]] = {
    "relu": lambda x, node: x.relu_(),
    "relu6": lambda x, node: torch.nn.functional.hardtanh_(x, 0.0, 6.0),
    "hardsigmoid": lambda x, node: torch.nn.functional.hardsigmoid(x, inplace=True),
    "clamp": lambda x, node: call_for(node)(x),
}


class ConvolutionCall:
    """One fused convolution: `call(*tensors)` takes those of the values `inputs`.

    The weight is laid out for the library when it is first seen. A call therefore serves one
    binding of a plan, whose constants are not written to.
    """

    def __init__(self, program: Graph, fused: FusedConvolution) -> None:
        node = program.nodes[fused.convolution]
        residual = () if fused.residual is None else (fused.residual,)
        self.inputs = (*node.inputs, *residual)
        self.output = program.nodes[fused.nodes[-1]].output
        keys = ("padding", "stride", "dilation")
        self._settings: tuple[Any, ...] = tuple(node.attr(key) for key in keys)
        self._groups = node.attr("groups")
        self._added = fused.residual is not None
        last = None if fused.activation is None else program.nodes[fused.activation]
        inside = last is not None and fused.is_one_kernel(program)
        self._applied = _applied(last if inside else None)
        self._following = None if inside or last is None else _following(last)
        self._weight: tuple[Tensor, Tensor] | None = None  # as given, as packed

    def __call__(self, x: Tensor, weight: Tensor, *rest: Tensor) -> Tensor:
        packed = self._packed(x, weight)
        residual, bias = (rest[-1], rest[:-1]) if self._added else (None, rest)
        common = (packed, *(bias or (None,)), *self._settings, self._groups)
        if residual is None:
            result = torch.ops.mkldnn._convolution_pointwise(x, *common, *self._applied)
        else:
            result = torch.ops.mkldnn._convolution_pointwise.binary(
                x, residual, *common, "add", 1.0, None, [], None
            )
        return result if self._following is None else self._following(result)

    def results(self, *tensors: Tensor) -> dict[int, Tensor]:
        """The tensor by value."""
        return {self.output: self(*tensors)}

    def _packed(self, x: Tensor, weight: Tensor) -> Tensor:
        known = self._weight
        if known is None or known[0] is not weight:
            packed = torch.ops.mkldnn._reorder_convolution_weight(
                weight.contiguous(), *self._settings, self._groups, list(x.shape)
            )
            self._weight = known = (weight, packed)
        return known[1]


def _applied(node: Node | None) -> tuple[str, list[Any], str]:
    """Name, numbers and algorithm of an activation for oneDNN."""
    if node is None:
        return "none", [], ""
    assert node.op in APPLIED
    numbers = [node.attr("slope")] if node.op == "leaky_relu" else []
    return _NAMES.get(node.op, node.op), numbers, str(node.attr("approximate") or "")


def _following(node: Node) -> Callable[[Tensor], Tensor]:
    if node.op in _IN_PLACE:
        return lambda x: _IN_PLACE[node.op](x, node)
    return call_for(node)


def library_call(program: Graph, nodes: Sequence[int]) -> ConvolutionCall | None:
    """The nodes as one call of the library's; None if it has none for them."""
    mkldnn = torch.backends.mkldnn
    if not (mkldnn.is_available() and mkldnn.enabled):  # type: ignore[no-untyped-call]
        return None
    fused = fused_convolution(program, nodes)
    return None if fused is None else ConvolutionCall(program, fused)

"""Convolutions, and what goes their way back."""

from __future__ import annotations

import torch

from kernel_gen.errors import InvalidGraph
from kernel_gen.frontend.torch_calls.attrs import Attrs, Call, Maker


def _convolution(a: Attrs) -> Call:
    stride, padding, dilation = (a.ints(key) for key in ("stride", "padding", "dilation"))
    groups = a.int("groups")
    functions: dict[int, Call] = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}
    function = functions.get(len(stride))
    if function is None:
        raise InvalidGraph(f"convolution over {len(stride)} dimensions: torch has 1 to 3")
    return lambda x, w, b=None: function(x, w, b, stride, padding, dilation, groups)


def _conv_transpose(a: Attrs) -> Call:
    stride, padding, dilation = (a.ints(key) for key in ("stride", "padding", "dilation"))
    more, groups = a.ints("output_padding"), a.int("groups")
    return lambda x, w, b=None: torch.convolution(
        x, w, b, stride, padding, dilation, True, more, groups
    )


def _weight_gradient(a: Attrs) -> Call:
    stride, padding, dilation = (a.ints(key) for key in ("stride", "padding", "dilation"))
    kernel, groups = a.ints("kernel"), a.int("groups")
    none = (0,) * len(kernel)

    def call(x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        weight = x.new_zeros((gradient.shape[1], x.shape[1] // groups, *kernel))  # its shape
        only = [False, True, False]
        found: torch.Tensor = torch.ops.aten.convolution_backward(
            gradient, x, weight, None, stride, padding, dilation, False, none, groups, only
        )[1]
        return found

    return call


MAKERS: dict[str, Maker] = {
    "convolution": _convolution,
    "conv_transpose": _conv_transpose,
    "conv_weight_gradient": _weight_gradient,
}

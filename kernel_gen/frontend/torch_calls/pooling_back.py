"""A pooling's way back: positions of largest elements, and gradients of images."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from kernel_gen.errors import InvalidGraph
from kernel_gen.frontend.torch_calls.attrs import Attrs, Call, Maker

Tensor = torch.Tensor


def _argmax_pool(a: Attrs) -> Call:
    kernel, stride, dilation = (list(a.ints(key)) for key in ("kernel", "stride", "dilation"))
    low, high = list(a.ints("low")), a.ints("high")
    functions: dict[int, Call] = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
    function = functions.get(len(kernel))
    if function is None:
        raise InvalidGraph(f"{a.op} over {len(kernel)} dimensions: torch has 1 to 3")

    def call(x: Tensor) -> Tensor:
        count = len(kernel)
        image = x.shape[x.dim() - count :]
        flat = x.reshape(math.prod(x.shape[: x.dim() - count]), 1, *image)
        ceil = any(after > before for before, after in zip(low, high, strict=True))
        found: Tensor = function(flat, kernel, stride, low, dilation, ceil, True)[1]
        return found.reshape(*x.shape[: x.dim() - count], *found.shape[2:])

    return call


def _max_pool_gradient(a: Attrs) -> Call:
    image = a.ints("image")

    def call(gradient: Tensor, places: Tensor) -> Tensor:
        """By a scatter, which checks the places: torch's own call trusts them."""
        lead = gradient.shape[: gradient.dim() - len(image)]
        wide = gradient.reshape(*lead, -1).float() if gradient.element_size() < 4 else gradient
        zeros = wide.new_zeros((*lead, math.prod(image)))
        made = zeros.scatter_add(-1, places.reshape(*lead, -1), wide.reshape(*lead, -1))
        return made.to(gradient.dtype).reshape(*lead, *image)

    return call


def _avg_pool_gradient(a: Attrs) -> Call:
    kernel, stride, image, low = (a.ints(key) for key in ("kernel", "stride", "image", "low"))
    ones, none = (1,) * len(kernel), (0,) * len(kernel)

    def call(gradient: Tensor) -> Tensor:
        """Windows spread out without a border; then the border is cut off."""
        lead, windows = gradient.shape[: -len(kernel)], gradient.shape[-len(kernel) :]
        flat = gradient.reshape(math.prod(lead), 1, *windows) / math.prod(kernel)
        weight = gradient.new_ones((1, 1, *kernel))
        full = torch.convolution(flat, weight, None, stride, none, ones, True, none, 1)
        amounts: list[int] = []
        for d in reversed(range(len(kernel))):
            amounts += [-low[d], image[d] - full.shape[2 + d] + low[d]]
        return F.pad(full, amounts).reshape(*lead, *image)

    return call


MAKERS: dict[str, Maker] = {
    "argmax_pool": _argmax_pool,
    "max_pool_gradient": _max_pool_gradient,
    "avg_pool_gradient": _avg_pool_gradient,
}

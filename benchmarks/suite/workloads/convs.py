"""Convolutions and batch norms as in CNNs, in evaluation mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class BnReluAdd(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = used_batch_norm(channels)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return torch.relu(self.norm(x)) + residual


class ConvBnRelu(nn.Sequential):
    def __init__(self, channels: int) -> None:
        conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        super().__init__(conv, used_batch_norm(channels), nn.ReLU())


class DepthwiseBnHardswish(nn.Sequential):
    def __init__(self, channels: int) -> None:
        conv = nn.Conv2d(channels, channels, 3, padding=1, groups=channels, bias=False)
        super().__init__(conv, used_batch_norm(channels), nn.Hardswish())


def used_batch_norm(channels: int) -> nn.BatchNorm2d:
    """With statistics and weights as after training, so that nothing cancels out."""
    norm = nn.BatchNorm2d(channels)
    with torch.no_grad():
        norm.weight.uniform_(0.5, 1.5)
        norm.bias.normal_(0.0, 0.1)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        norm.running_mean.normal_(0.0, 0.1)
        norm.running_var.uniform_(0.5, 1.5)
    return norm


BUILDERS: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "bn_relu_add": lambda: (
        BnReluAdd(256),
        (torch.randn(32, 256, 14, 14), torch.randn(32, 256, 14, 14)),
    ),
    "conv_bn_relu": lambda: (ConvBnRelu(64), (torch.randn(8, 64, 56, 56),)),
    "dwconv_bn_hswish": lambda: (DepthwiseBnHardswish(96), (torch.randn(8, 96, 56, 56),)),
}

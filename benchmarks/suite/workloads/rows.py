"""Elementwise chains and row norms: bound by memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RmsResidual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width, eps=1e-6)

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        total = x + residual
        return self.norm(total), total


class SoftmaxMask(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return torch.softmax(x * 0.125 + mask, -1)


class GeluBiasResidual(nn.Module):
    """gelu(x + bias) · r + x."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x: Tensor, r: Tensor) -> Tensor:
        return F.gelu(x + self.bias) * r + x


class LnGelu(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return F.gelu(self.norm(x + residual))


class TransAddRelu(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.relu(x.t() + y)


class GroupNormSilu(nn.Sequential):
    def __init__(self, groups: int, channels: int) -> None:
        super().__init__(nn.GroupNorm(groups, channels), nn.SiLU())


class Rope(nn.Module):
    """Rotary embedding of (batch, heads, positions, width) by the halves of each head."""

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-second, first), dim=-1) * sin


def rope_tables(positions: int, width: int) -> tuple[Tensor, Tensor]:
    rates = 1.0 / 10000.0 ** (torch.arange(0, width, 2).float() / width)
    angles = torch.outer(torch.arange(positions).float(), rates).repeat(1, 2)
    return angles.cos(), angles.sin()


def quant_dequant(x: Tensor, scale: Tensor) -> Tensor:
    """To int8 by row scales and back."""
    levels = torch.clamp(torch.round(x / scale), -128, 127).to(torch.int8)
    return levels.to(x.dtype) * scale


def mul_sum(x: Tensor, y: Tensor) -> Tensor:
    return (x * y).sum(-1)


def causal_mask(size: int) -> Tensor:
    return torch.full((size, size), -math.inf).triu(1)


def _randn(*shape: int) -> Tensor:
    return torch.randn(*shape)


def _quantised() -> tuple[Tensor, Tensor]:
    x = _randn(4096, 1024)
    return x, x.abs().amax(-1, keepdim=True) / 127


BUILDERS: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "rms_res": lambda: (RmsResidual(4096), (_randn(1024, 4096), _randn(1024, 4096))),
    "softmax_mask": lambda: (SoftmaxMask(), (_randn(12, 512, 512), causal_mask(512))),
    "gelu_bias_res": lambda: (GeluBiasResidual(4096), (_randn(1024, 4096), _randn(1024, 4096))),
    "ln_gelu": lambda: (LnGelu(768), (_randn(4096, 768), _randn(4096, 768))),
    "trans_add_relu": lambda: (TransAddRelu(), (_randn(2048, 2048), _randn(2048, 2048))),
    "groupnorm_silu": lambda: (GroupNormSilu(32, 256), (_randn(8, 256, 32, 32),)),
    "rope": lambda: (Rope(), (_randn(1, 32, 512, 128), *rope_tables(512, 128))),
    "quant_dequant": lambda: (quant_dequant, _quantised()),
    "mul_sum": lambda: (mul_sum, (_randn(4096, 4096), _randn(4096, 4096))),
    "mul_sum_small": lambda: (mul_sum, (_randn(256, 100), _randn(256, 100))),
}

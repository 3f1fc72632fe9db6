"""The programs of the suite: name -> (callable, inputs, oracle).

The form is that of a cases file: a module or function, its positional inputs, and "eager" (same
values as eager torch) or "fp64" (closer to the float64 result than rtol 1e-5).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Case = tuple[Callable[..., Any], tuple[Any, ...], str]


class _LnReluLinear(nn.Sequential):
    def __init__(self, width: int) -> None:
        super().__init__(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width))


class _SoftmaxMask(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return torch.softmax(x * 0.125 + mask, -1)


class _RmsResidual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width, eps=1e-6)

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        total = x + residual
        return self.norm(total), total


class _GeluBiasResidual(nn.Module):
    """gelu(x + bias) · r + x."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x: Tensor, r: Tensor) -> Tensor:
        return F.gelu(x + self.bias) * r + x


class _LnGelu(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return F.gelu(self.norm(x + residual))


class _TransAddRelu(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.relu(x.t() + y)


class _SwiGlu(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gated: Tensor = self.down(F.silu(self.gate(x)) * self.up(x))
        return gated


class _RecTower(nn.Module):
    """A small recommendation tower: several branches of one feature block, concatenated."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(3 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        branches = [torch.sigmoid(x) * self.scale, torch.tanh(self.norm(x)), x.relu() + x.square()]
        scored: Tensor = torch.sigmoid(self.head(torch.cat(branches, -1)))
        return scored


def _bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    config = BertConfig(num_hidden_layers=2)
    return _LastHidden(BertModel(config, add_pooling_layer=False))


class _LastHidden(nn.Module):
    """A transformers encoder as tensor -> tensor."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, ids: Tensor) -> Tensor:
        hidden: Tensor = self.model(input_ids=ids).last_hidden_state
        return hidden


def _randn(*shape: int) -> Tensor:
    return torch.randn(*shape)


def _causal_mask(size: int) -> Tensor:
    return torch.full((size, size), -math.inf).triu(1)


BUILDERS: dict[str, Callable[[], tuple[nn.Module, tuple[Any, ...]]]] = {
    "ln_relu_mm": lambda: (_LnReluLinear(4096), (_randn(1024, 4096),)),
    "softmax_mask": lambda: (_SoftmaxMask(), (_randn(12, 512, 512), _causal_mask(512))),
    "ln_gelu": lambda: (_LnGelu(768), (_randn(4096, 768), _randn(4096, 768))),
    "rms_res": lambda: (_RmsResidual(4096), (_randn(1024, 4096), _randn(1024, 4096))),
    "gelu_bias_res": lambda: (_GeluBiasResidual(4096), (_randn(1024, 4096), _randn(1024, 4096))),
    "trans_add_relu": lambda: (_TransAddRelu(), (_randn(2048, 2048), _randn(2048, 2048))),
    "swiglu": lambda: (_SwiGlu(1024, 2816), (_randn(256, 1024),)),
    "rec_tower": lambda: (_RecTower(64), (_randn(512, 64),)),
    "bert_base_2l": lambda: (_bert(), (torch.randint(0, 30522, (4, 128)),)),
}


def load_case(name: str) -> Case:
    """The workload `name` with weights and inputs of a fixed seed."""
    torch.manual_seed(0)
    model, inputs = BUILDERS[name]()
    return model.eval(), inputs, "eager"

"""Matrix products with what stands before and after them, and attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.suite.workloads.rows import causal_mask


class LnReluLinear(nn.Sequential):
    def __init__(self, width: int) -> None:
        super().__init__(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width))


class SwiGlu(nn.Module):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gated: Tensor = self.down(F.silu(self.gate(x)) * self.up(x))
        return gated


class GateUp(nn.Module):
    """The gated half of a decoder's MLP on one token."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gated: Tensor = F.silu(self.gate(x)) * self.up(x)
        return gated


class GeluMlp(nn.Sequential):
    def __init__(self, width: int, hidden: int) -> None:
        super().__init__(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


def attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _attention_inputs(*shape: int) -> tuple[Tensor, ...]:
    return (*(torch.randn(*shape) for _ in range(3)), causal_mask(shape[-2]))


BUILDERS: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "ln_relu_mm": lambda: (LnReluLinear(4096), (torch.randn(1024, 4096),)),
    "swiglu": lambda: (SwiGlu(1024, 2816), (torch.randn(256, 1024),)),
    "gemv_swiglu": lambda: (GateUp(4096, 11008), (torch.randn(1, 4096),)),
    "mlp_bf16": lambda: (
        GeluMlp(1024, 4096).to(torch.bfloat16),
        (torch.randn(256, 1024).to(torch.bfloat16),),
    ),
    "attention": lambda: (attention, _attention_inputs(4, 12, 512, 64)),
}

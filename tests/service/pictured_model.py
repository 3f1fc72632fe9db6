"""The model in the pictures of docs/dashboard.md: two transformer blocks and a sort at the end."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

_WIDTH, _HEADS, _TOKENS = 256, 4, 128


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(_WIDTH), nn.LayerNorm(_WIDTH)
        self.qkv, self.out = nn.Linear(_WIDTH, 3 * _WIDTH), nn.Linear(_WIDTH, _WIDTH)
        self.up, self.down = nn.Linear(_WIDTH, 4 * _WIDTH), nn.Linear(4 * _WIDTH, _WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.qkv(self.before(x)).view(1, _TOKENS, 3, _HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2])
        x = x + self.out(seen.transpose(1, 2).reshape(1, _TOKENS, _WIDTH))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Ranker(nn.Module):
    """Two blocks, scores, and the order of the scores, which only the framework computes."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())
        self.scores = nn.Linear(_WIDTH, 100)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sort(torch.softmax(self.scores(self.blocks(x)), -1)).values


def build() -> tuple[nn.Module, tuple[Tensor]]:
    """The model with random weights, and an input."""
    torch.manual_seed(0)
    return Ranker().eval(), (torch.randn(1, _TOKENS, _WIDTH),)

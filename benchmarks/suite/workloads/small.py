"""Small programs of recommendation models: bound by calls, by gathers, by narrow pieces."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


class RecTower(nn.Module):
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


def concat_wide(*pieces: Tensor) -> Tensor:
    return torch.cat(pieces, -1).sigmoid().sum(-1)


class GatherAdd(nn.Module):
    """Rows of a table added to other rows."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, width)

    def forward(self, ids: Tensor, x: Tensor) -> Tensor:
        found: Tensor = self.table(ids) + x
        return found


class Dlrm(nn.Module):
    """A deep learning recommendation model (Naumov et al., 2019): dense features through an MLP,
    one table per sparse feature, dot products of all pairs, and an MLP on top."""

    pairs: Tensor

    def __init__(self, tables: int, rows: int, width: int, dense: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = mlp(dense, 512, 256, width)
        count = tables + 1
        self.top = mlp(width + count * (count - 1) // 2, 512, 256, 1, last=nn.Sigmoid())
        below = torch.tril_indices(count, count, offset=-1)
        self.register_buffer("pairs", below[0] * count + below[1])

    def forward(self, dense: Tensor, ids: Tensor) -> Tensor:
        x = self.bottom(dense)
        sparse = [table(ids[:, i]) for i, table in enumerate(self.tables)]
        stacked = torch.stack([x, *sparse], 1)
        products = torch.bmm(stacked, stacked.transpose(1, 2)).flatten(1)
        chosen = torch.index_select(products, 1, self.pairs)
        rated: Tensor = self.top(torch.cat([x, chosen], 1))
        return rated


def mlp(*widths: int, last: nn.Module | None = None) -> nn.Sequential:
    """Linear layers with ReLU behind each, or `last` behind the last one."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(widths):
        layers += [nn.Linear(before, after), nn.ReLU()]
    if last is not None:
        layers[-1] = last
    return nn.Sequential(*layers)


def rec_tower() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return RecTower(64), (torch.randn(512, 64),)


def _dlrm() -> tuple[nn.Module, tuple[Tensor, ...]]:
    model = Dlrm(tables=26, rows=10000, width=64, dense=13)
    return model, (torch.randn(256, 13), torch.randint(0, 10000, (256, 26)))


BUILDERS: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "rec_tower": rec_tower,
    "concat_wide": lambda: (concat_wide, tuple(torch.randn(512, 16) for _ in range(26))),
    "gather_add": lambda: (
        GatherAdd(30000, 128),
        (torch.randint(0, 30000, (4096,)), torch.randn(4096, 128)),
    ),
    "dlrm": _dlrm,
}

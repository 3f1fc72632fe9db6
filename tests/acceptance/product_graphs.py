"""Random programs around matrix products of one input: norms before and after, gates, residuals."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

_BEFORE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "nothing": lambda x: x,
    "relu": torch.relu,
    "layer norm": lambda x: F.layer_norm(x, x.shape[-1:]),
    "rms norm": lambda x: F.rms_norm(x, x.shape[-1:], eps=1e-6),
    "softmax": lambda x: torch.softmax(x, -1),
    "transpose": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
}
_GATES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "silu": F.silu,
    "gelu": F.gelu,
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
}
_AFTER: dict[str, Callable[[torch.Tensor], Any]] = {
    "nothing": lambda y: y,
    "layer norm": lambda y: F.layer_norm(y, y.shape[-1:]),
    "sum and norm": lambda y: (y, F.rms_norm(y, y.shape[-1:], eps=1e-6)),
    "softmax": lambda y: torch.softmax(y, -1),
    "log softmax": lambda y: torch.log_softmax(0.1 * y, -1),
    "statistics": lambda y: (y.mean(-1), y.amax(-1, keepdim=True)),
    "norm of heads": lambda y: F.rms_norm(y.unflatten(-1, (3, -1)), (y.shape[-1] // 3,), eps=1e-5),
    "scores": lambda y: torch.softmax(y, -1).sum(-1),
    "pooled": lambda y: y.mean(-2),
}
_TYPES = (torch.float32, torch.float32, torch.float64)  # eager rounds narrow ones op by op


def product_program(seed: int) -> tuple[str, Callable[..., Any], list[torch.Tensor]]:
    """A name, a function of tensors, and its arguments: weights come as arguments too."""
    rng = random.Random(seed)
    before, gate = rng.choice(list(_BEFORE)), rng.choice(list(_GATES))
    after, products = rng.choice(list(_AFTER)), rng.choice((1, 1, 2, 2, 3))
    joined, biased, residual = rng.random() < 0.7, rng.random() < 0.5, rng.random() < 0.5
    rows, depth, cols = rng.randint(1, 45), rng.randint(1, 70), 3 * rng.randint(1, 28)
    batch, dtype = rng.choice(((), (), (1,), (2,), (3,))), rng.choice(_TYPES)
    generator = torch.Generator().manual_seed(seed)

    def tensor(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator).to(dtype)

    def function(x: torch.Tensor, rest: torch.Tensor, bias: torch.Tensor, *w: torch.Tensor) -> Any:
        h = _BEFORE[before](x)
        parts = [F.linear(h, weight, bias if biased else None) for weight in w]
        if not joined:
            return [_AFTER[after](part) for part in parts]
        y = parts[0]
        for part in parts[1:]:
            y = _GATES[gate](y) * part
        return _AFTER[after](y + rest if residual else y)

    weights = [tensor(cols, depth) / max(depth, 1) ** 0.5 for _ in range(products)]
    inputs = [tensor(*batch, rows, depth), tensor(*batch, rows, cols), tensor(cols), *weights]
    shape = f"{batch} {rows}x{depth}x{cols} {dtype}"
    name = f"{seed}: {before}, {products} products, joined {joined}, {after}, {shape}"
    return name, function, inputs

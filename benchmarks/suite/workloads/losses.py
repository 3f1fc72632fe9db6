"""Steps of training: a loss with its gradient, and an optimiser's update in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def cross_entropy(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Mean loss and its gradient with respect to the logits, (softmax - one-hot) / rows.

    Written out, because torch.export, which most contenders start from, takes no autograd.
    """
    log_p = F.log_softmax(logits, -1)
    loss = F.nll_loss(log_p, labels)
    hit = torch.arange(logits.shape[-1]) == labels[:, None]
    return loss, (log_p.exp() - hit.to(logits.dtype)) / logits.shape[0]


def adam_step(weight: Tensor, mean: Tensor, square: Tensor, gradient: Tensor, step: Tensor) -> None:
    """One update of Adam (learning rate 1e-3, betas 0.9 and 0.999); all but the last two inputs
    are written in place."""
    mean.lerp_(gradient, 0.1)
    square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
    corrected = (square / (1 - 0.999**step)).sqrt_().add_(1e-8)
    weight.sub_(mean / corrected * (1e-3 / (1 - 0.9**step)))


def _adam_inputs(size: int) -> tuple[Tensor, ...]:
    gradient = torch.randn(size)
    return torch.randn(size), torch.zeros(size), torch.zeros(size), gradient, torch.tensor(7.0)


BUILDERS: dict[str, Callable[[], tuple[Callable[..., Any], tuple[Any, ...]]]] = {
    "cross_entropy": lambda: (
        cross_entropy,
        (torch.randn(512, 32000), torch.randint(0, 32000, (512,))),
    ),
    "adam_step": lambda: (adam_step, _adam_inputs(4 << 20)),
}

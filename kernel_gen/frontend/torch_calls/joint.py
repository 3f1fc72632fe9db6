"""Nodes that torch makes in one call, as eager does: several calls would be a baseline that no user
has, and a plan that does the same work twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

Tensor = torch.Tensor


@dataclass(frozen=True, slots=True)
class JointCall:
    """`call(*tensors of inputs)` gives the tensors of `outputs`; it stands for all of `nodes`."""

    nodes: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    call: Callable[..., Sequence[Tensor]]

    def results(self, *tensors: Tensor) -> dict[int, Tensor]:
        """The tensors by value."""
        return dict(zip(self.outputs, self.call(*tensors), strict=True))

"""Operators on lists of tensors, as optimisers call them, against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.frontend.as_eager import assert_as_eager, ops, targets


def _tensors(seed: int, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return [(torch.rand(*s, generator=rng) + 0.5).to(dtype) for s in ((3, 4), (5,), (2, 1, 3))]


A, B, C = _tensors(0), _tensors(1), _tensors(2)
NARROW = _tensors(3, torch.bfloat16)

CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "lists": (lambda a, b: torch._foreach_add(a, b, alpha=2), (A, B)),
    "number": (lambda a: torch._foreach_sub(a, 2.5), (A,)),
    "numbers": (lambda a: torch._foreach_mul(a, [1.0, 2, 3]), (A,)),
    "tensor": (lambda a, b: torch._foreach_mul(a, b), (A, torch.tensor(3.0))),
    "number first": (lambda a: torch._foreach_pow(2.0, a), (A,)),
    "lerp": (lambda a, b: torch._foreach_lerp(a, b, 0.1), (A, B)),
    "addcmul": (lambda a, b, c: torch._foreach_addcmul(a, b, c, value=0.5), (A, B, C)),
    "addcdiv": (lambda a, b, c: torch._foreach_addcdiv(a, b, c, [0.5, 0.25, 1.0]), (A, B, C)),
    "narrow": (lambda a: torch._foreach_addcmul(a, a, a, value=0.3), (NARROW,)),
    "norm": (lambda a: torch._foreach_norm(a), (A,)),
    "other norm": (lambda a: torch._foreach_norm(a, 1), (A,)),
    "largest": (lambda a: torch._foreach_max(a), (A,)),
    "bounds": (lambda a, b: torch._foreach_clamp_min(torch._foreach_clamp_max(a, 0.9), b), (A, B)),
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_call(name: str) -> None:
    function, args = CALLS[name]
    assert not targets(assert_as_eager(function, args, exact=False))


def test_writes() -> None:
    def step(
        params: list[torch.Tensor], grads: list[torch.Tensor], momenta: list[torch.Tensor]
    ) -> torch.Tensor:
        torch._foreach_mul_(momenta, 0.9)
        torch._foreach_add_(momenta, grads)
        torch._foreach_add_(params, momenta, alpha=-0.1)
        torch._foreach_copy_(momenta, params)
        torch._foreach_zero_(grads)
        return params[0] * 2

    captured = assert_as_eager(step, (A, B, C), exact=False)
    assert not targets(captured)
    assert ops(captured)["add"] == 6

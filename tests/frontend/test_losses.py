"""Losses and their gradients, written out as programs of their own, against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend import capture
from kernel_gen.frontend.exporting import as_module
from tests.frontend.as_eager import assert_as_eager, targets

GENERATOR = torch.Generator().manual_seed(5)
LOGITS = torch.randn(6, 9, generator=GENERATOR)
TARGET = torch.tensor([0, 8, -100, 3, 3, 7])
WEIGHT = torch.rand(9, generator=GENERATOR)
SHARES = torch.softmax(torch.randn(6, 9, generator=GENERATOR), -1)
IMAGE = torch.randn(2, 4, 3, 5, generator=GENERATOR), torch.randint(4, (2, 3, 5))

LOSSES: dict[str, tuple[Callable[..., Tensor], tuple[Any, ...]]] = {
    "mean": (lambda x, t: F.cross_entropy(x, t), (LOGITS, TARGET)),
    "sum": (lambda x, t: F.cross_entropy(x, t, reduction="sum"), (LOGITS, TARGET)),
    "weighted": (lambda x, t, w: F.cross_entropy(x, t, weight=w), (LOGITS, TARGET, WEIGHT)),
    "ignored": (lambda x, t: F.cross_entropy(x, t, ignore_index=3), (LOGITS, TARGET.clamp(0))),
    "smoothed": (lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), (LOGITS, TARGET)),
    "shares": (lambda x, p: F.cross_entropy(x, p), (LOGITS, SHARES)),
    "one row": (lambda x, t: F.cross_entropy(x, t), (LOGITS[0], TARGET[1])),
    "pixels": (lambda x, t: F.cross_entropy(x, t), IMAGE),
    "each row": (
        lambda x, t, w: F.cross_entropy(x, t, weight=w, reduction="none").square().sum(),
        (LOGITS, TARGET, WEIGHT),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_loss(name: str) -> None:
    loss, args = LOSSES[name]
    assert_as_eager(loss, args, exact=False)


@pytest.mark.parametrize("name", LOSSES)
def test_gradient_and_loss(name: str) -> None:
    loss, args = LOSSES[name]
    captured = assert_as_eager(torch.func.grad_and_value(loss), args, exact=False)
    assert not targets(captured)


@pytest.mark.parametrize("norm", [F.layer_norm, F.rms_norm])
def test_gradients_of_norms(norm: Callable[..., Tensor]) -> None:
    weight = torch.rand(9, generator=GENERATOR)

    def pulled_back(x: Tensor, w: Tensor, g: Tensor) -> Any:
        return torch.func.vjp(lambda x, w: norm(x, (9,), w), x, w)[1](g)

    captured = assert_as_eager(pulled_back, (LOGITS, weight, SHARES), exact=False)
    assert not targets(captured)


def test_functions_held_by_a_module() -> None:
    gradient = as_module(torch.func.grad(LOSSES["mean"][0]))
    assert not targets(capture(gradient, (LOGITS, TARGET)))


def test_gradients_of_modules_are_refused_with_the_reason() -> None:
    class Gradient(torch.nn.Module):
        def forward(self, x: Tensor, t: Tensor) -> Any:
            return torch.func.grad(F.cross_entropy)(x, t)

    with pytest.raises(UnsupportedModel, match="torch"):
        capture(Gradient(), (LOGITS, TARGET))


def attention_loss(q: Tensor, k: Tensor) -> Tensor:
    return ((q @ k.mT).softmax(-1) @ k).square().sum()


# torch.export fails on them: it meets the wrapped tensors of torch.func where it looks at storages.
WRAPPED: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "attention": (torch.func.grad(attention_loss), (IMAGE[0][0], IMAGE[0][1])),
    "jacobian": (torch.func.jacrev(lambda x, w: torch.tanh(w @ x)), (WEIGHT, LOGITS)),
    "hessian": (torch.func.hessian(lambda x: (x**3).sum()), (LOGITS[0],)),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_gradients_that_torch_export_fails_on(name: str) -> None:
    gradient, args = WRAPPED[name]
    assert_as_eager(gradient, args, exact=False)


def loss_by_sign(x: Tensor) -> Tensor:
    return x.square().sum() if x.sum() > 0 else x.sum()


def loss_through_numpy(x: Tensor) -> Tensor:
    return x.square().sum() * float(x.detach().numpy().max())


@pytest.mark.parametrize("loss", [loss_by_sign, loss_through_numpy])
def test_a_gradient_that_decides_by_values_is_refused(loss: Callable[..., Tensor]) -> None:
    with pytest.raises(UnsupportedModel, match=r"torch\.export cannot"):
        capture(torch.func.grad(loss), (LOGITS,))
    with pytest.raises(UnsupportedModel, match=r"torch\.export cannot"):
        capture(lambda x: (loss(x), x + 1), (LOGITS,))


def test_a_gradient_that_writes_to_its_arguments_is_refused() -> None:
    seen: list[Tensor] = []

    def noted(x: Tensor, into: list[Tensor]) -> Tensor:
        into.append(x)
        return torch.func.grad(attention_loss)(x, x)

    with pytest.raises(UnsupportedModel):
        capture(noted, (IMAGE[0][0], seen))

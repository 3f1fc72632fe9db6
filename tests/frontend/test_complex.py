"""Complex tensors inside of a model, held as pairs of real numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend import capture
from tests.frontend.as_eager import assert_as_eager, targets

GENERATOR = torch.Generator().manual_seed(3)
X = torch.randn(2, 5, 4, 6, generator=GENERATOR)
Y = torch.randn(2, 5, 4, 6, generator=GENERATOR)


def turned(x: Tensor) -> Tensor:
    """Rotary positions as complex numbers."""
    steps, depth = x.shape[1], x.shape[-1]
    rates = 100.0 ** -(torch.arange(0, depth, 2) / depth)
    angles = torch.outer(torch.arange(steps).to(x.dtype), rates.to(x.dtype))
    turns = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns[None, :, None]).flatten(3)


def arithmetic(x: Tensor, y: Tensor) -> Any:
    z, w = torch.complex(x, y), torch.complex(y[:, :1], x[:, :1])
    made = (z * w.conj() - z) * x + w
    return made.real.neg(), made.imag.neg(), torch.view_as_real(made[0, -1]).neg()


def views(x: Tensor, y: Tensor) -> Any:
    z = torch.complex(x, y).transpose(-1, 1).permute(-1, 0, 2, 1)[..., 1:-1].unsqueeze(-1)
    return torch.view_as_real(z.expand(-1, -1, -1, -1, 2).reshape(4, 2, -1)).neg(), z.squeeze(
        -1
    ).imag.neg()


PRIMITIVES: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "turned": (turned, (X,)),
    "arithmetic": (arithmetic, (X, Y)),
    "views": (views, (X, Y)),
    "double": (arithmetic, (X.double(), Y.double())),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_products_sums_and_views_are_primitives(name: str) -> None:
    function, args = PRIMITIVES[name]
    assert not targets(assert_as_eager(function, args, exact=False))


class Gate(nn.Module):
    """A learned filter of frequencies."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(5, 3, 6, 2, generator=GENERATOR))

    def forward(self, x: Tensor) -> Tensor:
        found = torch.fft.rfft2(x, dim=(1, 2), norm="ortho")
        made = found * torch.view_as_complex(self.weight)
        return torch.fft.irfft2(made, s=x.shape[1:3], dim=(1, 2), norm="ortho").relu() + x


def mixed(x: Tensor) -> Tensor:
    return torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real.relu()


def loudness(x: Tensor) -> Any:
    found = torch.fft.rfft(x)
    return found.abs().square().clamp(min=1e-6).log(), found.angle(), found.exp().conj().imag.neg()


def scaled(x: Tensor) -> Tensor:
    """By complex numbers and tensors that the program writes down."""
    found = torch.complex(x, x.cos()) * torch.tensor([1j, 2 - 1j]).repeat(3)
    return (found * 0.5j + torch.tensor(1j)).real.relu()


@pytest.mark.parametrize("model", [Gate(), mixed, loudness, scaled])
def test_transforms_are_left_to_torch_and_no_more(model: Callable[..., Any]) -> None:
    captured = assert_as_eager(model, (X,), exact=False)
    assert targets(captured)
    assert any(node.op == "relu" or node.op == "log" for node in captured.graph.nodes)


def test_complex_results_are_refused_with_the_way_out() -> None:
    with pytest.raises(UnsupportedModel, match="view_as_real"):
        capture(lambda x: torch.fft.fft(x) * 2, (X,))

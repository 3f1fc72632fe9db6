"""Running sums, places in sorted rows and rounding to steps, against eager."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from tests.frontend.as_eager import assert_as_eager, ops, targets

GENERATOR = torch.Generator().manual_seed(5)
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
X = torch.randn(3, 9, 2, generator=GENERATOR)
SPECIALS = torch.tensor([math.nan, math.inf, -math.inf, 1e30, -1e30, 0.0, 0.5, -0.52, 0.125, -1])
EDGES = torch.tensor([-1.0, 0.0, 0.0, 2.0])


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.uint8, torch.bool])
def test_running_sums(dtype: torch.dtype) -> None:
    def program(x: torch.Tensor) -> Any:
        return x.cumsum(1), x.cumprod(-2), x.cumsum(0, dtype=torch.float64)

    captured = assert_as_eager(program, ((X * 3).to(dtype),), exact=False)
    assert not targets(captured)


@pytest.mark.parametrize(
    "x", [SPECIALS, torch.tensor(2.0), torch.empty(0)], ids=["specials", "number", "nothing"]
)
def test_running_sums_at_the_edges(x: torch.Tensor) -> None:
    assert not targets(assert_as_eager(lambda x: x.cumsum(0), (x,), exact=False))


def test_running_sums_of_constants_are_computed_at_capture() -> None:
    def program(x: torch.Tensor) -> Any:
        ones = torch.ones(x.shape[0], dtype=torch.int64)
        return x + ones.cumsum(0).sub(1).sum(), x + torch.arange(100).cumsum(0)[-1]

    captured = assert_as_eager(program, (torch.ones(6),))
    assert not targets(captured)
    assert "sum" not in ops(captured)


def test_long_running_sums_are_the_librarys() -> None:
    captured = assert_as_eager(lambda x: x.cumsum(0), (torch.ones(65),))
    assert targets(captured) == ["aten.cumsum.default"]


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("dtype", FLOATS)
def test_places_among_boundaries(dtype: torch.dtype, right: bool) -> None:
    def program(x: torch.Tensor, edges: torch.Tensor) -> Any:
        narrow = torch.searchsorted(edges, x.view(5, 2), right=right, out_int32=True)
        return torch.bucketize(x, edges, right=right), narrow

    captured = assert_as_eager(program, (SPECIALS.to(dtype), EDGES.to(dtype)))
    assert not targets(captured)


def test_places_of_integers_and_in_rows() -> None:
    whole = torch.arange(-3, 5)
    edges = torch.tensor([-1, 0, 3])
    captured = assert_as_eager(lambda x, e: torch.searchsorted(e, x, side="right"), (whole, edges))
    assert ops(captured)["sum"] == 1
    rows = EDGES.expand(2, 4).contiguous()
    captured = assert_as_eager(torch.searchsorted, (rows, torch.zeros(2, 3)))
    assert targets(captured) == ["aten.searchsorted.Tensor"]


@pytest.mark.parametrize("dtype", FLOATS)
def test_rounding_to_steps(dtype: torch.dtype) -> None:
    def program(x: torch.Tensor, step: torch.Tensor, zero: torch.Tensor) -> Any:
        rows = x.clamp(-100, 100).view(2, 5)  # by channel torch takes infinities for -2**63
        return (
            torch.fake_quantize_per_tensor_affine(x, 0.05, 3, -128, 127),
            torch.fake_quantize_per_tensor_affine(x, step[0], zero[0], 0, 255),
            torch.fake_quantize_per_channel_affine(rows, step, zero, 1, -128, 127),
        )

    step = torch.rand(5, generator=GENERATOR) * 0.1 + 0.01
    zero = torch.tensor([7, -3, 0, 100, 2], dtype=torch.int32)
    captured = assert_as_eager(program, (SPECIALS.to(dtype), step, zero))
    assert not targets(captured)

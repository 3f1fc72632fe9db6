"""Poolings to a size, windows put together, distances and products in space, against eager."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.frontend.as_eager import assert_as_eager, ops, targets

GENERATOR = torch.Generator().manual_seed(7)
EDGES = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e30, -1e30, 1.0])


def noise(*shape: int) -> Tensor:
    return torch.randn(shape, generator=GENERATOR)


def edged(*shape: int) -> Tensor:
    """Noise with each edge value in it."""
    found = noise(*shape)
    found.view(-1)[: 5 * EDGES.numel() : 5] = EDGES
    return found


POOLED: dict[str, tuple[Callable[[Tensor], Tensor], str]] = {
    "to a point": (lambda x: F.adaptive_max_pool2d(x, 1), "amax"),
    "to equal windows": (lambda x: F.adaptive_max_pool2d(x, (2, None)), "max_pool"),
    "line": (lambda x: F.adaptive_max_pool1d(x[0], 5), "max_pool"),
    "volume": (lambda x: F.adaptive_max_pool3d(x[None], (1, 4, 10)), "max_pool"),
    "places": (lambda x: F.adaptive_max_pool2d(x, (4, 5), return_indices=True)[1], "argmax_pool"),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", POOLED)
def test_largest_of_equal_windows(name: str, dtype: torch.dtype) -> None:
    function, op = POOLED[name]
    captured = assert_as_eager(function, (edged(2, 3, 8, 20).to(dtype),))
    assert ops(captured)[op] == 1
    assert not targets(captured)


def test_large_windows_and_places_in_unequal_ones_are_the_librarys() -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        _, places = F.adaptive_max_pool2d(x[..., :4, :4], 3, return_indices=True)
        return F.adaptive_max_pool2d(x, 3), places

    captured = assert_as_eager(program, (noise(2, 3, 20, 20),))
    assert targets(captured) == ["aten.adaptive_max_pool2d.default"] * 2


UNEVEN: dict[str, tuple[Callable[[Tensor], Tensor], int]] = {
    "larger": (lambda x: F.adaptive_avg_pool2d(x, (7, 7)), 2),
    "one dimension": (lambda x: F.adaptive_avg_pool2d(x, (None, 3)), 1),
    "equal beside unequal": (lambda x: F.adaptive_avg_pool2d(x, (2, 4)), 2),
    "line": (lambda x: F.adaptive_avg_pool1d(x[0], 4), 1),
    "largest": (lambda x: F.adaptive_max_pool2d(x, (3, 4)), 2),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", UNEVEN)
def test_unequal_windows_are_taken_along_each_dimension(name: str, dtype: torch.dtype) -> None:
    function, takes = UNEVEN[name]
    x = edged(2, 3, 4, 10) if name == "largest" else noise(2, 3, 4, 10)
    x[0, 0, 1, 2] = math.inf
    captured = assert_as_eager(function, (x.to(dtype),), exact=False)
    assert ops(captured)["take"] == takes
    assert not targets(captured)


@pytest.mark.parametrize("shape", [(2, 12, 12), (12, 12)])
def test_windows_side_by_side_are_moved(shape: tuple[int, ...]) -> None:
    captured = assert_as_eager(
        lambda x: F.fold(x, (6, 8), (3, 4), stride=(3, 4)), (noise(2, 12, 4),)
    )
    assert not targets(captured)
    captured = assert_as_eager(lambda x: F.fold(x, (6, 8), (2, 2), stride=2), (noise(*shape),))
    assert not targets(captured)


def test_windows_that_overlap_are_the_librarys() -> None:
    captured = assert_as_eager(lambda x: F.fold(x, (4, 4), (3, 3), padding=1), (noise(2, 9, 16),))
    assert targets(captured) == ["aten.col2im.default"]


@pytest.mark.parametrize("rows", [(4, 5), (30, 7)], ids=["subtracted", "multiplied"])
@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_distances(rows: tuple[int, int], mode: str, dtype: torch.dtype) -> None:
    x, y = noise(2, rows[0], 6).to(dtype), noise(rows[1], 6).to(dtype)
    captured = assert_as_eager(
        lambda x, y: torch.cdist(x, y, compute_mode=mode), (x, y), exact=False
    )
    assert not targets(captured)


def test_distances_of_edges() -> None:
    captured = assert_as_eager(torch.cdist, (edged(20, 6), noise(5, 6)), exact=False)
    assert not targets(captured)
    assert targets(assert_as_eager(lambda x: torch.cdist(x, x, p=1), (noise(4, 6),)))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64])
def test_products_in_space(dtype: torch.dtype) -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return torch.linalg.cross(x, y), torch.cross(x.mT, y.mT, dim=-2)

    x, y = (noise(5, 4, 3) * 9).to(dtype), (noise(4, 3) * 9).to(dtype)
    assert not targets(assert_as_eager(program, (x, y.expand(5, 4, 3)), exact=False))
    assert not targets(assert_as_eager(torch.linalg.cross, (x, y[None]), exact=False))


@pytest.mark.parametrize("layer", [nn.LSTM(4, 5), nn.GRU(4, 5), nn.RNN(4, 5)], ids=str)
def test_layers_of_many_steps_are_the_librarys(layer: nn.Module) -> None:
    captured = assert_as_eager(layer, (noise(3, 2, 4),), exact=False)
    (node,) = (node for node in captured.graph.nodes if node.op == "framework")
    assert "one call of the library" in str(node.attr("sentence"))

"""Matrix products, convolutions, attention and indexed reads against eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from kernel_gen.frontend import capture
from tests.frontend.as_eager import assert_as_eager, ops, targets

Tensor = torch.Tensor
GENERATOR = torch.Generator().manual_seed(9)


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=GENERATOR)


PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...], dict[str, int]]] = {
    "linear": (F.linear, (noise(2, 3, 4), noise(5, 4), noise(5)), {"linear": 1}),
    "linear_of_a_vector": (F.linear, (noise(4), noise(5, 4)), {"linear": 1}),
    "mm": (torch.mm, (noise(3, 4), noise(4, 5)), {"matmul": 1}),
    "bmm": (torch.bmm, (noise(2, 3, 4), noise(2, 4, 5)), {"matmul": 1}),
    "broadcast": (torch.matmul, (noise(6, 1, 3, 4), noise(2, 4, 5)), {"matmul": 1}),
    "matrix_vector": (torch.mv, (noise(3, 4), noise(4)), {"matmul": 1, "reshape": 2}),
    "vector_matrix": (torch.matmul, (noise(4), noise(2, 4, 3)), {"matmul": 1, "reshape": 2}),
    "dot": (torch.dot, (noise(4), noise(4)), {"matmul": 1, "reshape": 3}),
    "outer": (torch.outer, (noise(4), noise(3)), {"reshape": 1, "mul": 1}),
    "addmm_is_linear": (
        torch.addmm,
        (noise(5), noise(3, 4), noise(4, 5)),
        {"linear": 1, "permute": 1},
    ),
    "addmm_of_a_transpose": (
        lambda b, x, w: torch.addmm(b, x, w.t()),
        (noise(5), noise(3, 4), noise(5, 4)),
        {"linear": 1},
    ),
    "addmm_of_a_matrix": (
        torch.addmm,
        (noise(3, 5), noise(3, 4), noise(4, 5)),
        {"matmul": 1, "add": 1},
    ),
    "addmm_scaled": (
        lambda b, x, w: torch.addmm(b, x, w, beta=0.5, alpha=2),
        (noise(5), noise(3, 4), noise(4, 5)),
        {"matmul": 1, "mul": 2, "add": 1},
    ),
    "addmm_ignores_self": (
        lambda b, x, w: torch.addmm(b * float("nan"), x, w, beta=0),
        (noise(5), noise(3, 4), noise(4, 5)),
        {"matmul": 1},
    ),
    "baddbmm": (
        torch.baddbmm,
        (noise(2, 3, 5), noise(2, 3, 4), noise(2, 4, 5)),
        {"matmul": 1, "add": 1},
    ),
}


@pytest.mark.parametrize("name", sorted(PRODUCTS))
def test_product(name: str) -> None:
    function, args, expected = PRODUCTS[name]
    assert ops(assert_as_eager(function, args, exact=False)) == expected


def test_einsum_and_tensordot_are_matmuls() -> None:
    def program(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return torch.einsum("bij,bkj->bik", x, y), torch.tensordot(x, y, dims=([2], [2]))

    captured = assert_as_eager(program, (noise(2, 3, 4), noise(2, 5, 4)), exact=False)
    assert ops(captured)["matmul"] == 2
    assert not targets(captured)


def test_products_of_integers_stay_with_torch() -> None:
    x = torch.arange(6).reshape(2, 3)
    assert targets(assert_as_eager(lambda x: x @ x.t(), (x,))) == ["aten.matmul.default"]


CONVOLUTIONS: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "plain": (F.conv2d, (noise(2, 3, 8, 8), noise(4, 3, 3, 3), noise(4))),
    "strided": (
        lambda x, w: F.conv2d(x, w, stride=2, padding=1, dilation=(1, 2)),
        (noise(2, 3, 9, 9), noise(4, 3, 3, 3)),
    ),
    "depthwise": (
        lambda x, w: F.conv2d(x, w, padding=1, groups=4),
        (noise(2, 4, 6, 6), noise(4, 1, 3, 3)),
    ),
    "one_d": (lambda x, w: F.conv1d(x, w, padding=2), (noise(2, 3, 8), noise(4, 3, 5))),
    "three_d": (F.conv3d, (noise(1, 2, 4, 4, 4), noise(3, 2, 2, 2, 2))),
    "unbatched": (F.conv2d, (noise(3, 8, 8), noise(4, 3, 3, 3), noise(4))),
    "same": (lambda x, w: F.conv2d(x, w, padding="same"), (noise(1, 3, 8, 8), noise(4, 3, 3, 4))),
    "valid": (lambda x, w: F.conv2d(x, w, padding="valid"), (noise(1, 3, 8, 8), noise(4, 3, 3, 3))),
}


@pytest.mark.parametrize("name", sorted(CONVOLUTIONS))
def test_convolution(name: str) -> None:
    function, args = CONVOLUTIONS[name]
    captured = assert_as_eager(function, args, exact=False)
    assert ops(captured)["convolution"] == 1
    assert not targets(captured)


TRANSPOSED: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "line": (
        lambda x, w, b: F.conv_transpose1d(x, w, b, 3, 1, 2, dilation=4),
        (noise(2, 4, 7), noise(4, 3, 4), noise(3)),
    ),
    "overlapping": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1),
        (noise(2, 4, 5, 6), noise(4, 3, 4, 4)),
    ),
    "groups": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, (2, 1), (1, 3), (1, 0), 2),
        (noise(2, 4, 5, 6), noise(4, 3, 3, 2), noise(6)),
    ),
    "depthwise": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, groups=4),
        (noise(2, 4, 5, 6), noise(4, 1, 2, 2)),
    ),
    "unbatched": (F.conv_transpose2d, (noise(4, 5, 6), noise(4, 3, 2, 3))),
    "volume": (
        lambda x, w: F.conv_transpose3d(x, w, stride=2, padding=1),
        (noise(1, 4, 3, 4, 3), noise(4, 3, 3, 3, 3)),
    ),
}


@pytest.mark.parametrize("name", sorted(TRANSPOSED))
def test_transposed_convolution(name: str) -> None:
    function, args = TRANSPOSED[name]
    captured = assert_as_eager(function, args, exact=False)
    assert ops(captured)["conv_transpose"] == 1
    assert not targets(captured)


def _conv(x: Tensor, w: Tensor, b: Tensor, **settings: Any) -> Tensor:
    functions = (torch.conv1d, torch.conv2d, torch.conv3d)
    return functions[x.ndim - 3](x, w, b, **settings)


IMAGE = noise(2, 4, 7, 8)
BACKWARD: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "plain": (lambda *a: _conv(*a, padding=1), (IMAGE, noise(6, 4, 3, 3), noise(6))),
    "strided": (lambda *a: _conv(*a, stride=2, padding=1), (IMAGE, noise(6, 4, 3, 3), noise(6))),
    "grouped": (
        lambda *a: _conv(*a, stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2),
        (IMAGE, noise(6, 2, 3, 2), noise(6)),
    ),
    "depthwise": (lambda *a: _conv(*a, groups=4), (IMAGE, noise(4, 1, 3, 3), noise(4))),
    "line": (lambda *a: _conv(*a, padding="same"), (noise(2, 4, 9), noise(6, 4, 3), noise(6))),
    "volume": (
        lambda *a: _conv(*a, stride=2),
        (noise(1, 2, 5, 4, 3), noise(3, 2, 2, 3, 2), noise(3)),
    ),
    "transposed": (
        lambda x, w, b: F.conv_transpose2d(x, w, b, 2, 1, 1),
        (IMAGE, noise(4, 3, 3, 3), noise(3)),
    ),
}


@pytest.mark.parametrize("name", sorted(BACKWARD))
def test_gradients_of_convolutions(name: str) -> None:
    function, args = BACKWARD[name]

    def gradients(x: Tensor, w: Tensor, b: Tensor, given: Tensor) -> Any:
        return torch.func.vjp(function, x, w, b)[1](given)

    captured = assert_as_eager(gradients, (*args, noise(*function(*args).shape)), exact=False)
    assert ops(captured)["conv_weight_gradient"] == 1
    assert not targets(captured)


def test_large_windows_stay_with_torch() -> None:
    def program(x: Tensor) -> tuple[Tensor, ...]:
        return F.adaptive_avg_pool2d(x, 2), F.avg_pool2d(x, 6, 1)

    captured = assert_as_eager(program, (noise(1, 3, 11, 11),))
    assert [str(t).split(".")[1] for t in targets(captured)] == [
        "adaptive_avg_pool2d",
        "avg_pool2d",
    ]


CUT: dict[str, tuple[Callable[[Tensor], Tensor], int]] = {
    "padding not counted": (lambda x: F.avg_pool2d(x, 3, 2, 1, False, False), 2),
    "a ragged last window": (lambda x: F.avg_pool2d(x, 3, 2, 0, True), 2),
    "ragged, padding counted": (lambda x: F.avg_pool2d(x, 4, 3, 1, True), 2),
    "ragged, not counted": (lambda x: F.avg_pool2d(x, (2, 3), (2, 2), (0, 1), True, False), 1),
    "ragged without need": (lambda x: F.avg_pool2d(x, (4, 3), 3, 0, True), 0),
    "another divisor": (lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5), 1),
    "line": (lambda x: F.avg_pool1d(x[0], 3, 2, 1, True, False), 1),
    "volume": (lambda x: F.avg_pool3d(x, 2, 2, 1, True, False), 3),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CUT)
def test_means_of_windows_that_the_border_cuts(name: str, dtype: torch.dtype) -> None:
    if (name, dtype) == ("volume", torch.bfloat16):
        dtype = torch.float64  # torch has no such pooling
    function, factors = CUT[name]
    captured = assert_as_eager(function, (noise(2, 3, 10, 12).to(dtype),), exact=False)
    assert (ops(captured)["avg_pool"], ops(captured)["mul"]) == (1, factors)
    assert not targets(captured)


POOLS: dict[str, Callable[[Tensor], Tensor]] = {
    "max": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max of its kernel's stride": lambda x: F.max_pool2d(x, (2, 3)),
    "max dilated": lambda x: F.max_pool2d(x, 2, 1, 1, 2),
    "max with a ragged last window": lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
    "max of one image": lambda x: F.max_pool2d(x[0], 2),
    "max along a line": lambda x: F.max_pool1d(x[0], 3, 2),
    "average": lambda x: F.avg_pool2d(x, 2),
    "average with zeros around": lambda x: F.avg_pool2d(x, 3, 1, 1),
    "average without padding": lambda x: F.avg_pool2d(x, 3, 2, 0, False, False),
    "equal windows": lambda x: F.adaptive_avg_pool2d(x, (4, 2)),
}


@pytest.mark.parametrize("name", POOLS)
def test_pooling_over_windows(name: str) -> None:
    captured = assert_as_eager(POOLS[name], (noise(2, 3, 8, 10),), exact=False)
    assert ops(captured)["max_pool"] + ops(captured)["avg_pool"] == 1
    assert not targets(captured)


def _special_image() -> Tensor:
    image = noise(2, 3, 9, 10)
    image[0, 0, 2, 3], image[0, 1, 4, 4] = float("nan"), float("inf")
    image[1, 0], image[1, 1], image[1, 2, 3:5, 3:5] = -float("inf"), 1.0, float("nan")
    return image


WINDOWS: list[dict[str, Any]] = [
    {"kernel_size": 2},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": (3, 2), "stride": (1, 2), "padding": (1, 0), "dilation": (2, 3)},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel_size": 2, "stride": 3},
]


@pytest.mark.parametrize("settings", WINDOWS, ids=str)
def test_positions_of_largest_elements_and_the_way_back(settings: dict[str, Any]) -> None:
    """The last NaN of a window wins, and the first of equals."""

    def largest(x: Tensor) -> Tensor:
        return F.max_pool2d(x, **settings)

    captured = assert_as_eager(
        lambda x: F.max_pool2d(x, return_indices=True, **settings), (_special_image(),)
    )
    assert ops(captured) == {"max_pool": 1, "argmax_pool": 1}
    x = noise(2, 3, 9, 10)
    for image in (x, x.bfloat16()):
        given = noise(*largest(x).shape).to(image.dtype)
        captured = assert_as_eager(
            lambda x, g: torch.func.vjp(largest, x)[1](g), (image, given), exact=False
        )
        assert ops(captured) == {"argmax_pool": 1, "max_pool_gradient": 1}


MEANS: dict[str, Callable[[Tensor], Tensor]] = {
    "windows": lambda x: F.avg_pool2d(x, 2),
    "overlapping": lambda x: F.avg_pool2d(x, 3, 2, 1),
    "apart": lambda x: F.avg_pool2d(x, 2, 3),
    "volume": lambda x: F.avg_pool3d(x[None], 2, 2, 1),
    "to a point": lambda x: F.adaptive_avg_pool2d(x, 1),
    "to equal windows": lambda x: F.adaptive_avg_pool2d(x, (3, 5)),
}


@pytest.mark.parametrize("name", sorted(MEANS))
def test_gradients_of_means(name: str) -> None:
    x = noise(2, 3, 9, 10)

    def program(x: Tensor, given: Tensor) -> Any:
        return torch.func.vjp(MEANS[name], x)[1](given)

    captured = assert_as_eager(program, (x, noise(*MEANS[name](x).shape)), exact=False)
    assert not targets(captured)


def test_pooling_to_a_point_is_a_mean() -> None:
    captured = assert_as_eager(lambda x: F.adaptive_avg_pool2d(x, 1), (noise(2, 3, 4, 4),))
    assert ops(captured) == {"mean": 1}


Q, K, V = noise(2, 4, 5, 8), noise(2, 4, 7, 8), noise(2, 4, 7, 6)
ATTENTION: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "plain": (F.scaled_dot_product_attention, (Q, K, V)),
    "bool_mask": (F.scaled_dot_product_attention, (Q, K, V, torch.rand(5, 7) > 0.3)),
    "additive_mask": (F.scaled_dot_product_attention, (Q, K, V, noise(2, 1, 5, 7))),
    "causal": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), (Q,)),
    "scaled": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.5), (Q, K, V)),
    "grouped": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        (Q, K[:, :2], V[:, :2]),
    ),
}


@pytest.mark.parametrize("name", sorted(ATTENTION))
def test_attention_is_one_node(name: str) -> None:
    function, args = ATTENTION[name]
    captured = assert_as_eager(function, args)
    assert ops(captured)["attention"] == 1
    assert not targets(captured)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("how", ["plain", "causal", "masked"])
def test_gradients_of_attention(how: str, dtype: torch.dtype) -> None:
    def program(*args: Tensor) -> Any:
        *operands, mask, given = args

        def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            added = mask if how == "masked" else None
            return F.scaled_dot_product_attention(q, k, v, added, is_causal=how == "causal")

        return torch.func.vjp(attention, *operands)[1](given)

    shapes = (*(((2, 4, 5, 8),) * 3), (2, 1, 5, 5), (2, 4, 5, 8))
    captured = assert_as_eager(program, [noise(*s).to(dtype) for s in shapes], exact=False)
    left = [node for node in captured.graph.nodes if node.op == "framework"]
    assert all("backward" not in str(node.attr("target")) for node in left)
    assert all(node.attr("code") == "no-lowering" for node in left)  # nothing is dropped


def test_attention_with_dropout_is_random() -> None:
    captured = capture(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.1), (Q, K, V)
    )
    (node,) = captured.graph.nodes
    assert node.attr("code") == "random"


X = noise(5, 6, 7)
INDEXED: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
    "one": (lambda x, i: x[i], (X, torch.tensor([[0, -1], [4, 2]]))),
    "inner": (lambda x, i: x[:, i], (X, torch.tensor([0, -6, 5]))),
    "pair": (lambda x, i, j: x[i, j], (X, torch.tensor([0, -1]), torch.tensor([[3], [-2]]))),
    "apart": (lambda x, i, j: x[i, :, j], (X, torch.tensor([0, -1]), torch.tensor([3, -2]))),
    "with_none": (lambda x, i: x[None, :, i], (X, torch.tensor([1, 2]))),
    "narrow_index": (lambda x, i: x[i], (X, torch.tensor([1, -2], dtype=torch.int32))),
    "index_select": (lambda x, i: x.index_select(-1, i), (X, torch.tensor([6, 0, 6]))),
    "gather": (lambda x, i: x.gather(1, i), (X, torch.randint(0, 6, (4, 3, 7)))),
    "take_along": (
        lambda x, i: torch.take_along_dim(x, i, 2),
        (X, torch.randint(0, 7, (5, 6, 2))),
    ),
    "embedding": (lambda x, i: F.embedding(i, x[0]), (X, torch.tensor([[5, 0], [1, 1]]))),
    "arange": (lambda x: x[torch.arange(3)] + x[1, torch.arange(6)].sum(), (X,)),
}


@pytest.mark.parametrize("name", sorted(INDEXED))
def test_indexed_read(name: str) -> None:
    function, args = INDEXED[name]
    captured = assert_as_eager(function, args)
    assert not targets(captured)
    assert ops(captured)["take"] + ops(captured)["gather"] >= 1


def test_positions_that_cannot_be_negative_are_not_wrapped() -> None:
    captured = capture(lambda x: x[torch.arange(3) + 1], (X,))
    assert "where" not in ops(captured)


SOURCES: dict[str, Callable[[Tensor], Any]] = {
    "arange": lambda x: x[0, 0] + torch.arange(7),
    "arange_steps": lambda x: torch.arange(1, 9, 3).float() + torch.arange(3, dtype=torch.float32),
    "arange_floats": lambda x: torch.arange(0.5, 3.0, 0.25),
    "full": lambda x: x * torch.full((7,), 2.5) + torch.zeros(7) - torch.ones(7),
    "like": lambda x: (torch.zeros_like(x), torch.ones_like(x), torch.full_like(x, 0.1)),
    "new": lambda x: (x.new_zeros(3), x.new_full((2,), 4.0), x.new_ones(2)),
    "eye": lambda x: torch.eye(3),
    "linspace": lambda x: torch.linspace(0, 1, 5),
    "fill": lambda x: x.clone().fill_(3.0),
    "zero": lambda x: (x * 2).zero_(),
    "causal_mask": lambda x: torch.full((4, 4), float("-inf")).triu(1),
    "one_hot": lambda x: F.one_hot(x[0, 0].argmax().reshape(1), 7),
}


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_tensors_made_of_nothing(name: str) -> None:
    assert not targets(assert_as_eager(SOURCES[name], (X,), exact=name != "linspace"))

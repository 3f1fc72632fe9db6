"""Layout operators against eager: values, and how few nodes they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from kernel_gen.frontend import capture
from tests.frontend.as_eager import assert_as_eager, ops, targets

X = torch.arange(48, dtype=torch.float32).reshape(2, 4, 6)

ONE_TENSOR: dict[str, Callable[[torch.Tensor], Any]] = {
    "view": lambda x: x.view(8, 6) + 1,
    "view_inferred": lambda x: x.view(-1, 3) + 1,
    "reshape_of_transpose": lambda x: x.transpose(0, 1).reshape(4, -1) + 1,
    "flatten": lambda x: x.flatten(1) + 1,
    "unflatten": lambda x: x.unflatten(2, (2, 3)) + 1,
    "squeeze": lambda x: x[:, :1].squeeze(1).squeeze() + 1,
    "squeeze_dims": lambda x: x[:1, :, :1].squeeze((0, 2)) + 1,
    "unsqueeze": lambda x: x.unsqueeze(1).unsqueeze(-1) + 1,
    "transpose": lambda x: x.transpose(0, -1) + 1,
    "swapaxes": lambda x: x.swapaxes(0, 1) + 1,
    "permute": lambda x: x.permute(2, 0, -2) + 1,
    "movedim": lambda x: x.movedim(0, 2) + 1,
    "movedims": lambda x: x.movedim((0, 1), (2, 0)) + 1,
    "t": lambda x: x[0].t() + 1,
    "mT": lambda x: x.mT + 1,
    "T": lambda x: x[0].T + 1,
    "expand": lambda x: x[:, :1].expand(-1, 5, -1) + 1,
    "expand_new": lambda x: x.expand(3, 2, 4, 6) + 1,
    "broadcast_to": lambda x: torch.broadcast_to(x[0, 0], (3, 6)) + 1,
    "select": lambda x: x[1] + x[-1],
    "select_inner": lambda x: x.select(2, -2) + 1,
    "slice": lambda x: x[:, 1:-1, ::2] + 1,
    "slice_step": lambda x: x[..., 1::3] + 1,
    "slice_beyond": lambda x: x[:, 2:100] + 1,
    "slice_empty": lambda x: x[:, 3:2] + 1,
    "narrow": lambda x: x.narrow(1, 1, 2) + 1,
    "chunk": lambda x: [part + 1 for part in x.chunk(4, -1)],
    "chunk_ragged": lambda x: [part + 1 for part in x.chunk(3, 1)],
    "split": lambda x: [part + 1 for part in x.split(4, 2)],
    "split_sizes": lambda x: [part + 1 for part in x.split([1, 3], 1)],
    "tensor_split": lambda x: [part + 1 for part in x.tensor_split(3, 1)],
    "tensor_split_at": lambda x: [part + 1 for part in x.tensor_split((1, 3), 1)],
    "hsplit": lambda x: [part + 1 for part in x.hsplit(2)],
    "unbind": lambda x: sum(x.unbind(1)),
    "flip": lambda x: x.flip(0, -1),
    "fliplr": lambda x: x.fliplr(),
    "roll": lambda x: x.roll((1, -2), (0, 2)),
    "roll_flat": lambda x: x.roll(5),
    "repeat": lambda x: x.repeat(2, 1, 3),
    "repeat_new": lambda x: x.repeat(2, 1, 3, 1),
    "tile": lambda x: x.tile(2),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "repeat_interleave_flat": lambda x: x.repeat_interleave(2),
    "cat": lambda x: torch.cat([x, x[:, :1]], 1),
    "cat_promotes": lambda x: torch.cat([x, x.double()], -1),
    "cat_empty": lambda x: torch.cat([torch.empty(0), x], 1),
    "stack": lambda x: torch.stack([x, x + 1], -1),
    "hstack": lambda x: torch.hstack([x, x]),
    "pad": lambda x: F.pad(x, (1, 2)),
    "pad_two": lambda x: F.pad(x, (1, 2, 0, 3), value=2.5),
    "pad_negative": lambda x: F.pad(x, (-1, 2)),
    "pad_reflected": lambda x: F.pad(x, (2, 1), mode="reflect"),
    "pad_reflected_all": lambda x: F.pad(x[None], (2, 5, 3, 0), mode="reflect"),
    "pad_replicated": lambda x: F.pad(x[None], (2, 7, 0, 3), mode="replicate"),
    "pad_circular": lambda x: F.pad(x[None], (6, 1, 2, 4), mode="circular"),
    "pad_module": lambda x: torch.nn.ReflectionPad2d(1)(x[None]),
    "enlarge": lambda x: F.interpolate(x[None], scale_factor=2) + 1,
    "enlarge_by_three": lambda x: F.interpolate(x[None], size=(12, 6)),
    "enlarge_line": lambda x: F.interpolate(x, scale_factor=5.0),
    "enlarge_volume": lambda x: F.interpolate(x[None, None], scale_factor=(1, 2, 3)),
    "enlarge_channels_last": lambda x: F.interpolate(
        x[None].to(memory_format=torch.channels_last), scale_factor=(3, 2)
    ),
    "reduce": lambda x: F.interpolate(x[None], scale_factor=0.5) + 1,
    "reduce_unevenly": lambda x: F.interpolate(x[None], size=(3, 5)),
    "reduce_from_centres": lambda x: F.interpolate(x[None], size=(3, 4), mode="nearest-exact"),
    "enlarge_unevenly": lambda x: F.interpolate(x[None], size=(7, 9)),
    "enlarge_by_a_half": lambda x: F.interpolate(x, scale_factor=1.5),
    "tril": lambda x: x.tril(-1),
    "triu": lambda x: x.triu(2),
    "contiguous": lambda x: x.transpose(0, 1).contiguous() + 1,
    "pixel_shuffle": lambda x: F.pixel_shuffle(x.reshape(1, 8, 2, 3), 2) + 1,
    "meshgrid": lambda x: torch.meshgrid(x[0, 0], x[0, :, 0] * 2, indexing="ij")[1] + 1,
    "diag_embed": lambda x: torch.diag_embed(x[0]),
    "rot90": lambda x: x.rot90(1, (1, 2)),
    "unfold": lambda x: x.unfold(1, 2, 2) + 1,
    "unfold_overlapping": lambda x: x.unfold(-1, 3, 2).unfold(1, 2, 1) + 1,
    "patches": lambda x: F.unfold(x, (3, 2), stride=2, padding=1),
    "patches_apart": lambda x: F.unfold(x[None], 2, dilation=(2, 3)),
    "diagonal": lambda x: x.diagonal(0, 1, 2) + 1,
    "diagonal_above": lambda x: x.diagonal(1, 0, -1) + 1,
    "diagonal_below": lambda x: x.diagonal(-1, 2, 1) + 1,
    "diag": lambda x: torch.diag(x[0], 1) + 1,
    "trace": lambda x: x[0].trace(),
    "einops_like": lambda x: x.view(2, 4, 3, 2).permute(0, 2, 1, 3).reshape(2, 3, 8) + 1,
    "atleast": lambda x: torch.atleast_2d(x[0, 0]) + 1,
}


@pytest.mark.parametrize("name", sorted(ONE_TENSOR))
def test_view(name: str) -> None:
    assert not targets(assert_as_eager(ONE_TENSOR[name], (X,)))


RESIZED: dict[str, dict[str, Any]] = {
    "twice": {"scale_factor": 2},
    "half": {"scale_factor": 0.5},
    "uneven": {"size": (7, 4)},
    "factors": {"scale_factor": (1.5, 0.7)},
    "to a point": {"size": (1, 1)},
    "same": {"size": (4, 6)},
}


@pytest.mark.parametrize("name", sorted(RESIZED))
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_resizing_by_weights(name: str, align: bool, dtype: torch.dtype) -> None:
    def program(x: torch.Tensor) -> Any:
        given = {"align_corners": align, **RESIZED[name]}
        return [F.interpolate(x, mode=mode, **given) for mode in ("bilinear", "bicubic")]

    captured = assert_as_eager(program, (X[None].to(dtype) / 8,), exact=False)
    assert ops(captured)["resize"] == 2
    assert not targets(captured)


@pytest.mark.parametrize("mode", ["linear", "trilinear"])
def test_resizing_lines_and_volumes(mode: str) -> None:
    image = X if mode == "linear" else X.view(1, 1, 2, 4, 6)
    captured = assert_as_eager(
        lambda x: F.interpolate(x, scale_factor=3, mode=mode), (image,), exact=False
    )
    assert ops(captured) == {"resize": 1}


def test_transposes_compose() -> None:
    captured = capture(lambda x: x.permute(1, 2, 0).permute(2, 0, 1) + 1, (X,))
    assert ops(captured) == {"add": 1}


def test_unread_parts_of_a_split_are_not_made() -> None:
    captured = capture(lambda x: x.chunk(3, -1)[1] * 2, (X,))
    assert ops(captured) == {"slice": 1, "mul": 1}


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: torch.slice_scatter(x, y, 1, 1, 3),
        lambda x, y: torch.select_scatter(x, y[:, 0], 1, -1),
        lambda x, y: torch.slice_scatter(x, y.double(), 1, 0, 2),
    ],
)
def test_scatter_into_a_slice(function: Callable[..., Any]) -> None:
    assert not targets(assert_as_eager(function, (X, -X[:, :2])))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x.scatter(-1, i, -1.5),
        lambda x, i: torch.zeros_like(x).scatter(2, i, x),
        lambda x, i: x.scatter(2, i[..., :1], x * 2),
        lambda x, i: x.scatter_add(-1, i, -x),
        lambda x, i: x.clone().scatter_(-1, i, 0.0) + 1,
        lambda x, i: x.transpose(0, 2).scatter(0, i.permute(2, 1, 0), 7.0),
        lambda x, i: (x > 3).scatter(-1, i, value=True),
        lambda x, i: x.scatter(-1, i[..., :0], 1.0) + 1,
        lambda x, i: x.scatter(-1, torch.arange(2, 6, 2).expand(2, 4, 2), 1.0),
        lambda x, i: F.one_hot(i, 6),
        lambda x, i: F.one_hot(x.argmax(-1), 9) + 1,
        lambda x, i: F.one_hot((x[0] > 1).long() * 3 + torch.full((4, 6), 2), 6),
    ],
)
def test_few_known_places_are_scattered_to(function: Callable[..., Any]) -> None:
    def model(x: torch.Tensor) -> Any:
        return function(x, x.topk(2).indices)

    assert not targets(assert_as_eager(model, (X,)))


def test_positions_that_wrapped_are_counted_from_the_end() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x[(torch.arange(4, dtype=torch.int8) * 64).long()]  # 0, 64, -128, -64

    assert_as_eager(model, (torch.arange(200.0),))


PLACES = torch.tensor([[[0, 5]], [[3, 3]]]).expand(2, 4, 2)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: x.scatter(-1, i, 1.0),  # the next call may bring places outside
        lambda x, i: x.scatter_add(-1, i, x),
        lambda x, i: F.one_hot(i, 6),
        lambda x, i: x[..., :5].scatter(-1, x.argmax(-1, keepdim=True).clamp(max=4), 1.0),
        lambda x, i: x.scatter(-1, torch.zeros(1, 4, 2, dtype=torch.int64), 1.0),  # some rows
        lambda x, i: x.flatten().scatter(0, torch.arange(9), 1.0),
        lambda x, i: x.scatter_reduce(-1, i, x, "prod"),
    ],
)
def test_other_scatters_are_left_to_the_framework(function: Callable[..., Any]) -> None:
    assert len(targets(assert_as_eager(function, (X, PLACES)))) == 1


@pytest.mark.parametrize(
    ("function", "target"),
    [
        (lambda x: x.as_strided((2, 2), (1, 2)) + 1, "aten.as_strided.default"),
        (lambda x: F.pad(x, (-1, 1), mode="reflect"), "aten.pad.default"),
        (lambda x: F.interpolate(x, scale_factor=3.7), "aten.upsample_nearest1d.vec"),
        (
            lambda x: F.interpolate(x[None], scale_factor=0.5, mode="bilinear", antialias=True),
            "aten._upsample_bilinear2d_aa.vec",
        ),
    ],
)
def test_left_to_the_framework(function: Callable[..., Any], target: str) -> None:
    assert targets(assert_as_eager(function, (X,))) == [target]


def test_positions_that_many_ops_read_are_looked_at_once() -> None:
    """Each addition reads the one before twice: sixty of them have 2^60 ways back."""

    def positions(x: torch.Tensor) -> torch.Tensor:
        at = torch.arange(4)
        for _ in range(60):
            at = at + at * 0
        return x[at]

    assert_as_eager(positions, (torch.randn(8, 3),))

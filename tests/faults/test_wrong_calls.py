"""What is not a model, and calls that a model refuses: a typed error that names the way, or the
model's own error; never a changed program."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import graph_autofusion as gaf


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.LayerNorm(8), nn.ReLU()).eval()


@pytest.mark.parametrize(
    ("subject", "error", "says"),
    [
        (3, gaf.InvalidInput, "neither a module nor a function"),
        (None, gaf.InvalidInput, "neither a module nor a function"),
        ("/nowhere.onnx", gaf.InvalidInput, "/nowhere.onnx: no such file"),
        ("weights.safetensors", gaf.UnsupportedModel, "weights only"),
        ("frozen.pb", gaf.UnsupportedModel, "ONNX"),
        ("notes.txt", gaf.UnsupportedModel, "expected one of .onnx"),
    ],
)
def test_what_is_no_model_is_named(
    subject: Any, error: type[Exception], says: str, tmp_path: Path
) -> None:
    if isinstance(subject, str) and not subject.startswith("/"):
        (tmp_path / subject).write_bytes(b"\x00" * 64)
        subject = str(tmp_path / subject)
    with pytest.raises(error, match=says):
        gaf.optimize(subject)


@pytest.mark.parametrize(
    "arguments",
    [
        {"seconds": -1},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"seconds": "3"},
        {"seconds": True},
        {"trials": -1},
        {"trials": 1.5},
    ],
)
def test_a_budget_that_is_none_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(gaf.InvalidInput, match="expected 0 to"):
        gaf.Budget(**arguments)


@pytest.mark.parametrize("device", ["tpu", "cuda:0", "ascend-sim:1", "ascend:x", "", "cpu:0"])
def test_an_unknown_device_is_refused_with_those_that_there_are(device: str) -> None:
    with pytest.raises(gaf.GafError, match=r"cpu|910b3"):
        gaf.optimize(model(), torch.ones(4, 8), device=device, strict=True)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: m(torch.ones(4, 9)),
        lambda m: m(torch.ones(4, 8, dtype=torch.int64)),
        lambda m: m(torch.ones(4, 8, dtype=torch.complex64)),
        lambda m: m(),
        lambda m: m("text"),
        lambda m: m(torch.ones(4, 8), nonsense=1),
    ],
    ids=["shape", "integers", "complex", "nothing", "text", "keyword"],
)
def test_calls_that_the_model_refuses_raise_its_own_error(call: Callable[[Any], Any]) -> None:
    plain, fast = model(), gaf.optimize(model(), on_miss="eager")
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", gaf.GafWarning)
        with pytest.raises(Exception) as expected:  # noqa: PT011 - whatever eager raises
            call(plain)
        with pytest.raises(type(expected.value)) as raised:
            call(fast)
        assert str(raised.value) == str(expected.value)
        x = torch.randn(4, 8)
        assert torch.equal(fast(x), plain(x))  # and nothing is broken afterwards


@pytest.mark.parametrize("shape", [(0, 8), (3, 0, 8), (8,)])
def test_zero_sizes_have_eagers_result(shape: tuple[int, ...]) -> None:
    plain, fast = model(), gaf.optimize(model(), on_miss="eager")
    x = torch.randn(shape)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", gaf.GafWarning)
        assert torch.equal(fast(x), plain(x))

"""Images read at positions in between, put together of windows or of their largest elements, and
the windows that signals are weighed with."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kernel_gen.frontend.onnx.dtypes import torch_dtype
from kernel_gen.frontend.onnx.values import Call, rule

_MODES = {"linear": "bilinear", "cubic": "bicubic"}


@rule("GridSample")
def grid_sample(call: Call) -> Tensor:
    value, grid = call.tensor(0), call.tensor(1)
    mode = call.attr("mode", b"linear").decode()
    mode = _MODES.get(mode, mode)
    if value.ndim not in (4, 5) or (mode == "bicubic" and value.ndim == 5):
        raise call.refuse(f"{mode} in {value.ndim - 2} dimensions")
    padding = call.attr("padding_mode", b"zeros").decode()
    return F.grid_sample(value, grid, mode, padding, bool(call.attr("align_corners", 0)))


@rule("AffineGrid")
def affine_grid(call: Call) -> Tensor:
    size = call.ints(1, "size")
    return F.affine_grid(call.tensor(0), size, bool(call.attr("align_corners", 0)))


@rule("Col2Im")
def col2im(call: Call) -> Tensor:
    image, block = tuple(call.ints(1, "image shape")), tuple(call.ints(2, "block shape"))
    pads = list(call.attr("pads") or [0] * 2 * len(image))
    if len(image) != 2 or pads[:2] != pads[2:]:
        raise call.refuse("images that are not two-dimensional, or padded on one side")
    strides, dilations = (tuple(call.attr(name) or (1, 1)) for name in ("strides", "dilations"))
    return F.fold(call.tensor(0), image, block, dilations, tuple(pads[:2]), strides)


@rule("MaxUnpool")
def max_unpool(call: Call) -> Tensor:
    """Each value at its place within the whole tensor, zeros elsewhere."""
    value, places = call.tensor(0), call.tensor(1)
    shape = _unpooled(call, value)
    if call.has(2):
        return _placed(value, places, shape, call.ints(2, "output shape"))
    return _placed(value, places, shape, shape)


def _unpooled(call: Call, value: Tensor) -> list[int]:
    kernel = list(call.attr("kernel_shape"))
    strides = list(call.attr("strides") or [1] * len(kernel))
    pads = list(call.attr("pads") or [0] * 2 * len(kernel))
    sizes = zip(value.shape[2:], strides, kernel, pads, pads[len(kernel) :], strict=False)
    inner = [(n - 1) * s + k - before - after for n, s, k, before, after in sizes]
    return [*value.shape[:2], *inner]


def _placed(value: Tensor, places: Tensor, shape: list[int], wanted: list[int]) -> Tensor:
    """Places count in a tensor of `shape`, which is then widened at its ends to `wanted`."""
    count = torch.Size(shape).numel()
    flat = torch.zeros(count, dtype=value.dtype)
    image = flat.scatter(0, places.flatten(), value.flatten()).reshape(shape)
    return F.pad(
        image, [n for d in range(len(shape) - 1, -1, -1) for n in (0, wanted[d] - shape[d])]
    )


@rule("HannWindow", "HammingWindow", "BlackmanWindow")
def signal_window(call: Call) -> Tensor:
    (size,) = call.ints(0, "size")
    code = call.attr("output_datatype", 1)
    kind = torch_dtype(code, f"the result of {call.op}")
    periodic = bool(call.attr("periodic", 1))
    if call.op == "HannWindow":
        found = torch.hann_window(size, periodic, dtype=torch.float64)
    elif call.op == "HammingWindow":
        # 25 / 46, which the standard asks for; torch's own is 0.54.
        found = torch.hamming_window(size, periodic, 25 / 46, 21 / 46, dtype=torch.float64)
    else:
        found = torch.blackman_window(size, periodic, dtype=torch.float64)
    return found.to(kind)

"""Every op of the vocabulary by eager torch: the oracle of the evaluator's tests."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F

from kernel_gen.ir.arrays import Array
from kernel_gen.ir.dtype import DType

Attributes = Mapping[str, Any]
TORCH: dict[DType, torch.dtype] = {
    DType.F64: torch.float64,
    DType.F32: torch.float32,
    DType.F16: torch.float16,
    DType.BF16: torch.bfloat16,
    DType.I64: torch.int64,
    DType.I32: torch.int32,
    DType.I16: torch.int16,
    DType.I8: torch.int8,
    DType.U8: torch.uint8,
    DType.BOOL: torch.bool,
}


def to_torch(array: Array) -> torch.Tensor:
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.uint16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(array))


def from_torch(tensor: torch.Tensor) -> Array:
    """Floats as float64, the rest in its own type."""
    return tensor.double().numpy() if tensor.is_floating_point() else tensor.numpy()


def eager(op: str, operands: Sequence[torch.Tensor], attrs: Attributes) -> torch.Tensor:
    """The op's result as eager torch computes it."""
    if op in _SPECIAL:
        return _SPECIAL[op](operands, attrs)
    return _plain(op)(*operands)


def _plain(op: str) -> Callable[..., torch.Tensor]:
    renamed: dict[str, Callable[..., torch.Tensor]] = {
        "floor_div": functools.partial(torch.div, rounding_mode="floor"),
        "shift_left": torch.bitwise_left_shift,
        "shift_right": torch.bitwise_right_shift,
    }
    if op in renamed:
        return renamed[op]
    found = getattr(torch, op, None) or getattr(F, op)
    assert callable(found)
    return found


def _pad(x: torch.Tensor, attrs: Attributes) -> torch.Tensor:
    counts: list[int] = []
    for low, high in zip(reversed(attrs["low"]), reversed(attrs["high"]), strict=True):
        counts += [low, high]
    return F.pad(x, counts, value=attrs["value"])


def _slice(x: torch.Tensor, attrs: Attributes) -> torch.Tensor:
    taken = slice(attrs["start"], attrs["stop"], attrs["step"])
    return x[(slice(None),) * attrs["dim"] + (taken,)]


def _take(table: torch.Tensor, index: torch.Tensor, dim: int) -> torch.Tensor:
    flat = table.index_select(dim, index.reshape(-1))
    return flat.reshape((*table.shape[:dim], *index.shape, *table.shape[dim + 1 :]))


def _iota(attrs: Attributes) -> torch.Tensor:
    shape, dim = attrs["shape"], attrs["dim"]
    line = attrs["start"] + attrs["step"] * torch.arange(shape[dim], dtype=torch.float64)
    tail = [1] * (len(shape) - dim - 1)
    return line.to(TORCH[DType(attrs["dtype"])]).reshape(-1, *tail).expand(shape)


def _repeated(
    function: Callable[..., torch.Tensor], x: torch.Tensor, attrs: Attributes
) -> torch.Tensor:
    """A reduction that torch has for one dimension only: over the merged dimensions."""
    dims = attrs["dims"]
    kept = [dim for dim in range(x.ndim) if dim not in dims]
    shape = [1 if dim in dims else x.shape[dim] for dim in range(x.ndim)]
    merged = x.permute([*kept, *dims]).flatten(len(kept)) if dims else x.unsqueeze(-1)
    found = function(merged, -1)
    return found.reshape(shape) if attrs["keepdim"] else found


def _sum(x: torch.Tensor, attrs: Attributes) -> torch.Tensor:
    if not attrs["dims"]:
        return x
    return x.sum(attrs["dims"], keepdim=attrs["keepdim"], dtype=x.dtype)


def _extreme(op: str, x: torch.Tensor, attrs: Attributes) -> torch.Tensor:
    if not attrs["dims"]:
        return x
    if 0 in (x.shape[dim] for dim in attrs["dims"]) and not x.is_floating_point():
        return _lowest_or_highest(op, x, attrs)
    function = torch.amax if op == "amax" else torch.amin
    return function(x, attrs["dims"], keepdim=attrs["keepdim"])


def _lowest_or_highest(op: str, x: torch.Tensor, attrs: Attributes) -> torch.Tensor:
    """Over nothing, where eager raises: the neutral element of the dtype."""
    dims, keepdim = attrs["dims"], attrs["keepdim"]
    if x.dtype is torch.bool:
        neutral: int = op == "amin"
    else:
        limits = torch.iinfo(x.dtype)
        neutral = limits.min if op == "amax" else limits.max
    shape = x.double().sum(dims, keepdim=keepdim).shape
    return torch.full(shape, neutral, dtype=x.dtype)


def _position(op: str, x: torch.Tensor, attrs: Attributes) -> torch.Tensor:
    function = torch.argmax if op == "argmax" else torch.argmin
    if len(attrs["dims"]) == 1:
        return function(x, attrs["dims"][0], keepdim=attrs["keepdim"])
    found = function(x)
    return found.reshape([1] * x.ndim) if attrs["keepdim"] else found


def _convolution(operands: Sequence[torch.Tensor], attrs: Attributes) -> torch.Tensor:
    x, weight, *bias = operands
    zeros = [0] * len(attrs["stride"])
    return torch.convolution(
        x, weight, bias[0] if bias else None, attrs["stride"], attrs["padding"],
        attrs["dilation"], False, zeros, attrs["groups"],
    )  # fmt: skip


def _conv_transpose(operands: Sequence[torch.Tensor], attrs: Attributes) -> torch.Tensor:
    x, weight, *bias = operands
    return torch.convolution(
        x, weight, bias[0] if bias else None, attrs["stride"], attrs["padding"],
        attrs["dilation"], True, attrs["output_padding"], attrs["groups"],
    )  # fmt: skip


def _conv_weight_gradient(operands: Sequence[torch.Tensor], attrs: Attributes) -> torch.Tensor:
    x, gradient = operands
    shape = (gradient.shape[1], x.shape[1] // attrs["groups"], *attrs["kernel"])
    settings = {key: attrs[key] for key in ("stride", "padding", "dilation", "groups")}
    functions = (torch.nn.grad.conv1d_weight, torch.nn.grad.conv2d_weight)
    return functions[len(shape) - 3](x, shape, gradient, **settings)


def _parameters(operands: Sequence[torch.Tensor], attrs: Attributes) -> list[torch.Tensor | None]:
    """weight and bias, None where absent."""
    left = list(operands)
    return [left.pop(0) if attrs.get(key) else None for key in ("weight", "bias")]


def _layer_norm(operands: Sequence[torch.Tensor], attrs: Attributes) -> torch.Tensor:
    x = operands[0]
    shape = x.shape[x.ndim - attrs["axes"] :]
    return F.layer_norm(x, shape, *_parameters(operands[1:], attrs), attrs["eps"])


def _rms_norm(operands: Sequence[torch.Tensor], attrs: Attributes) -> torch.Tensor:
    x = operands[0]
    weight = _parameters(operands[1:], attrs)[0]
    return F.rms_norm(x, x.shape[x.ndim - attrs["axes"] :], weight, attrs["eps"])


def _group_norm(operands: Sequence[torch.Tensor], attrs: Attributes) -> torch.Tensor:
    parameters = _parameters(operands[1:], attrs)
    return torch.group_norm(operands[0], attrs["groups"], *parameters, attrs["eps"])


def _batch_norm(operands: Sequence[torch.Tensor], attrs: Attributes) -> torch.Tensor:
    parameters = _parameters(operands[3:], attrs)
    return F.batch_norm(*operands[:3], *parameters, False, 0.0, attrs["eps"])


def _max_pool(operands: Sequence[torch.Tensor], attrs: Attributes) -> torch.Tensor:
    kernel, stride, dilation = attrs["kernel"], attrs["stride"], attrs["dilation"]
    padded = F.pad(operands[0], _amounts(attrs), value=float("-inf"))
    function = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[len(kernel) - 1]
    return function(padded, kernel, stride, 0, dilation)


def _avg_pool(operands: Sequence[torch.Tensor], attrs: Attributes) -> torch.Tensor:
    kernel, stride = attrs["kernel"], attrs["stride"]
    function = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[len(kernel) - 1]
    return function(F.pad(operands[0], _amounts(attrs)), kernel, stride)


def _argmax_pool(x: torch.Tensor, attrs: Attributes) -> torch.Tensor:
    return F.max_pool2d(
        x, attrs["kernel"], attrs["stride"], attrs["low"], attrs["dilation"], return_indices=True
    )[1]


def _max_pool_gradient(operands: Sequence[torch.Tensor], attrs: Attributes) -> torch.Tensor:
    gradient, places = operands
    return torch.ops.aten.max_pool2d_with_indices_backward(
        gradient, _image(gradient, attrs), attrs["kernel"], attrs["stride"], attrs["low"],
        attrs["dilation"], False, places,
    )  # fmt: skip


def _avg_pool_gradient(operands: Sequence[torch.Tensor], attrs: Attributes) -> torch.Tensor:
    (gradient,) = operands
    return torch.ops.aten.avg_pool2d_backward(
        gradient, _image(gradient, attrs), attrs["kernel"], attrs["stride"], attrs["low"],
        False, True, None,
    )  # fmt: skip


def _image(gradient: torch.Tensor, attrs: Attributes) -> torch.Tensor:
    return gradient.new_zeros((*gradient.shape[:2], *attrs["image"]))


def _amounts(attrs: Attributes) -> list[int]:
    """As F.pad takes them: the last dimension first."""
    pairs = zip(reversed(attrs["low"]), reversed(attrs["high"]), strict=True)
    return [count for pair in pairs for count in pair]


def _resize(x: torch.Tensor, attrs: Attributes) -> torch.Tensor:
    given = [scale or None for scale in attrs["scales"]]
    names = {1: "upsample_linear1d", 2: "upsample_bilinear2d"}
    name = "upsample_bicubic2d" if attrs["mode"] == "cubic" else names[len(given)]
    function = getattr(torch.ops.aten, name).default
    return function(x, attrs["sizes"], attrs["align"], *given)


def _attention(operands: Sequence[torch.Tensor], attrs: Attributes) -> torch.Tensor:
    q, k, v, *mask = operands
    return F.scaled_dot_product_attention(
        q, k, v, mask[0] if mask else None, is_causal=attrs["causal"], scale=attrs["scale"]
    )


def _topk(x: torch.Tensor, attrs: Attributes) -> list[torch.Tensor]:
    """torch.topk leaves open which of equal elements comes first; a stable sort does not."""
    order = torch.sort(x, dim=attrs["dim"], descending=True, stable=True)
    return [part.narrow(attrs["dim"], 0, attrs["k"]) for part in order]


def _clamp(x: torch.Tensor, attrs: Attributes) -> torch.Tensor:
    if attrs["low"] is None and attrs["high"] is None:
        return x
    return x.clamp(attrs["low"], attrs["high"])


def _spread(
    function: Callable[..., torch.Tensor], x: torch.Tensor, attrs: Attributes
) -> torch.Tensor:
    """var and std; torch warns of too few elements even where the result is empty."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*degrees of freedom is <= 0")
        return function(x, attrs["dims"], correction=attrs["correction"], keepdim=attrs["keepdim"])


def _elu(x: torch.Tensor, attrs: Attributes) -> torch.Tensor:
    return torch.ops.aten.elu(x, attrs["alpha"], attrs["scale"], 1.0)


_SPECIAL: dict[str, Callable[[Sequence[torch.Tensor], Attributes], torch.Tensor]] = {
    "cast": lambda x, a: x[0].to(TORCH[DType(a["dtype"])]),
    "reshape": lambda x, a: x[0].reshape(a["shape"]),
    "permute": lambda x, a: x[0].permute(a["dims"]),
    "expand": lambda x, a: x[0].expand(a["shape"]),
    "slice": lambda x, a: _slice(x[0], a),
    "flip": lambda x, a: x[0].flip(a["dims"]),
    "pad": lambda x, a: _pad(x[0], a),
    "concat": lambda x, a: torch.cat(list(x), a["dim"]),
    "gather": lambda x, a: x[0].gather(a["dim"], x[1].long()),
    "take": lambda x, a: _take(x[0], x[1], a["dim"]),
    "full": lambda x, a: torch.full(a["shape"], a["value"], dtype=TORCH[DType(a["dtype"])]),
    "iota": lambda x, a: _iota(a),
    "sum": lambda x, a: _sum(x[0], a),
    "prod": lambda x, a: _repeated(functools.partial(torch.prod, dtype=x[0].dtype), x[0], a),
    "amax": lambda x, a: _extreme("amax", x[0], a),
    "amin": lambda x, a: _extreme("amin", x[0], a),
    "any": lambda x, a: _repeated(torch.any, x[0], a),
    "all": lambda x, a: _repeated(torch.all, x[0], a),
    "argmax": lambda x, a: _position("argmax", x[0], a),
    "argmin": lambda x, a: _position("argmin", x[0], a),
    "convolution": _convolution,
    "conv_transpose": _conv_transpose,
    "conv_weight_gradient": _conv_weight_gradient,
    "linear": lambda x, a: F.linear(*x),
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "batch_norm": _batch_norm,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "softmax": lambda x, a: torch.softmax(x[0], a["dim"]),
    "log_softmax": lambda x, a: torch.log_softmax(x[0], a["dim"]),
    "gelu": lambda x, a: F.gelu(x[0], approximate=a["approximate"]),
    "leaky_relu": lambda x, a: F.leaky_relu(x[0], a["slope"]),
    "elu": lambda x, a: _elu(x[0], a),
    "clamp": lambda x, a: _clamp(x[0], a),
    "mean": lambda x, a: x[0].mean(a["dims"], keepdim=a["keepdim"]) if a["dims"] else x[0],
    "var": lambda x, a: _spread(torch.var, x[0], a),
    "std": lambda x, a: _spread(torch.std, x[0], a),
    "argmax_pool": lambda x, a: _argmax_pool(x[0], a),
    "max_pool_gradient": _max_pool_gradient,
    "avg_pool_gradient": _avg_pool_gradient,
    "resize": lambda x, a: _resize(x[0], a),
    "topk": lambda x, a: _topk(x[0], a)[0],
    "argtopk": lambda x, a: _topk(x[0], a)[1],
    "attention": _attention,
}

"""Norms, activations with parameters, pooling, attention."""

from __future__ import annotations

import math
from typing import cast

import torch
import torch.nn.functional as F

from kernel_gen.errors import InvalidGraph
from kernel_gen.frontend.torch_calls.attrs import Attrs, Call, Maker

Tensor = torch.Tensor


def _softmax(function: Call) -> Maker:
    def make(a: Attrs) -> Call:
        dim = a.int("dim")
        return lambda x: function(x, dim)

    return make


def _optional(a: Attrs, tensors: tuple[Tensor, ...]) -> list[Tensor | None]:
    """Weight and bias from the operands that are there."""
    rest = iter(tensors)
    return [next(rest) if a.flag(key) else None for key in ("weight", "bias")]


def _layer_norm(a: Attrs) -> Call:
    axes, eps = a.int("axes"), a.float("eps")

    def call(x: Tensor, *rest: Tensor) -> Tensor:
        weight, bias = _optional(a, rest)
        return F.layer_norm(x, x.shape[-axes:], weight, bias, eps)

    return call


def _rms_norm(a: Attrs) -> Call:
    axes, eps = a.int("axes"), a.float("eps")
    return lambda x, weight=None: F.rms_norm(x, x.shape[-axes:], weight, eps)


def _group_norm(a: Attrs) -> Call:
    groups, eps = a.int("groups"), a.float("eps")

    def call(x: Tensor, *rest: Tensor) -> Tensor:
        weight, bias = _optional(a, rest)
        return F.group_norm(x, groups, weight, bias, eps)

    return call


def _batch_norm(a: Attrs) -> Call:
    eps = a.float("eps")

    def call(x: Tensor, mean: Tensor, var: Tensor, *rest: Tensor) -> Tensor:
        weight, bias = _optional(a, rest)
        return F.batch_norm(x, mean, var, weight, bias, False, 0.0, eps)

    return call


def _gelu(a: Attrs) -> Call:
    approximate = a.text("approximate")
    return lambda x: F.gelu(x, approximate=approximate)


def _leaky_relu(a: Attrs) -> Call:
    slope = a.float("slope")
    return lambda x: F.leaky_relu(x, slope)


def _elu(a: Attrs) -> Call:
    alpha, scale = a.float("alpha"), a.float("scale")
    return lambda x: torch.ops.aten.elu(x, alpha, scale)


def _clamp(a: Attrs) -> Call:
    low, high = a.raw("low"), a.raw("high")
    if low is None and high is None:
        return lambda x: x
    return lambda x: torch.clamp(x, low, high)  # type: ignore[arg-type]


def _max_pool(a: Attrs) -> Call:
    kernel, stride, dilation = a.ints("kernel"), a.ints("stride"), a.ints("dilation")
    low, high = a.ints("low"), a.ints("high")
    functions: dict[int, Call] = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
    function = _per_rank(a, functions, len(kernel))
    if low == high and all(2 * p <= k for p, k in zip(low, kernel, strict=True)):
        return _of_any_rank(lambda x: function(x, kernel, stride, low, dilation), len(kernel))
    amounts = [n for pair in zip(low[::-1], high[::-1], strict=True) for n in pair]
    lowest = float("-inf")
    return _of_any_rank(
        lambda x: function(F.pad(x, amounts, value=lowest), kernel, stride, 0, dilation),
        len(kernel),
    )


def _avg_pool(a: Attrs) -> Call:
    kernel, stride, low, high = (a.ints(key) for key in ("kernel", "stride", "low", "high"))
    functions: dict[int, Call] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
    function = _per_rank(a, functions, len(kernel))
    if low == high and all(2 * p <= k for p, k in zip(low, kernel, strict=True)):
        return _of_any_rank(lambda x: function(x, kernel, stride, low), len(kernel))
    amounts = [n for pair in zip(low[::-1], high[::-1], strict=True) for n in pair]
    return _of_any_rank(lambda x: function(F.pad(x, amounts), kernel, stride), len(kernel))


def _resize(a: Attrs) -> Call:
    sizes, align = list(a.ints("sizes")), a.flag("align")
    held = a.raw("scales")
    scales = [scale or None for scale in held] if isinstance(held, tuple) else []
    names = {
        ("linear", 1): "upsample_linear1d",
        ("linear", 2): "upsample_bilinear2d",
        ("linear", 3): "upsample_trilinear3d",
        ("cubic", 2): "upsample_bicubic2d",
    }
    name = names.get((a.text("mode"), len(sizes)))
    if name is None:
        raise InvalidGraph(f"{a.op} by {a.text('mode')} of {len(sizes)} dimensions: torch has none")
    function = getattr(torch.ops.aten, name).default
    return _of_any_rank(lambda x: function(x, sizes, align, *scales), len(sizes), (2,))


def _of_any_rank(function: Call, spatial: int, taken: tuple[int, ...] = (1, 2)) -> Call:
    """Torch takes images with as many dimensions before the `spatial` last ones as `taken` says: of
    a batch, or of one member. A graph's may have more, none, or empty ones."""

    def call(x: torch.Tensor) -> torch.Tensor:
        leading, image = x.shape[: x.dim() - spatial], x.shape[x.dim() - spatial :]
        if len(leading) in taken and 0 not in leading:
            return cast(torch.Tensor, function(x))
        made = cast(torch.Tensor, function(x.reshape(math.prod(leading), 1, *image)))
        return made.reshape(*leading, *made.shape[2:])

    return call


def _per_rank(a: Attrs, functions: dict[int, Call], rank: int) -> Call:
    found = functions.get(rank)
    if found is None:
        raise InvalidGraph(f"{a.op} over {rank} dimensions: torch has 1 to 3")
    return found


def _attention(a: Attrs) -> Call:
    scale, causal = a.raw("scale"), a.flag("causal")
    return lambda q, k, v, mask=None: F.scaled_dot_product_attention(
        q,
        k,
        v,
        attn_mask=mask,
        is_causal=causal,
        scale=scale,  # type: ignore[arg-type]
    )


MAKERS: dict[str, Maker] = {
    "softmax": _softmax(torch.softmax),
    "log_softmax": _softmax(torch.log_softmax),
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "group_norm": _group_norm,
    "batch_norm": _batch_norm,
    "gelu": _gelu,
    "leaky_relu": _leaky_relu,
    "elu": _elu,
    "clamp": _clamp,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "resize": _resize,
    "attention": _attention,
}

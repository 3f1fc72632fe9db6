"""Convolutions, transposed ones, and the gradients of both."""

from __future__ import annotations

from typing import Any

from kernel_gen.frontend.lower.core import Args, Lowering, Result, Val, extent, lowers

Windows = dict[str, tuple[int, ...]]


@lowers("conv1d conv2d conv3d convolution _convolution")
def convolution(c: Lowering, a: Args) -> Result:
    value, weight, bias = a["input"], a["weight"], a["bias"]
    spatial = weight.rank - 2
    if a.get("transposed"):
        return _transposed(c, a, a["output_padding"])
    stride, dilation = _per_dim(a["stride"], spatial), _per_dim(a["dilation"], spatial)
    batched = value.rank == weight.rank
    if not batched:
        value = c.reshape(value, (1, *value.shape))
    value, padding = _padding(c, value, weight, a["padding"], dilation)
    found = c.op(
        "convolution",
        *([value, weight] if bias is None else [value, weight, bias]),
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=a["groups"],
    )
    return found if batched else c.reshape(found, found.shape[1:])


@lowers("conv_transpose1d conv_transpose2d conv_transpose3d")
def conv_transpose(c: Lowering, a: Args) -> Result:
    return _transposed(c, a, a["output_padding"])


def _transposed(c: Lowering, a: Args, more: int | list[int]) -> Val:
    value, weight, bias = a["input"], a["weight"], a["bias"]
    spatial = weight.rank - 2
    batched = value.rank == weight.rank
    if not batched:
        value = c.reshape(value, (1, *value.shape))
    found = c.op(
        "conv_transpose",
        *([value, weight] if bias is None else [value, weight, bias]),
        stride=_per_dim(a["stride"], spatial),
        padding=_per_dim(a["padding"], spatial),
        output_padding=_per_dim(more, spatial),
        dilation=_per_dim(a["dilation"], spatial),
        groups=a["groups"],
    )
    return found if batched else c.reshape(found, found.shape[1:])


@lowers("convolution_backward")
def convolution_backward(c: Lowering, a: Args) -> Result:
    """Gradients of input, weight and bias, those that the mask asks for."""
    gradient: Val = a["grad_output"]
    spatial = gradient.rank - 2
    windows = {key: _per_dim(a[key], spatial) for key in ("stride", "padding", "dilation")}
    wanted = [mask and used for mask, used in zip(a["output_mask"], c.used, strict=True)]
    dims = (0, *range(2, gradient.rank))
    return [
        _input_gradient(c, a, windows) if wanted[0] else None,
        _weight_gradient(c, a, windows) if wanted[1] else None,
        c.op("sum", gradient, dims=dims, keepdim=False) if wanted[2] else None,
    ]


def _per_dim(setting: int | list[int], spatial: int) -> tuple[int, ...]:
    values = [setting] if isinstance(setting, int) else list(setting)
    return tuple(values * spatial if len(values) == 1 else values)


def _padding(
    c: Lowering, value: Val, weight: Val, padding: Any, dilation: tuple[int, ...]
) -> tuple[Val, tuple[int, ...]]:
    """Padding per dimension; the odd element of "same" is padded apart, at the high end."""
    spatial = weight.rank - 2
    if padding == "valid":
        return value, (0,) * spatial
    if padding != "same":
        return value, _per_dim(padding, spatial)
    totals = [dilation[i] * (extent(c, weight, i + 2) - 1) for i in range(spatial)]
    if any(total % 2 for total in totals):
        high = (0, 0, *(total % 2 for total in totals))
        value = c.op("pad", value, low=(0,) * weight.rank, high=high, value=0.0)
    return value, tuple(total // 2 for total in totals)


def _input_gradient(c: Lowering, a: Args, windows: Windows) -> Val:
    """The way back of a convolution is a transposed one, and the other way round."""
    gradient, weight, value = a["grad_output"], a["weight"], a["input"]
    if a["transposed"]:
        return c.op("convolution", gradient, weight, groups=a["groups"], **windows)
    settings = zip(*(windows[key] for key in ("stride", "padding", "dilation")), strict=True)
    more = []
    for d, (step, cut, gap) in enumerate(settings, 2):
        reach = gap * (extent(c, weight, d) - 1) + 1 - 2 * cut
        more.append(extent(c, value, d) - (extent(c, gradient, d) - 1) * step - reach)
    return c.op(
        "conv_transpose",
        gradient,
        weight,
        output_padding=tuple(more),
        groups=a["groups"],
        **windows,
    )


def _weight_gradient(c: Lowering, a: Args, windows: Windows) -> Val:
    read, made = a["input"], a["grad_output"]
    if a["transposed"]:
        read, made = made, read
    kernel = tuple(extent(c, a["weight"], d) for d in range(2, made.rank))
    return c.op("conv_weight_gradient", read, made, kernel=kernel, groups=a["groups"], **windows)

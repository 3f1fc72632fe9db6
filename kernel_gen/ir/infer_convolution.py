"""Typing of convolutions, and of what goes their way back."""

from __future__ import annotations

from kernel_gen.ir.call import Call, describe_shape
from kernel_gen.ir.types import Dim, TensorType, static_shape


def infer_convolution(call: Call) -> TensorType:
    """x (N, C, spatial…), weight (O, C / groups, kernel…)[, bias (O)] -> (N, O, out…)."""
    if len(call.operands) not in (2, 3):
        call.fail("takes x, weight and an optional bias")
    x, weight = call.operands[:2]
    if x.rank < 3 or weight.rank != x.rank:
        call.fail("x and weight need one rank of 3 or more")
    if len({type.dtype for type in call.operands}) != 1 or not x.dtype.is_float:
        call.fail("operands must have one float dtype")
    groups = call.integer("groups", 1)
    channels, out, per_group = x.shape[1], weight.shape[0], weight.shape[1]
    if not isinstance(channels, int) or not isinstance(out, int) or not isinstance(per_group, int):
        call.fail("channels must not be symbolic")
    if channels != per_group * groups or out % groups:
        call.fail(f"{channels} channels do not split into {groups} groups of the weight")
    if len(call.operands) == 3 and call.operands[2].shape != (out,):
        call.fail(f"the bias must have shape [{out}]")
    return TensorType(x.dtype, (x.shape[0], out, *_spatial(call)))


def _spatial(call: Call) -> tuple[Dim, ...]:
    x, weight = call.operands[:2]
    settings = (call.integers("stride", 1), call.integers("padding"), call.integers("dilation", 1))
    if any(len(values) != x.rank - 2 for values in settings):
        call.fail(f"stride, padding and dilation need {x.rank - 2} values each")
    found: list[Dim] = []
    for extent, kernel, stride, pad, dilation in zip(
        x.shape[2:], weight.shape[2:], *settings, strict=True
    ):
        if not isinstance(extent, int) or not isinstance(kernel, int) or kernel < 1:
            call.fail("spatial extents must not be symbolic, and the kernel not empty")
        span = extent + 2 * pad - dilation * (kernel - 1) - 1
        if span < 0:
            call.fail("the kernel is larger than the padded input")
        found.append(span // stride + 1)
    return tuple(found)


def infer_conv_transpose(call: Call) -> TensorType:
    """x (N, I, spatial…), weight (I, O / groups, kernel…)[, bias (O)] -> (N, O, out…)."""
    if len(call.operands) not in (2, 3):
        call.fail("takes x, weight and an optional bias")
    x, weight = call.operands[:2]
    _check_pair(call)
    groups = call.integer("groups", 1)
    inputs, outputs = x.shape[1], weight.shape[1]
    if not isinstance(inputs, int) or not isinstance(outputs, int) or inputs % groups:
        call.fail(f"channels are static, and those of x split into {groups} groups")
    if weight.shape[0] != inputs:
        call.fail(f"the weight must have {inputs} rows")
    if len(call.operands) == 3 and call.operands[2].shape != (outputs * groups,):
        call.fail(f"the bias must have shape [{outputs * groups}]")
    return TensorType(x.dtype, (x.shape[0], outputs * groups, *_spread(call)))


def _check_pair(call: Call) -> None:
    x, other = call.operands[:2]
    if x.rank < 3 or other.rank != x.rank:
        call.fail("operands need one rank of 3 or more")
    if len({type.dtype for type in call.operands}) != 1 or not x.dtype.is_float:
        call.fail("operands must have one float dtype")


def _spread(call: Call) -> tuple[int, ...]:
    """Extents of a transposed convolution: where the last window ends."""
    x, weight = call.operands[:2]
    stride, dilation = call.integers("stride", 1), call.integers("dilation", 1)
    padding, more = call.integers("padding"), call.integers("output_padding")
    settings = (stride, dilation, padding, more)
    if any(len(values) != x.rank - 2 for values in settings):
        call.fail(f"stride, padding, output_padding and dilation need {x.rank - 2} values each")
    found: list[int] = []
    for extent, kernel, s, d, cut, extra in zip(
        x.shape[2:], weight.shape[2:], *settings, strict=True
    ):
        if not isinstance(extent, int) or not isinstance(kernel, int) or not extent or not kernel:
            call.fail("spatial extents and the kernel's are static, and not 0")
        size = (extent - 1) * s + d * (kernel - 1) + 1 - 2 * cut + extra
        if size < 1 or extra >= max(s, d):
            call.fail("output_padding is below the stride or the dilation, and a result is left")
        found.append(size)
    return tuple(found)


def infer_conv_weight_gradient(call: Call) -> TensorType:
    """x (N, C, spatial…), gradient (N, O, out…) of the result -> (O, C / groups, kernel…)."""
    _check_pair(call)
    x, gradient = call.operands
    groups, kernel = call.integer("groups", 1), call.integers("kernel", 1)
    if not (x.is_static and gradient.is_static) or 0 in (*x.shape, *gradient.shape):
        call.fail("extents must not be symbolic or 0")
    channels, out = static_shape(x.shape)[1], static_shape(gradient.shape)[1]
    if channels % groups or out % groups or len(kernel) != x.rank - 2:
        call.fail(f"channels split into {groups} groups, and the kernel has {x.rank - 2} extents")
    weight = TensorType(x.dtype, (out, channels // groups, *kernel))
    forward = Call(
        "convolution", (x, weight), {k: v for k, v in call.attrs.items() if k != "kernel"}
    )
    if infer_convolution(forward).shape != gradient.shape:
        call.fail(f"the convolution gives {describe_shape(infer_convolution(forward).shape)}")
    return weight

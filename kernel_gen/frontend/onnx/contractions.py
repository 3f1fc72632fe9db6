"""Matrix products, convolutions, Einstein sums."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from kernel_gen.frontend.onnx.values import Call, rule
from kernel_gen.frontend.onnx.windows import Window

_CONV = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


@rule("MatMul")
def matmul(call: Call) -> Tensor:
    return torch.matmul(call.tensor(0), call.tensor(1))


@rule("Gemm")
def gemm(call: Call) -> Tensor:
    """alpha · A' · B' + beta · C, as a linear layer where it is one."""
    a, b, c = call.tensor(0), call.tensor(1), call.optional(2)
    alpha, beta = call.attr("alpha", 1.0), call.attr("beta", 1.0)
    a = a.t() if call.attr("transA", 0) else a
    plain = alpha == 1.0 and beta == 1.0
    if plain and call.attr("transB", 0) and (c is None or c.ndim == 1):
        return F.linear(a, b, c)
    product = a @ (b.t() if call.attr("transB", 0) else b)
    product = product if alpha == 1.0 else product * alpha
    return product if c is None else product + (c if beta == 1.0 else c * beta)


@rule("Det")
def determinant(call: Call) -> Tensor:
    found: Tensor = torch.linalg.det(call.tensor(0))
    return found


@rule("Einsum")
def einsum(call: Call) -> Tensor:
    equation = call.attr("equation").decode()
    return torch.einsum(equation, *call.tensors())


@rule("Conv")
def conv(call: Call) -> Tensor:
    return convolved(call, call.tensor(0), call.tensor(1), call.optional(2))


def convolved(call: Call, value: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """A convolution by the attributes of a node."""
    window = Window.of(call, value.shape[2:], weight.shape[2:])
    function = _CONV.get(len(window.kernel))
    if function is None:
        raise call.refuse(f"{len(window.kernel)} spatial dimensions; 1 to 3 are supported")
    value, padding = window.padded(value, 0.0)
    strides, dilations = list(window.strides), list(window.dilations)
    return function(value, weight, bias, strides, padding, dilations, call.attr("group", 1))


@rule("ConvTranspose")
def conv_transpose(call: Call) -> Tensor:
    """Run without padding, then cut: pads of both sides and output sizes are all cuts."""
    value, weight, bias = call.tensor(0), call.tensor(1), call.optional(2)
    window = Window.of(call, value.shape[2:], weight.shape[2:])
    rank = len(window.kernel)
    function = _TRANSPOSED.get(rank)
    if function is None:
        raise call.refuse(f"{rank} spatial dimensions; 1 to 3 are supported")
    grow = list(call.attr("output_padding") or [0] * rank)
    before, after = _cuts(call, window, value.shape[2:], grow)
    strides, dilations = list(window.strides), list(window.dilations)
    extra = [max(0, -cut) for cut in after]
    zero = [0] * rank
    full = function(value, weight, None, strides, zero, zero, call.attr("group", 1), dilations)
    full = F.pad(full, [n for extent in reversed(extra) for n in (0, extent)])
    for axis in range(rank):
        stop = full.shape[2 + axis] - max(0, after[axis])
        full = full.narrow(2 + axis, before[axis], stop - before[axis])
    return full if bias is None else full + bias.reshape(-1, *[1] * rank)


def _cuts(
    call: Call, window: Window, extents: Sequence[int], grow: Sequence[int]
) -> tuple[list[int], list[int]]:
    """What to cut at the front and at the back of each axis; negative: what to add."""
    shape = call.attr("output_shape")
    auto = call.attr("auto_pad", b"NOTSET").decode()
    before, after = list(window.before), [b - g for b, g in zip(window.after, grow, strict=True)]
    for axis, extent in enumerate(extents):
        reach = window.dilations[axis] * (window.kernel[axis] - 1) + 1
        full = window.strides[axis] * (extent - 1) + reach
        if shape is not None:
            wanted = shape[axis - len(extents)]
        elif auto.startswith("SAME"):
            wanted = extent * window.strides[axis]
        else:
            continue
        total = max(0, full + grow[axis] - wanted)
        before[axis] = total // 2 if auto == "SAME_UPPER" else total - total // 2
        after[axis] = full - wanted - before[axis]
    return before, after

"""Quantised numbers: scale, zero point, saturation."""

from __future__ import annotations

import torch
from torch import Tensor

from kernel_gen.frontend.onnx.contractions import convolved
from kernel_gen.frontend.onnx.dtypes import torch_dtype
from kernel_gen.frontend.onnx.values import Call, rule


@rule("QuantizeLinear")
def quantize(call: Call) -> Tensor:
    """round(x / scale) + zero point, to even at ties, saturated."""
    value, scale, zero = call.tensor(0), call.tensor(1), call.optional(2)
    dtype = _storage(call, zero)
    scaled = torch.round(value / _along(call, scale.to(value.dtype), value))
    if zero is not None:
        scaled = scaled + _along(call, zero, value).to(scaled.dtype)
    info = torch.iinfo(dtype)
    return scaled.clamp(info.min, info.max).to(dtype)


def _storage(call: Call, zero: Tensor | None) -> torch.dtype:
    if zero is not None:
        dtype = zero.dtype
    else:
        code = call.attr("output_dtype", 0)
        dtype = torch_dtype(code, "the result of QuantizeLinear") if code else torch.uint8
    if dtype.is_floating_point:
        raise call.refuse(f"quantisation to {dtype}")
    return dtype


@rule("DequantizeLinear")
def dequantize(call: Call) -> Tensor:
    value, scale, zero = call.tensor(0), call.tensor(1), call.optional(2)
    wide = value.to(torch.int32)
    if zero is not None:
        wide = wide - _along(call, zero, value).to(torch.int32)
    return wide.to(scale.dtype) * _along(call, scale, value)


def _along(call: Call, parameter: Tensor, value: Tensor) -> Tensor:
    """A scale or zero point per tensor, per axis or per block, shaped to broadcast."""
    if parameter.ndim == 0 or parameter.numel() == 1:
        return parameter.reshape(())
    axis = call.attr("axis", 1) % value.ndim
    if parameter.ndim == 1:
        extents = [1] * value.ndim
        extents[axis] = -1
        return parameter.reshape(extents)
    block = call.attr("block_size", 0) or -(-value.shape[axis] // parameter.shape[axis])
    return parameter.repeat_interleave(block, axis).narrow(axis, 0, value.shape[axis])


@rule("DynamicQuantizeLinear")
def dynamic_quantize(call: Call) -> list[Tensor]:
    value = call.tensor(0)
    low, high = value.amin().clamp(max=0), value.amax().clamp(min=0)
    scale = (high - low) / 255
    zero = torch.round(-low / scale).clamp(0, 255)
    quantised = (torch.round(value / scale) + zero).clamp(0, 255).to(torch.uint8)
    return [quantised, scale, zero.to(torch.uint8)]


@rule("MatMulInteger")
def matmul_integer(call: Call) -> Tensor:
    return torch.matmul(_centred(call, 0, 2, rows=True), _centred(call, 1, 3, rows=False))


def _centred(call: Call, operand: int, zero_point: int, *, rows: bool) -> Tensor:
    value, zero = call.tensor(operand).to(torch.int32), call.optional(zero_point)
    if zero is None:
        return value
    zero = zero.to(torch.int32)
    return value - (zero.unsqueeze(-1) if rows and zero.ndim == 1 and zero.numel() > 1 else zero)


@rule("QLinearMatMul")
def qlinear_matmul(call: Call) -> Tensor:
    """Dequantised, multiplied, quantised."""
    a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = call.tensors()
    left = (a.to(torch.int32) - a_zero.to(torch.int32)).to(torch.float32)
    right = (b.to(torch.int32) - b_zero.to(torch.int32)).to(torch.float32)
    product = torch.matmul(left, right) * (a_scale.float() * b_scale.float() / scale.float())
    return _requantised(product, zero)


def _requantised(value: Tensor, zero: Tensor) -> Tensor:
    info = torch.iinfo(zero.dtype)
    rounded = torch.round(value) + zero.to(torch.float32)
    return rounded.clamp(info.min, info.max).to(zero.dtype)


@rule("ConvInteger")
def conv_integer(call: Call) -> Tensor:
    """In float64, which holds sums of products of bytes exactly."""
    value, weight = call.tensor(0).double(), call.tensor(1).double()
    if call.has(2):
        value = value - call.tensor(2).double()
    if call.has(3):
        weight = weight - _per_filter(call.tensor(3), weight).double()
    return convolved(call, value, weight, None).to(torch.int32)


@rule("QLinearConv")
def qlinear_conv(call: Call) -> Tensor:
    """Dequantised, convolved, quantised; the bias is in the unit of the products."""
    value, value_scale, value_zero = (call.tensor(place) for place in range(3))
    weight, weight_scale, weight_zero = (call.tensor(place) for place in range(3, 6))
    scale, zero, bias = call.tensor(6), call.tensor(7), call.optional(8)
    left = value.float() - value_zero.float()
    right = weight.float() - _per_filter(weight_zero, weight).float()
    total = convolved(call, left, right, None if bias is None else bias.float())
    unit = value_scale.float() * weight_scale.float() / scale.float()
    unit = unit.reshape(-1, *[1] * (value.ndim - 2)) if unit.numel() > 1 else unit.reshape(())
    return _requantised(total * unit, zero)


def _per_filter(parameter: Tensor, weight: Tensor) -> Tensor:
    """A number for all filters, or one for each."""
    return parameter.reshape(-1, *[1] * (weight.ndim - 1)) if parameter.numel() > 1 else parameter

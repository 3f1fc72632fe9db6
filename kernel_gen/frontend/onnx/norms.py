"""Normalisations."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kernel_gen.frontend.onnx.values import Call, rule


@rule("BatchNormalization")
def batch_norm(call: Call) -> Tensor:
    if call.attr("training_mode", 0):
        raise call.refuse("training mode; export the model in eval mode")
    value, scale, bias, mean, variance = call.tensors()
    scale, bias = scale.to(value.dtype), bias.to(value.dtype)
    mean, variance = mean.to(value.dtype), variance.to(value.dtype)
    eps = call.attr("epsilon", 1e-5)
    return F.batch_norm(value, mean, variance, scale, bias, training=False, eps=eps)


@rule("LayerNormalization")
def layer_norm(call: Call) -> Tensor | list[Tensor]:
    value, scale, bias = call.tensor(0), call.tensor(1), call.optional(2)
    axis, eps = call.attr("axis", -1) % value.ndim, call.attr("epsilon", 1e-5)
    shape = list(value.shape[axis:])
    scale = scale.expand(shape) if list(scale.shape) != shape else scale
    bias = bias.expand(shape) if bias is not None and list(bias.shape) != shape else bias
    result = F.layer_norm(value, shape, scale, bias, eps)
    if call.outputs == 1:
        return result
    axes = list(range(axis, value.ndim))
    mean = value.float().mean(axes, keepdim=True)
    centred = value.float() - mean
    deviation = torch.rsqrt((centred * centred).mean(axes, keepdim=True) + eps)
    return [result, mean, deviation][: call.outputs]


@rule("RMSNormalization")
def rms_norm(call: Call) -> Tensor:
    value, scale = call.tensor(0), call.tensor(1)
    axis, eps = call.attr("axis", -1) % value.ndim, call.attr("epsilon", 1e-5)
    shape = list(value.shape[axis:])
    return F.rms_norm(value, shape, None, eps) * scale


@rule("InstanceNormalization")
def instance_norm(call: Call) -> Tensor:
    value, scale, bias = call.tensors()
    return F.instance_norm(value, weight=scale, bias=bias, eps=call.attr("epsilon", 1e-5))


@rule("GroupNormalization")
def group_norm(call: Call) -> Tensor:
    """Scale and bias are per group before opset 21 and per channel from then on."""
    value, scale, bias = call.tensors()
    groups, eps = call.attr("num_groups"), call.attr("epsilon", 1e-5)
    if scale.shape[0] != value.shape[1]:
        repeats = value.shape[1] // groups
        scale, bias = scale.repeat_interleave(repeats), bias.repeat_interleave(repeats)
    return F.group_norm(value, groups, scale.to(value.dtype), bias.to(value.dtype), eps)


@rule("LpNormalization")
def lp_norm(call: Call) -> Tensor:
    value, axis, p = call.tensor(0), call.attr("axis", -1), call.attr("p", 2)
    norm = torch.linalg.vector_norm(value, p, axis, keepdim=True)
    return torch.where(norm == 0, torch.zeros_like(value), value / norm)


@rule("MeanVarianceNormalization")
def mean_variance_norm(call: Call) -> Tensor:
    value, axes = call.tensor(0), list(call.attr("axes", [0, 2, 3]))
    mean = value.mean(axes, keepdim=True)
    deviation = ((value * value).mean(axes, keepdim=True) - mean * mean).sqrt()
    return (value - mean) / (deviation + 1e-9)


@rule("LRN")
def local_response_norm(call: Call) -> Tensor:
    size, alpha = call.attr("size"), call.attr("alpha", 1e-4)
    beta, bias = call.attr("beta", 0.75), call.attr("bias", 1.0)
    value = call.tensor(0)
    front = (size - 1) // 2
    squares = F.pad(value * value, [0, 0] * (value.ndim - 2) + [front, size - 1 - front])
    pieces = [squares.narrow(1, i, value.shape[1]) for i in range(size)]
    total = torch.stack(pieces).sum(0)
    result: Tensor = value / (bias + alpha / size * total) ** beta
    return result

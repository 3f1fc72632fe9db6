"""Attention and rotary positions as single operators (opset 23)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kernel_gen.frontend.onnx.values import Call, rule

_ATTENTION = {
    *("is_causal", "kv_num_heads", "q_num_heads", "qk_matmul_output_mode", "scale"),
    *("softcap", "softmax_precision"),
}


@rule("Attention")
def attention(call: Call) -> Tensor | list[Tensor]:
    """Scaled dot products of 3-D (packed heads) or 4-D operands, with past keys and values."""
    flat = call.tensor(0).ndim == 3
    query = _heads(call, 0, "q_num_heads")
    key, value = _heads(call, 1, "kv_num_heads"), _heads(call, 2, "kv_num_heads")
    unknown = set(call.attrs) - _ATTENTION
    if unknown:
        raise call.refuse(f"its attributes {', '.join(sorted(unknown))}")
    if call.attr("softcap", 0.0) or call.attr("qk_matmul_output_mode", 0) or call.outputs > 3:
        raise call.refuse("soft caps and the scores as an output")
    if call.has(6) or call.attr("softmax_precision") not in (None, 1):
        raise call.refuse("padding lengths and a precision of its own for the softmax")
    past, present_key, present_value = 0, key, value
    if call.has(4):
        past = call.tensor(4).shape[2]
        present_key = key = torch.cat([call.tensor(4), key], 2)
        present_value = value = torch.cat([call.tensor(5), value], 2)
    mask = _mask(call, query, key, past)
    groups = query.shape[1] != key.shape[1]
    scale = call.attr("scale")
    result = F.scaled_dot_product_attention(query, key, value, mask, scale=scale, enable_gqa=groups)
    if flat:
        result = result.transpose(1, 2).flatten(2)
    return [result, present_key, present_value][: call.outputs]


def _heads(call: Call, position: int, attribute: str) -> Tensor:
    value = call.tensor(position)
    if value.ndim == 4:
        return value
    return _split_heads(value, call.attr(attribute)).transpose(1, 2)


def _split_heads(value: Tensor, heads: int) -> Tensor:
    batch, positions, width = value.shape
    return value.reshape(batch, positions, heads, width // heads)


def _mask(call: Call, query: Tensor, key: Tensor, past: int) -> Tensor | None:
    mask = call.optional(3)
    if mask is not None and mask.shape[-1] < key.shape[2]:
        missing = key.shape[2] - mask.shape[-1]
        fill = False if mask.dtype is torch.bool else float("-inf")
        mask = F.pad(mask, [0, missing], value=fill)
    if not call.attr("is_causal", 0):
        return mask
    rows = torch.arange(query.shape[2])[:, None] + past
    causal = torch.arange(key.shape[2])[None, :] <= rows
    if mask is None:
        return causal
    if mask.dtype is torch.bool:
        return mask & causal
    return torch.where(causal, mask, torch.tensor(float("-inf"), dtype=mask.dtype))


@rule("RotaryEmbedding")
def rotary_embedding(call: Call) -> Tensor:
    value, cos, sin = call.tensor(0), call.tensor(1), call.tensor(2)
    flat = value.ndim == 3
    # Either way: batch, positions, heads, width.
    value = _split_heads(value, call.attr("num_heads")) if flat else value.transpose(1, 2)
    if call.has(3):
        positions = call.tensor(3)
        cos, sin = cos[positions], sin[positions]
    cos, sin = cos.unsqueeze(2), sin.unsqueeze(2)
    width = call.attr("rotary_embedding_dim", 0) or value.shape[-1]
    turned = _rotate(value[..., :width], cos, sin, bool(call.attr("interleaved", 0)))
    result = torch.cat([turned, value[..., width:]], -1)
    return result.flatten(2) if flat else result.transpose(1, 2)


def _rotate(value: Tensor, cos: Tensor, sin: Tensor, interleaved: bool) -> Tensor:
    if interleaved:
        first, second = value[..., 0::2], value[..., 1::2]
    else:
        first, second = value.chunk(2, -1)
    parts = [cos * first - sin * second, sin * first + cos * second]
    return torch.stack(parts, -1).flatten(-2) if interleaved else torch.cat(parts, -1)

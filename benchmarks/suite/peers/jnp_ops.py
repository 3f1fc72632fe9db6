"""Core ATen ops as jax.numpy, by the name that a graph of torch.export shows for them.

Python numbers stay weak: they do not widen arrays, as in torch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import torch

Array = Any
Op = Callable[..., Any]

_DTYPES = {
    torch.float64: jnp.float64,
    torch.float32: jnp.float32,
    torch.float16: jnp.float16,
    torch.bfloat16: jnp.bfloat16,
    torch.int64: jnp.int64,
    torch.int32: jnp.int32,
    torch.int16: jnp.int16,
    torch.int8: jnp.int8,
    torch.uint8: jnp.uint8,
    torch.bool: jnp.bool_,
}


def _wide(x: Array) -> Array:
    """Statistics of narrow floats are taken in fp32, as torch does."""
    return x.astype(jnp.float32) if x.dtype in (jnp.bfloat16, jnp.float16) else x


def _axes(dims: Sequence[int] | int | None) -> tuple[int, ...] | int | None:
    return tuple(dims) if isinstance(dims, list | tuple) else dims  # type: ignore[return-value]


def _normalise(x: Array, axes: tuple[int, ...], eps: float) -> tuple[Array, Array, Array]:
    mean = jnp.mean(x, axes, keepdims=True)
    var = jnp.mean(jnp.square(x - mean), axes, keepdims=True)
    rstd = jax.lax.rsqrt(var + eps)
    return (x - mean) * rstd, mean, rstd


def _layer_norm(
    x: Array, shape: Sequence[int], weight: Array, bias: Array, eps: float
) -> tuple[Array, Array, Array]:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    out, mean, rstd = _normalise(_wide(x), axes, eps)
    out = out if weight is None else out * weight
    out = out if bias is None else out + bias
    return out.astype(x.dtype), mean, rstd


def _group_norm(
    x: Array, weight: Array, bias: Array, n: int, c: int, hw: int, groups: int, eps: float
) -> tuple[Array, Array, Array]:
    out, mean, rstd = _normalise(_wide(x).reshape(n, groups, -1), (2,), eps)
    out = out.reshape(n, c, hw)
    out = out if weight is None else out * weight[:, None]
    out = out if bias is None else out + bias[:, None]
    return out.reshape(x.shape).astype(x.dtype), mean, rstd


def _batch_norm(
    x: Array, weight: Array, bias: Array, mean: Array, var: Array, _momentum: float, eps: float
) -> tuple[Array, None, None]:
    shape = (1, -1) + (1,) * (x.ndim - 2)
    scale = jax.lax.rsqrt(var + eps)
    scale = scale if weight is None else scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    return x * scale.reshape(shape) + shift.reshape(shape), None, None


def _convolution(
    x: Array, w: Array, bias: Array, stride: Sequence[int], padding: Sequence[int],
    dilation: Sequence[int], transposed: bool, _out_padding: Sequence[int], groups: int,
) -> Array:  # fmt: skip
    if transposed:
        raise NotImplementedError("transposed convolution")
    out = jax.lax.conv_general_dilated(
        x, w, stride, [(p, p) for p in padding], rhs_dilation=dilation, feature_group_count=groups
    )
    return out if bias is None else out + bias.reshape((1, -1) + (1,) * (x.ndim - 2))


def _max_pool(
    x: Array, kernel: Sequence[int], stride: Sequence[int] = (), padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1), ceil_mode: bool = False,
) -> tuple[Array, None]:  # fmt: skip
    if ceil_mode:
        raise NotImplementedError("pooling that rounds up")
    lead = (1,) * (x.ndim - len(kernel))
    pads = [(0, 0)] * len(lead) + [(p, p) for p in padding]
    out = jax.lax.reduce_window(
        x, -jnp.inf, jax.lax.max, (*lead, *kernel), (*lead, *(stride or kernel)), pads,
        window_dilation=(*lead, *dilation),
    )  # fmt: skip
    return out, None


def _adaptive_mean(x: Array, size: Sequence[int]) -> Array:
    if tuple(size) != (1,) * len(size):
        raise NotImplementedError(f"adaptive pooling to {size}")
    return jnp.mean(x, tuple(range(x.ndim - len(size), x.ndim)), keepdims=True)


def _attention(
    q: Array, k: Array, v: Array, mask: Array = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Array:  # fmt: skip
    if dropout_p:
        raise NotImplementedError("dropout")
    if enable_gqa:
        k, v = (jnp.repeat(t, q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    scores = jnp.einsum("...qd,...kd->...qk", q, k) * (
        q.shape[-1] ** -0.5 if scale is None else scale
    )
    if is_causal:
        mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    if mask is not None:
        scores = jnp.where(mask, scores, -jnp.inf) if mask.dtype == bool else scores + mask
    return jnp.einsum("...qk,...kd->...qd", jax.nn.softmax(scores, -1), v)


def _slice(x: Array, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Array:
    index = [slice(None)] * x.ndim
    index[dim] = slice(start, None if end is not None and end >= x.shape[dim] else end, step)
    return x[tuple(index)]


def _split(x: Array, sizes: Sequence[int], dim: int = 0) -> list[Array]:
    places = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    return list(jnp.split(x, places, dim))


def _select_scatter(x: Array, source: Array, dim: int, index: int) -> Array:
    place = [slice(None)] * x.ndim
    return x.at[(*place[:dim], index)].set(source)


def _squeeze(x: Array, dims: Sequence[int]) -> Array:
    return jnp.squeeze(x, tuple(d for d in dims if x.shape[d] == 1))


def _index(x: Array, indices: Sequence[Array]) -> Array:
    given = [i for i, entry in enumerate(indices) if entry is not None]
    if given != list(range(given[0], given[0] + len(given))):
        raise NotImplementedError("indices that are not next to each other")
    return x[tuple(slice(None) if entry is None else entry for entry in indices)]


def _to(x: Array, *, dtype: Any = None, **_kwargs: Any) -> Array:
    return x if dtype is None else x.astype(_DTYPES[dtype])


def _full(shape: Sequence[int], value: Any, *, dtype: Any = None, **_kwargs: Any) -> Array:
    return jnp.full(shape, value, None if dtype is None else _DTYPES[dtype])


def _arange(start: Any, end: Any, step: Any = 1, *, dtype: Any = None, **_kwargs: Any) -> Array:
    return jnp.arange(start, end, step, jnp.int64 if dtype is None else _DTYPES[dtype])


def _sum(x: Array, dims: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Array:
    kind = jnp.int64 if dtype is None and not jnp.issubdtype(x.dtype, jnp.inexact) else None
    return jnp.sum(x, _axes(dims or None), _DTYPES[dtype] if dtype else kind, keepdims=keepdim)


def _var(x: Array, dims: Any = None, *, correction: float = 1, keepdim: bool = False) -> Array:
    return jnp.var(x, _axes(dims), ddof=int(correction), keepdims=keepdim)


def _gelu(x: Array, approximate: str = "none") -> Array:
    return jax.nn.gelu(x, approximate=approximate == "tanh")


def _clamp(x: Array, low: Any = None, high: Any = None) -> Array:
    return jnp.clip(x, low, high)


def _scaled(operation: Op) -> Op:
    """add and sub, whose second operand may have a factor."""
    return lambda x, y, alpha=1: operation(x, y if alpha == 1 else y * alpha)


def _reduced(operation: Op) -> Op:
    return lambda x, dims=None, keepdim=False: operation(x, _axes(dims), keepdims=keepdim)


def _float(operation: Op) -> Op:
    """Unary ops that make floats of integers: fp32, as torch does."""
    return lambda x: operation(x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(jnp.float32))


_UNARY: dict[str, Op] = {
    "abs": jnp.abs, "neg": jnp.negative, "relu": jax.nn.relu, "sign": jnp.sign,
    "floor": jnp.floor, "ceil": jnp.ceil, "round": jnp.round, "trunc": jnp.trunc,
    "logical_not": jnp.logical_not, "bitwise_not": jnp.bitwise_not,
    "isnan": jnp.isnan, "isinf": jnp.isinf, "clone": lambda x, **_: x, "alias": lambda x: x,
    "exp": _float(jnp.exp), "expm1": _float(jnp.expm1), "log": _float(jnp.log),
    "log1p": _float(jnp.log1p), "log2": _float(jnp.log2), "sqrt": _float(jnp.sqrt),
    "rsqrt": _float(jax.lax.rsqrt), "reciprocal": _float(lambda x: 1 / x),
    "sin": _float(jnp.sin), "cos": _float(jnp.cos), "tanh": _float(jnp.tanh),
    "erf": _float(jax.lax.erf), "sigmoid": _float(jax.nn.sigmoid),
    "hardswish": jax.nn.hard_swish, "silu": jax.nn.silu, "gelu": _gelu, "clamp": _clamp,
}  # fmt: skip
_BINARY: dict[str, Op] = {
    "add": _scaled(operator.add), "sub": _scaled(operator.sub), "mul": operator.mul,
    "div": operator.truediv, "remainder": operator.mod, "maximum": jnp.maximum,
    "minimum": jnp.minimum, "eq": operator.eq, "ne": operator.ne, "lt": operator.lt,
    "le": operator.le, "gt": operator.gt, "ge": operator.ge, "bitwise_and": operator.and_,
    "bitwise_or": operator.or_, "logical_and": jnp.logical_and, "logical_or": jnp.logical_or,
}  # fmt: skip

OPS: dict[str, Op] = {
    str(operator.getitem): operator.getitem,
    "aten._assert_tensor_metadata.default": lambda *_, **__: None,
    **{f"aten.{name}.default": op for name, op in _UNARY.items()},
    **{f"aten.{name}.{kind}": op for name, op in _BINARY.items() for kind in ("Tensor", "Scalar")},
    **{f"aten.{name}.default": op for name, op in _BINARY.items() if name not in _UNARY},
    "aten.pow.Tensor_Scalar": lambda x, y: jnp.square(x) if y == 2 else x**y,
    "aten.pow.Tensor_Tensor": operator.pow,
    "aten.pow.Scalar": operator.pow,
    "aten.where.self": jnp.where,
    "aten._to_copy.default": _to,
    "aten.full.default": _full,
    "aten.full_like.default": lambda x, v, *, dtype=None, **_: jnp.full_like(
        x, v, _DTYPES[dtype] if dtype else None
    ),
    "aten.scalar_tensor.default": lambda v, **k: _full((), v, **k),
    "aten.arange.start_step": _arange,
    "aten._softmax.default": lambda x, dim, _half: jax.nn.softmax(_wide(x), dim).astype(x.dtype),
    "aten._log_softmax.default": lambda x, dim, _half: jax.nn.log_softmax(_wide(x), dim).astype(
        x.dtype
    ),
    "aten.native_layer_norm.default": _layer_norm,
    "aten.native_group_norm.default": _group_norm,
    "aten._native_batch_norm_legit_no_training.default": _batch_norm,
    "aten.convolution.default": _convolution,
    "aten.max_pool2d_with_indices.default": _max_pool,
    "aten._adaptive_avg_pool2d.default": _adaptive_mean,
    "aten.scaled_dot_product_attention.default": _attention,
    "aten.mm.default": jnp.matmul,
    "aten.bmm.default": jnp.matmul,
    "aten.addmm.default": lambda b, x, y: jnp.matmul(x, y) + b,
    "aten.mean.dim": _reduced(jnp.mean),
    "aten.mean.default": jnp.mean,
    "aten.sum.dim_IntList": _sum,
    "aten.sum.default": _sum,
    "aten.var.correction": _var,
    "aten.amax.default": _reduced(jnp.max),
    "aten.amin.default": _reduced(jnp.min),
    "aten.argmax.default": lambda x, dim=None, keepdim=False: jnp.argmax(x, dim, keepdims=keepdim),
    "aten.any.dim": _reduced(jnp.any),
    "aten.permute.default": jnp.transpose,
    "aten.view.default": lambda x, shape: x.reshape(shape),
    "aten.expand.default": lambda x, shape: jnp.broadcast_to(
        x, [x.shape[i - len(shape)] if s == -1 else s for i, s in enumerate(shape)]
    ),
    "aten.unsqueeze.default": lambda x, dim: jnp.expand_dims(x, dim),
    "aten.squeeze.dims": _squeeze,
    "aten.cat.default": lambda parts, dim=0: jnp.concatenate(parts, dim),
    "aten.slice.Tensor": _slice,
    "aten.select.int": lambda x, dim, index: jax.lax.index_in_dim(x, index, dim, keepdims=False),
    "aten.select_scatter.default": _select_scatter,
    "aten.split_with_sizes.default": _split,
    "aten.embedding.default": lambda table, ids, *_: jnp.take(table, ids, 0),
    "aten.index_select.default": lambda x, dim, ids: jnp.take(x, ids, dim),
    "aten.gather.default": lambda x, dim, ids: jnp.take_along_axis(x, ids, dim),
    "aten.index.Tensor": _index,
}

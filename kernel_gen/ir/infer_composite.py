"""Typing of composites: the result type that their expansion also has."""

from __future__ import annotations

from collections.abc import Callable

from kernel_gen.ir.broadcast import broadcast_shapes
from kernel_gen.ir.call import Call, describe_shape
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.infer_convolution import infer_conv_transpose, infer_conv_weight_gradient
from kernel_gen.ir.infer_reduce import reduced_shape
from kernel_gen.ir.infer_resize import infer_resize
from kernel_gen.ir.infer_view import check_broadcastable
from kernel_gen.ir.types import Shape, TensorType


def _need_float(call: Call) -> None:
    if not call.x.dtype.is_float:
        call.fail("takes a float operand")


def _like_x(call: Call) -> TensorType:
    return TensorType(call.x.dtype, call.x.shape)


def _float_unary(call: Call) -> TensorType:
    _need_float(call)
    return _like_x(call)


def _scaled_unary(call: Call) -> TensorType:
    for key in call.attrs:
        call.number(key)
    return _float_unary(call)


def _gelu(call: Call) -> TensorType:
    if call.attrs["approximate"] not in ("none", "tanh"):
        call.fail("approximate must be none or tanh")
    return _float_unary(call)


def _square(call: Call) -> TensorType:
    if call.x.dtype is DType.BOOL:
        call.fail("takes an integer or float operand")
    return _like_x(call)


def _clamp(call: Call) -> TensorType:
    for key in ("low", "high"):
        bound = call.attrs[key]
        if bound is None:
            continue
        call.number(key)
        if not call.x.dtype.is_float and type(bound) is not int:
            call.fail(f"{key} must be an integer for {call.x.dtype}")
    if call.x.dtype is DType.BOOL:
        call.fail("takes an integer or float operand")
    return _like_x(call)


def _softmax(call: Call) -> TensorType:
    call.dim("dim")
    return _float_unary(call)


def _moment(call: Call) -> TensorType:
    """mean, var, std over `dims`."""
    _need_float(call)
    if "correction" in call.attrs:
        call.number("correction")
    return TensorType(
        call.x.dtype, reduced_shape(call.x.shape, call.dims(), keepdim=call.flag("keepdim"))
    )


def _pool(call: Call) -> TensorType:
    """max_pool and avg_pool over the last dimensions, as many as the kernel has."""
    _need_float(call)
    kernel, stride = call.integers("kernel", 1), call.integers("stride", 1)
    low, high = call.integers("low"), call.integers("high")
    dilation = call.integers("dilation", 1) if "dilation" in call.attrs else (1,) * len(kernel)
    settings = (kernel, stride, low, high, dilation)
    if not kernel or len(kernel) > call.x.rank or len({len(s) for s in settings}) > 1:
        call.fail("kernel, stride, low, high and dilation need one value per pooled dimension")
    found: list[int] = []
    pooled = call.x.shape[-len(kernel) :]
    for extent, k, s, before, after, d in zip(pooled, *settings, strict=True):
        if not isinstance(extent, int) or max(before, after) > d * (k - 1):
            call.fail("pooled extents are static, and no window lies outside the image")
        span = extent + before + after - d * (k - 1) - 1
        if span < 0:
            call.fail("the kernel is larger than the padded input")
        found.append(span // s + 1)
    made = DType.I64 if call.op == "argmax_pool" else call.x.dtype
    return TensorType(made, (*call.x.shape[: -len(kernel)], *found))


def _pool_gradient(call: Call) -> TensorType:
    """The gradient of an `image`, of the dimensions that are pooled, from that of its windows."""
    _need_float(call)
    image = call.integers("image", 1)
    if len(image) > call.x.rank:
        call.fail("image needs one extent per pooled dimension")
    found = TensorType(call.x.dtype, (*call.x.shape[: -len(image)], *image))
    settings = {key: value for key, value in call.attrs.items() if key != "image"}
    if not image or _pool(Call("max_pool", (found,), settings)).shape != call.x.shape:
        call.fail("the gradient must have the shape of the pooled image")
    if len(call.operands) == 2 and call.operands[1] != TensorType(DType.I64, call.x.shape):
        call.fail("positions are i64, one for each window")
    return found


def _topk(call: Call) -> TensorType:
    """topk and argtopk: `k` elements along `dim`."""
    if call.x.dtype is DType.BOOL:
        call.fail("takes an integer or float operand")
    dim, k = call.dim("dim"), call.integer("k", 1)
    extent = call.x.shape[dim]
    if not isinstance(extent, int) or k > extent:
        call.fail("k is at most the extent along dim, which is static")
    shape = (*call.x.shape[:dim], k, *call.x.shape[dim + 1 :])
    return TensorType(DType.I64 if call.op == "argtopk" else call.x.dtype, shape)


def _linear(call: Call) -> TensorType:
    if len(call.operands) not in (2, 3):
        call.fail("takes x, weight and an optional bias")
    x, weight = call.operands[:2]
    if len({type.dtype for type in call.operands}) != 1 or x.dtype is DType.BOOL:
        call.fail("operands must have one integer or float dtype")
    if x.rank < 1 or weight.rank != 2 or x.shape[-1] != weight.shape[1]:
        call.fail("x (…, K) needs a weight (N, K)")
    shape = (*x.shape[:-1], weight.shape[0])
    if len(call.operands) == 3 and call.operands[2].shape != (weight.shape[0],):
        call.fail(f"the bias must have shape {describe_shape((weight.shape[0],))}")
    return TensorType(x.dtype, shape)


def _check_optional(call: Call, first: int, shape: Shape) -> None:
    """Operands from `first` on: those that `weight` and `bias` announce, of `shape`."""
    present = [key for key in ("weight", "bias") if key in call.attrs and call.flag(key)]
    if len(call.operands) != first + len(present):
        call.fail(f"takes {first + len(present)} operands")
    for key, type in zip(present, call.operands[first:], strict=True):
        if type.shape != shape:
            call.fail(f"{key} must have shape {describe_shape(shape)}")
        _check_parameter_dtype(call, type)


def _check_parameter_dtype(call: Call, parameter: TensorType) -> None:
    """Parameters have the dtype of x, or f32 beside a narrower x."""
    if parameter.dtype not in (call.x.dtype, call.x.dtype.compute):
        call.fail(f"parameters must be {call.x.dtype} or {call.x.dtype.compute}")


def _layer_norm(call: Call) -> TensorType:
    """layer_norm and rms_norm over the last `axes` dimensions."""
    _need_float(call)
    call.number("eps")
    axes = call.integer("axes", 1)
    if axes > call.x.rank:
        call.fail(f"axes must be at most the rank {call.x.rank}")
    _check_optional(call, 1, call.x.shape[-axes:])
    return _like_x(call)


def _group_norm(call: Call) -> TensorType:
    _need_float(call)
    call.number("eps")
    groups = call.integer("groups", 1)
    channels = call.x.shape[1] if call.x.rank >= 2 else None
    if not isinstance(channels, int) or channels % groups:
        call.fail(f"x (N, C, …) must have channels that split into {groups} groups")
    _check_optional(call, 1, (channels,))
    return _like_x(call)


def _batch_norm(call: Call) -> TensorType:
    _need_float(call)
    call.number("eps")
    if call.x.rank < 2 or len(call.operands) < 3:
        call.fail("takes x (N, C, …), mean (C), var (C)")
    channels = (call.x.shape[1],)
    for type in call.operands[1:3]:
        if type.shape != channels:
            call.fail(f"mean and var must have shape {describe_shape(channels)}")
        _check_parameter_dtype(call, type)
    _check_optional(call, 3, channels)
    return _like_x(call)


def _attention(call: Call) -> TensorType:
    masked, causal = call.flag("mask"), call.flag("causal")
    if len(call.operands) != 3 + masked or (masked and causal):
        call.fail("takes q, k, v and a mask if `mask` is set, which excludes `causal`")
    if call.attrs["scale"] is not None:
        call.number("scale")
    q, k, v = call.operands[:3]
    _need_float(call)
    if len({type.dtype for type in (q, k, v)}) != 1 or min(q.rank, k.rank, v.rank) < 2:
        call.fail("q, k and v must have one float dtype and rank 2 or more")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        call.fail("q (…, S, D), k (…, T, D), v (…, T, E) do not fit")
    batch = broadcast_shapes([type.shape[:-2] for type in (q, k, v)])
    if batch is None:
        call.fail("batch dimensions do not broadcast")
    if masked:
        mask = call.operands[3]
        if mask.dtype not in (DType.BOOL, q.dtype):
            call.fail(f"the mask must be bool or {q.dtype}")
        scores = (*batch, q.shape[-2], k.shape[-2])
        check_broadcastable(call, mask.shape, scores, "the mask")
    return TensorType(q.dtype, (*batch, q.shape[-2], v.shape[-1]))


COMPOSITE_RULES: dict[str, Callable[[Call], TensorType]] = {
    "linear": _linear,
    "layer_norm": _layer_norm,
    "rms_norm": _layer_norm,
    "group_norm": _group_norm,
    "batch_norm": _batch_norm,
    "softmax": _softmax,
    "log_softmax": _softmax,
    "gelu": _gelu,
    **dict.fromkeys(
        ("silu", "hardswish", "hardsigmoid", "relu6", "mish", "softplus", "logsigmoid"),
        _float_unary,
    ),
    "square": _square,
    "leaky_relu": _scaled_unary,
    "elu": _scaled_unary,
    "clamp": _clamp,
    "mean": _moment,
    "var": _moment,
    "std": _moment,
    "conv_transpose": infer_conv_transpose,
    "conv_weight_gradient": infer_conv_weight_gradient,
    "max_pool": _pool,
    "avg_pool": _pool,
    "argmax_pool": _pool,
    "max_pool_gradient": _pool_gradient,
    "avg_pool_gradient": _pool_gradient,
    "resize": infer_resize,
    "topk": _topk,
    "argtopk": _topk,
    "attention": _attention,
}

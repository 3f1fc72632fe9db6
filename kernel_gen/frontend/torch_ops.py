"""Nodes as torch calls: the function that eager would have called for each op.

`call_for(node)` gives a function of the node's operand tensors; `call_with_numbers`
takes 0-d constants as Python numbers, as in the user's own program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from kernel_gen.errors import InvalidGraph
from kernel_gen.frontend import framework
from kernel_gen.frontend.dtypes import to_torch
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Attr, Node

Call = Callable[..., Any]
Tensor = torch.Tensor

_DIRECT: dict[str, Call] = {
    **{
        name: getattr(torch, name)
        for name in [
            "abs",
            "neg",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sqrt",
            "rsqrt",
            "reciprocal",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "erf",
            "erfc",
            "sigmoid",
            "relu",
            "sign",
            "floor",
            "ceil",
            "round",
            "trunc",
            "logical_not",
            "bitwise_not",
            "isnan",
            "isinf",
            "isfinite",
            "add",
            "sub",
            "mul",
            "div",
            "remainder",
            "fmod",
            "pow",
            "maximum",
            "minimum",
            "atan2",
            "copysign",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "logical_and",
            "logical_or",
            "logical_xor",
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "where",
            "matmul",
            "square",
        ]
    },
    **{
        name: getattr(F, name)
        for name in [
            "linear",
            "silu",
            "hardswish",
            "hardsigmoid",
            "relu6",
            "mish",
            "softplus",
            "logsigmoid",
        ]
    },
    "floor_div": torch.floor_divide,
    "shift_left": torch.bitwise_left_shift,
    "shift_right": torch.bitwise_right_shift,
}
_SWAPPED = {
    "add": "add",
    "mul": "mul",
    "eq": "eq",
    "ne": "ne",
    "lt": "gt",
    "le": "ge",
    "gt": "lt",
    "ge": "le",
}
_NUMBER_RIGHT = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "remainder",
        "fmod",
        "pow",
        "floor_div",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "shift_left",
        "shift_right",
    ]
)


def call_for(node: Node) -> Call:
    """The torch call of a node with static attributes; raises InvalidGraph for an unknown op."""
    direct = _DIRECT.get(node.op)
    if direct is not None:
        return direct
    make = _MAKERS.get(node.op)
    if make is None:
        raise InvalidGraph(f"torch has no call for op {node.op!r}")
    return make(_Attrs(node))


def call_with_numbers(node: Node, numbers: dict[int, float]) -> tuple[Call, tuple[int, ...]]:
    """The call with 0-d constants as Python numbers, and which operands remain tensors.

    `numbers` maps operand positions to the constants' values.
    """
    if len(numbers) == 1 and len(node.inputs) == 2:
        ((position, value),) = numbers.items()
        if position == 1 and node.op in _NUMBER_RIGHT:
            function = _DIRECT[node.op]
            return lambda x: function(x, value), (0,)
        if position == 0 and node.op == "sub":
            return lambda x: torch.rsub(x, value), (1,)
        if position == 0 and node.op in _SWAPPED:
            swapped = _DIRECT[_SWAPPED[node.op]]
            return lambda x: swapped(x, value), (1,)
    return call_for(node), tuple(range(len(node.inputs)))


class _Attrs:
    """Typed reading of a node's attributes."""

    def __init__(self, node: Node) -> None:
        self.op = node.op
        self._values = dict(node.attrs)
        self.operands = len(node.inputs)

    def raw(self, key: str) -> Attr:
        return self._values[key]

    def ints(self, key: str) -> tuple[int, ...]:
        value = self._values[key]
        if not isinstance(value, tuple):
            raise InvalidGraph(f"{self.op}: {key} is {value!r}, expected integers")
        found = tuple(item for item in value if isinstance(item, int))
        if len(found) != len(value):
            raise InvalidGraph(f"{self.op}: {key} is {value!r}, expected integers")
        return found

    def int(self, key: str) -> int:
        value = self._values[key]
        if not isinstance(value, int):
            raise InvalidGraph(f"{self.op}: {key} is {value!r}, expected an integer")
        return value

    def float(self, key: str) -> float:
        value = self._values[key]
        if not isinstance(value, int | float):
            raise InvalidGraph(f"{self.op}: {key} is {value!r}, expected a number")
        return value

    def text(self, key: str) -> str:
        return str(self._values[key])

    def flag(self, key: str) -> bool:
        return bool(self._values.get(key, False))

    def dtype(self) -> torch.dtype:
        return to_torch(DType(self.text("dtype")))


def _cast(a: _Attrs) -> Call:
    dtype = a.dtype()
    return lambda x: x.to(dtype)


def _reshape(a: _Attrs) -> Call:
    shape = a.ints("shape")
    return lambda x: x.reshape(shape)


def _permute(a: _Attrs) -> Call:
    dims = a.ints("dims")
    return lambda x: x.permute(dims)


def _expand(a: _Attrs) -> Call:
    shape = a.ints("shape")
    return lambda x: x.expand(shape)


def _slice(a: _Attrs) -> Call:
    dim, start, stop, step = (a.int(key) for key in ("dim", "start", "stop", "step"))
    if step == 1:
        return lambda x: x.narrow(dim, start, stop - start)
    window = (*[slice(None)] * dim, slice(start, stop, step))
    return lambda x: x[window]


def _flip(a: _Attrs) -> Call:
    dims = a.ints("dims")
    return lambda x: x.flip(dims)


def _pad(a: _Attrs) -> Call:
    pairs = zip(reversed(a.ints("low")), reversed(a.ints("high")), strict=True)
    amounts, value = [count for pair in pairs for count in pair], a.float("value")
    return lambda x: torch.constant_pad_nd(x, amounts, value)


def _concat(a: _Attrs) -> Call:
    dim = a.int("dim")
    return lambda *parts: torch.cat(parts, dim)


def _gather(a: _Attrs) -> Call:
    dim = a.int("dim")
    return lambda x, index: torch.gather(x, dim, index.long())


def _take(a: _Attrs) -> Call:
    dim = a.int("dim")

    def take(table: Tensor, index: Tensor) -> Tensor:
        if dim == 0 and table.dim() == 2:
            return F.embedding(index, table)
        if index.dim() == 1:
            return table.index_select(dim, index)
        shape = (*table.shape[:dim], *index.shape, *table.shape[dim + 1 :])
        return table.index_select(dim, index.reshape(-1)).reshape(shape)

    return take


def _full(a: _Attrs) -> Call:
    shape, value, dtype = a.ints("shape"), a.float("value"), a.dtype()
    return lambda: torch.full(shape, value, dtype=dtype)


def _iota(a: _Attrs) -> Call:
    shape, dim, dtype = a.ints("shape"), a.int("dim"), a.dtype()
    start, step = a.float("start"), a.float("step")
    wide = torch.float64 if dtype.is_floating_point else torch.int64
    view = tuple(extent if i == dim else 1 for i, extent in enumerate(shape))

    def iota() -> Tensor:
        line = torch.arange(shape[dim], dtype=wide)
        if (start, step) != (0, 1):
            line = line * step + start
        line = line.to(dtype)
        return line if len(shape) == 1 else line.view(view).expand(shape)

    return iota


def _over_all(
    function: Callable[[Tensor, tuple[int, ...], bool], Tensor],
) -> Callable[[_Attrs], Call]:
    """A reduction that torch offers over several dims; no dims means one element each."""

    def make(a: _Attrs) -> Call:
        dims, keepdim = a.ints("dims"), a.flag("keepdim")
        if dims:
            return lambda x: function(x, dims, keepdim)
        return lambda x: function(x.unsqueeze(0), (0,), False)

    return make


def _sum(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    return torch.sum(x, dims, keepdim=keepdim, dtype=x.dtype)


def _prod(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    if len(dims) == x.dim() and not keepdim:
        return torch.prod(x, dtype=x.dtype)
    for dim in reversed(dims):
        x = torch.prod(x, dim, keepdim=keepdim, dtype=x.dtype)
    return x


def _truth(function: Call) -> Callable[[Tensor, tuple[int, ...], bool], Tensor]:
    return lambda x, dims, keepdim: function(x, dims, keepdim)


def _position(function: Call) -> Callable[[Tensor, tuple[int, ...], bool], Tensor]:
    def position(x: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
        if len(dims) == 1:
            along: Tensor = function(x, dims[0], keepdim)
            return along
        found: Tensor = function(x)
        return found.reshape((1,) * x.dim()) if keepdim else found

    return position


def _spread(function: Call) -> Callable[[_Attrs], Call]:
    def make(a: _Attrs) -> Call:
        correction = a.float("correction")
        over = _over_all(
            lambda x, dims, keepdim: function(x, dims, correction=correction, keepdim=keepdim)
        )
        return over(a)

    return make


def _softmax(function: Call) -> Callable[[_Attrs], Call]:
    def make(a: _Attrs) -> Call:
        dim = a.int("dim")
        return lambda x: function(x, dim)

    return make


def _optional(a: _Attrs, tensors: tuple[Tensor, ...]) -> list[Tensor | None]:
    """Weight and bias from the operands that are there."""
    rest = iter(tensors)
    return [next(rest) if a.flag(key) else None for key in ("weight", "bias")]


def _layer_norm(a: _Attrs) -> Call:
    axes, eps = a.int("axes"), a.float("eps")

    def call(x: Tensor, *rest: Tensor) -> Tensor:
        weight, bias = _optional(a, rest)
        return F.layer_norm(x, x.shape[-axes:], weight, bias, eps)

    return call


def _rms_norm(a: _Attrs) -> Call:
    axes, eps = a.int("axes"), a.float("eps")
    return lambda x, weight=None: F.rms_norm(x, x.shape[-axes:], weight, eps)


def _group_norm(a: _Attrs) -> Call:
    groups, eps = a.int("groups"), a.float("eps")

    def call(x: Tensor, *rest: Tensor) -> Tensor:
        weight, bias = _optional(a, rest)
        return F.group_norm(x, groups, weight, bias, eps)

    return call


def _batch_norm(a: _Attrs) -> Call:
    eps = a.float("eps")

    def call(x: Tensor, mean: Tensor, var: Tensor, *rest: Tensor) -> Tensor:
        weight, bias = _optional(a, rest)
        return F.batch_norm(x, mean, var, weight, bias, False, 0.0, eps)

    return call


def _gelu(a: _Attrs) -> Call:
    approximate = a.text("approximate")
    return lambda x: F.gelu(x, approximate=approximate)


def _leaky_relu(a: _Attrs) -> Call:
    slope = a.float("slope")
    return lambda x: F.leaky_relu(x, slope)


def _elu(a: _Attrs) -> Call:
    alpha, scale = a.float("alpha"), a.float("scale")
    return lambda x: torch.ops.aten.elu(x, alpha, scale)


def _clamp(a: _Attrs) -> Call:
    low, high = a.raw("low"), a.raw("high")
    if low is None and high is None:
        return lambda x: x
    return lambda x: torch.clamp(x, low, high)  # type: ignore[arg-type]


def _convolution(a: _Attrs) -> Call:
    stride, padding, dilation = (a.ints(key) for key in ("stride", "padding", "dilation"))
    groups = a.int("groups")
    functions: dict[int, Call] = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}
    function = functions.get(len(stride))
    if function is None:
        raise InvalidGraph(f"convolution over {len(stride)} dimensions: torch has 1 to 3")
    return lambda x, w, b=None: function(x, w, b, stride, padding, dilation, groups)


def _max_pool(a: _Attrs) -> Call:
    kernel, stride, dilation = a.ints("kernel"), a.ints("stride"), a.ints("dilation")
    low, high = a.ints("low"), a.ints("high")
    functions: dict[int, Call] = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
    function = _per_rank(a, functions, len(kernel))
    if low == high and all(2 * p <= k for p, k in zip(low, kernel, strict=True)):
        return lambda x: function(x, kernel, stride, low, dilation)
    amounts = [n for pair in zip(low[::-1], high[::-1], strict=True) for n in pair]
    return lambda x: function(F.pad(x, amounts, value=float("-inf")), kernel, stride, 0, dilation)


def _avg_pool(a: _Attrs) -> Call:
    kernel, stride, low, high = (a.ints(key) for key in ("kernel", "stride", "low", "high"))
    functions: dict[int, Call] = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
    function = _per_rank(a, functions, len(kernel))
    if low == high and all(2 * p <= k for p, k in zip(low, kernel, strict=True)):
        return lambda x: function(x, kernel, stride, low)
    amounts = [n for pair in zip(low[::-1], high[::-1], strict=True) for n in pair]
    return lambda x: function(F.pad(x, amounts), kernel, stride)


def _per_rank(a: _Attrs, functions: dict[int, Call], rank: int) -> Call:
    found = functions.get(rank)
    if found is None:
        raise InvalidGraph(f"{a.op} over {rank} dimensions: torch has 1 to 3")
    return found


def _topk(result: int) -> Callable[[_Attrs], Call]:
    """`result`: 0 gives values, 1 positions."""

    def make(a: _Attrs) -> Call:
        dim, k = a.int("dim"), a.int("k")
        return lambda x: torch.topk(x, k, dim)[result]

    return make


def _attention(a: _Attrs) -> Call:
    scale, causal = a.raw("scale"), a.flag("causal")
    return lambda q, k, v, mask=None: F.scaled_dot_product_attention(
        q,
        k,
        v,
        attn_mask=mask,
        is_causal=causal,
        scale=scale,  # type: ignore[arg-type]
    )


def _framework(a: _Attrs) -> Call:
    function, encoded = framework.resolve(a.text("target")), a.raw("args")

    def call(*tensors: Tensor) -> Any:
        positional, named = framework.decode(encoded, tensors)
        return function(*positional, **named)

    return call


_MAKERS: dict[str, Callable[[_Attrs], Call]] = {
    "cast": _cast,
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "slice": _slice,
    "flip": _flip,
    "pad": _pad,
    "concat": _concat,
    "gather": _gather,
    "take": _take,
    "full": _full,
    "iota": _iota,
    "sum": _over_all(_sum),
    "prod": _over_all(_prod),
    "amax": _over_all(_truth(torch.amax)),
    "amin": _over_all(_truth(torch.amin)),
    "any": _over_all(_truth(torch.any)),
    "all": _over_all(_truth(torch.all)),
    "argmax": _over_all(_position(torch.argmax)),
    "argmin": _over_all(_position(torch.argmin)),
    "mean": _over_all(_truth(torch.mean)),
    "var": _spread(torch.var),
    "std": _spread(torch.std),
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
    "convolution": _convolution,
    "max_pool": _max_pool,
    "avg_pool": _avg_pool,
    "topk": _topk(0),
    "argtopk": _topk(1),
    "attention": _attention,
    "framework": _framework,
}


def torch_ops() -> frozenset[str]:
    """All ops that `call_for` knows."""
    return frozenset(_DIRECT) | frozenset(_MAKERS)

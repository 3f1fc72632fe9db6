"""Steps of random graphs: each adds one op (and what it needs) to the draft, or nothing."""

from __future__ import annotations

import math
from collections.abc import Callable

from kernel_gen.ir.dtype import DType
from tests.strategy_draft import Draft

# Smooth unary ops: bound of the result from the bound of the operand.
_SMOOTH: dict[str, Callable[[float], float]] = {
    "neg": lambda b: b,
    "abs": lambda b: b,
    "relu": lambda b: b,
    "sin": lambda b: 1.0,
    "cos": lambda b: 1.0,
    "atan": lambda b: 1.6,
    "tanh": lambda b: 1.0,
    "erf": lambda b: 1.0,
    "erfc": lambda b: 2.0,
    "sigmoid": lambda b: 1.0,
}
_ON_UNIT = {"exp": 2.8, "exp2": 2.0, "expm1": 1.8, "tan": 1.6, "sinh": 1.2, "cosh": 1.6}
_ON_POSITIVE = {
    "log": 4.0,
    "log2": 6.0,
    "log10": 2.0,
    "log1p": 4.0,
    "sqrt": 6.0,
    "rsqrt": 1.5,
    "reciprocal": 2.0,
}
_JUMPS = ("floor", "ceil", "round", "trunc", "sign")
_BOOL_BINARY = (
    *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
    *("maximum", "minimum"),
)
_EXACT_UNARY = frozenset(("neg", "abs", "relu"))


def _is_float(draft: Draft) -> Callable[[int], bool]:
    return lambda value: draft.type(value).dtype.is_float


def _exact(draft: Draft) -> Callable[[int], bool]:
    return lambda value: draft.info(value).exact


def smooth(draft: Draft) -> None:
    x = draft.pick(_is_float(draft))
    if x is None:
        return
    op = draft.one_of([*_SMOOTH, *_ON_UNIT, *_ON_POSITIVE, "asin", "acos"])
    if op in _SMOOTH:
        bound = _SMOOTH[op](draft.info(x).bound)
        draft.op(op, x, bound=bound, exact=op in _EXACT_UNARY)
    elif op in _ON_UNIT:
        draft.op(op, draft.squashed(x), bound=_ON_UNIT[op])
    elif op in _ON_POSITIVE:
        draft.op(op, draft.positive(x, 0.5), bound=_ON_POSITIVE[op])
    else:
        half = draft.with_scalar("mul", draft.squashed(x), 0.5, 0.5)
        draft.op(op, half, bound=2.2)


def jump(draft: Draft) -> None:
    """Ops that are not continuous, on values without rounding error."""
    x = draft.pick(_exact(draft), wild=True)
    if x is None:
        return
    dtype = draft.type(x).dtype
    if dtype.is_float:
        op = draft.one_of((*_JUMPS, "isnan", "isinf", "isfinite"))
        draft.op(op, x, bound=draft.info(x).bound + 1, exact=True)
    elif dtype is DType.BOOL:
        draft.op(draft.one_of(("logical_not", "bitwise_not")), x)
    else:
        draft.op(draft.one_of(("abs", "neg", "relu", "bitwise_not", "sign")), x)


def cast(draft: Draft) -> None:
    x = draft.pick()
    if x is None:
        return
    source, target = draft.type(x).dtype, draft.one_of(draft.dtypes)
    bound = draft.info(x).bound
    if source.is_float and not target.is_float:
        if not draft.info(x).exact or (draft.specials and target is not DType.BOOL):
            return
        x = draft.op("abs", x, bound=bound, exact=True) if target is DType.U8 else x
    if source.is_integer and target.is_float:
        x = draft.op("bitwise_and", x, draft.scalar(15, source))
        bound = 15.0
    exact = not source.is_float or source.compute is target or source is target
    draft.op("cast", x, dtype=target, bound=max(bound, 1.0), exact=exact)


def partner(draft: Draft, x: int, *, exact: bool = False) -> int:
    """A value that broadcasts with x: an earlier one, a new input or a scalar."""
    dtype, shape = draft.type(x).dtype, draft.shape(x)
    way = draft.integer(0, 3)
    if way == 0:
        found = draft.pick(
            lambda v: (
                draft.type(v).dtype is dtype
                and _broadcasts(draft, draft.shape(v), shape)
                and (draft.info(v).exact or not exact)
            )
        )
        if found is not None:
            return found
    if way == 1:
        if dtype is DType.BOOL:
            return draft.op("full", shape=(), dtype=dtype, value=draft.chance(2))
        return draft.scalar(draft.one_of((0.5, 2.0) if dtype.is_float else (1, 3)), dtype)
    kept = tuple(1 if draft.chance(3) else extent for extent in shape)
    return draft.fresh_input(dtype, kept[draft.integer(0, len(kept)) :])


def _broadcasts(draft: Draft, a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    longest = max(len(a), len(b))
    padded = [(1,) * (longest - len(s)) + s for s in (a, b)]
    result = [max(m, n) if 0 not in (m, n) else 0 for m, n in zip(*padded, strict=True)]
    fits = all(m == n or 1 in (m, n) for m, n in zip(*padded, strict=True))
    return fits and math.prod(result) <= draft.max_elems


def binary(draft: Draft) -> None:
    x = draft.pick()
    if x is None:
        return
    y = partner(draft, x)
    if draft.chance(2):
        x, y = y, x
    dtype = draft.type(x).dtype
    if dtype is DType.BOOL:
        ops = (
            "logical_and",
            "logical_or",
            "logical_xor",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
        )
        draft.op(draft.one_of((*ops, "maximum", "minimum")), x, y)
    elif dtype.is_float:
        _float_binary(draft, x, y)
    else:
        _integer_binary(draft, x, y)


def _float_binary(draft: Draft, x: int, y: int) -> None:
    a, b = draft.info(x).bound, draft.info(y).bound
    op = draft.one_of(
        ("add", "sub", "mul", "maximum", "minimum", "div", "atan2", "copysign", "pow", "fmod",
         "remainder")
    )  # fmt: skip
    if op == "div":
        draft.op(op, x, draft.positive(y, 0.5), bound=2 * a)
    elif op == "atan2":
        draft.op(op, x, draft.positive(y, 0.5), bound=3.2)
    elif op == "pow":
        draft.op(op, draft.positive(draft.squashed(x), 0.5), draft.squashed(y), bound=2.0)
    elif op in ("copysign", "fmod", "remainder"):
        if not (draft.info(x).exact and draft.info(y).exact):
            return
        divisor = y if op == "copysign" else draft.op("sign", y, bound=1.0, exact=True)
        draft.op(op, x, divisor, bound=max(a, 1.0), exact=op != "remainder")
    elif op == "mul":
        draft.op(op, x, y, bound=a * b)
    else:
        smooth_max = op in ("maximum", "minimum")
        draft.op(op, x, y, bound=max(a, b) if smooth_max else a + b, exact=smooth_max)


def _integer_binary(draft: Draft, x: int, y: int) -> None:
    dtype = draft.type(x).dtype
    op = draft.one_of(
        ("add", "sub", "mul", "maximum", "minimum", "floor_div", "remainder", "fmod",
         "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right")
    )  # fmt: skip
    if op in ("floor_div", "remainder", "fmod"):  # divisors 1, 3, 5, 7
        y = draft.op("bitwise_and", y, draft.scalar(7, dtype))
        y = draft.op("bitwise_or", y, draft.scalar(1, dtype))
    elif op in ("shift_left", "shift_right"):
        y = draft.op("bitwise_and", y, draft.scalar(16 * dtype.bytes - 1, dtype))  # half too far
    draft.op(op, x, y)


def compare(draft: Draft) -> None:
    x = draft.pick(_exact(draft), wild=True)
    if x is not None:
        y = partner(draft, x, exact=True)
        draft.op(draft.one_of(("eq", "ne", "lt", "le", "gt", "ge")), x, y)


def where(draft: Draft) -> None:
    x = draft.pick(wild=True)
    if x is None:
        return
    y = partner(draft, x)
    shape = max(draft.shape(x), draft.shape(y), key=len)
    condition = draft.pick(
        lambda v: draft.type(v).dtype is DType.BOOL and _broadcasts(draft, draft.shape(v), shape)
    )
    if condition is None or draft.chance(3):
        condition = draft.fresh_input(DType.BOOL, draft.shape(x))
    merged = [draft.shape(v) for v in (condition, x, y)]
    if all(_broadcasts(draft, a, b) for a in merged for b in merged):
        bound = max(draft.info(x).bound, draft.info(y).bound)
        draft.op("where", condition, x, y, bound=bound, exact=True)


def _view(draft: Draft, op: str, x: int, **attrs: object) -> int:
    return draft.op(op, x, bound=draft.info(x).bound, exact=True, **attrs)


def reshape(draft: Draft) -> None:
    """Merges neighbouring dimensions, splits one, or adds and drops extents of 1."""
    x = draft.pick(wild=True)
    if x is None:
        return
    shape = list(draft.shape(x))
    if len(shape) >= 2 and draft.chance(2):
        at = draft.integer(0, len(shape) - 2)
        shape[at : at + 2] = [shape[at] * shape[at + 1]]
    splits = [
        (at, divisor)
        for at, extent in enumerate(shape)
        for divisor in range(2, extent)
        if extent % divisor == 0
    ]
    if splits and len(shape) < 6:
        at, divisor = draft.one_of(splits)
        shape[at : at + 1] = [divisor, shape[at] // divisor]
    if len(shape) < 6 and draft.chance(3):
        shape.insert(draft.integer(0, len(shape)), 1)
    _view(draft, "reshape", x, shape=shape)


def permute(draft: Draft) -> None:
    x = draft.pick(lambda v: len(draft.shape(v)) >= 2, wild=True)
    if x is None:
        return
    left = list(range(len(draft.shape(x))))
    dims = [left.pop(draft.integer(0, len(left) - 1)) for _ in range(len(left))]
    _view(draft, "permute", x, dims=dims)


def expand(draft: Draft) -> None:
    x = draft.pick(lambda v: math.prod(draft.shape(v)) <= draft.max_elems // 16, wild=True)
    if x is None:
        return
    shape = [draft.integer(1, 3) if extent == 1 else extent for extent in draft.shape(x)]
    lead = [draft.integer(0, 3)] if len(shape) < 5 and draft.chance(2) else []
    if math.prod(lead + shape) <= draft.max_elems:
        _view(draft, "expand", x, shape=lead + shape)


def slices(draft: Draft) -> None:
    x = draft.pick(lambda v: len(draft.shape(v)) >= 1, wild=True)
    if x is None:
        return
    dim = draft.integer(0, len(draft.shape(x)) - 1)
    extent = draft.shape(x)[dim]
    start = draft.integer(0, extent)
    stop = draft.integer(start, extent)
    _view(draft, "slice", x, dim=dim, start=start, stop=stop, step=draft.integer(1, 3))


def flip(draft: Draft) -> None:
    x = draft.pick(wild=True)
    if x is not None:
        _view(draft, "flip", x, dims=_some_dims(draft, x))


def pad(draft: Draft) -> None:
    x = draft.pick(lambda v: math.prod(draft.shape(v)) <= draft.max_elems // 16, wild=True)
    if x is None:
        return
    dtype, rank = draft.type(x).dtype, len(draft.shape(x))
    low, high = ([draft.integer(0, 2) for _ in range(rank)] for _ in range(2))
    value: object = draft.one_of((0.0, 1.0) if dtype.is_float else (0, 3))
    if dtype is DType.BOOL:
        value = draft.chance(2)
    if (
        math.prod(a + n + b for a, n, b in zip(low, draft.shape(x), high, strict=True))
        <= draft.max_elems
    ):
        bound = max(draft.info(x).bound, 1.0)
        draft.op("pad", x, low=low, high=high, value=value, bound=bound, exact=True)


def concat(draft: Draft) -> None:
    x = draft.pick(lambda v: len(draft.shape(v)) >= 1, wild=True)
    if x is None:
        return
    shape, dtype = draft.shape(x), draft.type(x).dtype
    dim = draft.integer(0, len(shape) - 1)
    parts = [x]
    for _ in range(draft.integer(1, 2)):
        other = (*shape[:dim], draft.integer(0, 5), *shape[dim + 1 :])
        same = draft.pick(lambda v: draft.type(v).dtype is dtype and draft.shape(v) == shape)
        fresh = draft.chance(2) or same is None
        parts.append(draft.fresh_input(dtype, other) if fresh or same is None else same)
    if sum(math.prod(draft.shape(part)) for part in parts) <= draft.max_elems:
        bound = max(draft.info(part).bound for part in parts)
        draft.op("concat", *parts, dim=dim, bound=bound, exact=True)


def indexed(draft: Draft) -> None:
    x = draft.pick(lambda v: len(draft.shape(v)) >= 1 and 0 not in draft.shape(v), wild=True)
    if x is None:
        return
    shape, bound = draft.shape(x), draft.info(x).bound
    dim = draft.integer(0, len(shape) - 1)
    if draft.chance(2):
        chosen = [
            draft.integer(1, 9) if i == dim else draft.integer(1, n) for i, n in enumerate(shape)
        ]
        index = draft.index_input(tuple(chosen), shape[dim])
        draft.op("gather", x, index, dim=dim, bound=bound, exact=True)
        return
    chosen = list(draft.new_shape(draft.integer(0, 2), max_elems=16))
    if len(chosen) + len(shape) <= 6 and math.prod(chosen) * math.prod(shape) <= draft.max_elems:
        index = draft.index_input(tuple(chosen), shape[dim])
        draft.op("take", x, index, dim=dim, bound=bound, exact=True)


def iota(draft: Draft) -> None:
    dtype = draft.one_of(draft.dtypes)
    shape = draft.new_shape(draft.integer(1, 3))
    if dtype is DType.BOOL:
        return
    step = draft.integer(0, 3) if dtype is DType.U8 else draft.integer(-2, 3)
    dim = draft.integer(0, len(shape) - 1)
    bound = 1.0 + abs(step) * shape[dim]
    if bound <= 100 and not (dtype.is_float and bound > 30):
        draft.op(
            "iota", shape=shape, dtype=dtype, dim=dim, start=1, step=step, bound=bound, exact=True
        )


def _some_dims(draft: Draft, x: int, at_least: int = 0) -> list[int]:
    rank = len(draft.shape(x))
    chosen = [dim for dim in range(rank) if draft.chance(2)]
    return chosen if len(chosen) >= at_least else [draft.integer(0, rank - 1)]


def reduction(draft: Draft) -> None:
    x = draft.pick()
    if x is None:
        return
    dims, keepdim = _some_dims(draft, x), draft.chance(2)
    count = math.prod(draft.shape(x)[dim] for dim in dims)
    dtype, bound = draft.type(x).dtype, draft.info(x).bound
    if dtype is DType.BOOL:
        draft.op(draft.one_of(("any", "all", "amax", "amin")), x, dims=dims, keepdim=keepdim)
        return
    op = draft.one_of(("sum", "sum", "prod", "amax", "amin"))
    if op in ("amax", "amin") and (count == 0 and dtype.is_float):
        return  # gives infinities, which no bound describes
    if op == "prod" and dtype.is_float:
        x, bound = draft.squashed(x), 1.0
    bound = bound * max(count, 1) if op == "sum" else max(bound, 1.0)
    draft.op(op, x, dims=dims, keepdim=keepdim, bound=bound, exact=op in ("amax", "amin"))


def _ranked(draft: Draft) -> int | None:
    """A value whose elements have an order that rounding does not change."""
    return draft.pick(
        lambda v: (
            draft.info(v).exact
            and draft.type(v).dtype is not DType.BOOL
            and 0 not in draft.shape(v)
        ),
        wild=True,
    )


def largest(draft: Draft) -> None:
    """The largest few, or where they stand."""
    x = _ranked(draft)
    if x is None or not draft.shape(x):
        return
    dim = draft.integer(0, len(draft.shape(x)) - 1)
    k = draft.integer(1, min(draft.shape(x)[dim], 3))
    op = draft.one_of(("topk", "argtopk"))
    draft.op(op, x, dim=dim, k=k, bound=draft.info(x).bound, exact=op == "topk")


def position(draft: Draft) -> None:
    """argmax and argmin, on exact values."""
    x = _ranked(draft)
    if x is None:
        return
    rank = len(draft.shape(x))
    dims = list(range(rank)) if draft.chance(2) or not rank else [draft.integer(0, rank - 1)]
    draft.op(draft.one_of(("argmax", "argmin")), x, dims=dims, keepdim=draft.chance(2))


_WIDE = (1, 8, 17, 33, 64, 100)  # columns of a product, several tiles and a part of one


def matmul(draft: Draft) -> None:
    x = draft.pick(lambda v: len(draft.shape(v)) >= 2 and draft.type(v).dtype is not DType.BOOL)
    if x is None:
        return
    dtype, shape = draft.type(x).dtype, draft.shape(x)
    wide = draft.one_of(_WIDE) if draft.large else draft.integer(1, 9)
    if math.prod(shape[:-1]) * wide > draft.max_elems:
        return
    batch = shape[:-2] if draft.chance(2) else ()
    y = draft.fresh_input(dtype, (*batch, shape[-1], wide))
    bound = max(shape[-1], 1) * draft.info(x).bound * draft.info(y).bound
    if draft.chance(3):
        y = _view(draft, "permute", y, dims=[*range(len(batch)), len(batch) + 1, len(batch)])
        bias = [draft.fresh_input(dtype, (wide,))] if draft.chance(2) and not batch else []
        if not batch:
            draft.op("linear", x, y, *bias, bound=bound + 4)
            return
        y = _view(draft, "permute", y, dims=[*range(len(batch)), len(batch) + 1, len(batch)])
    draft.op("matmul", x, y, bound=bound)


def convolution(draft: Draft) -> None:
    spatial, groups = draft.integer(1, 2), draft.integer(1, 2)
    dtypes = [dtype for dtype in draft.dtypes if dtype.is_float]
    if not dtypes:
        return
    dtype = draft.one_of(dtypes)
    channels, kernel = groups * draft.integer(1, 2), draft.integer(1, 3)
    channels *= draft.one_of((1, 4, 9)) if draft.large else 1
    extents = tuple(draft.integer(5, 13 if draft.large else 7) for _ in range(spatial))
    # Finite: fast algorithms (Winograd, FFT) spread NaN and infinities, which is allowed.
    x = draft.fresh_input(dtype, (draft.integer(1, 2), channels, *extents), finite=True)
    made = draft.one_of((2, 8, 19)) if draft.large else 2
    taps = (groups * made, channels // groups, *(kernel,) * spatial)
    weight = draft.fresh_input(dtype, taps, finite=True)
    draft.op(
        "convolution", x, weight,
        stride=[draft.integer(1, 2)] * spatial, padding=[draft.integer(0, 1)] * spatial,
        dilation=[draft.integer(1, 2)] * spatial, groups=groups,
        bound=16.0 * channels * kernel**spatial,
    )  # fmt: skip


def activation(draft: Draft) -> None:
    x = draft.pick(_is_float(draft))
    if x is None:
        return
    bound = draft.info(x).bound + 1
    plain = ("silu", "hardswish", "hardsigmoid", "relu6", "mish", "softplus", "logsigmoid")
    op = draft.one_of((*plain, "gelu", "leaky_relu", "elu", "clamp", "square"))
    if op == "gelu":
        draft.op(op, x, approximate=draft.one_of(("none", "tanh")), bound=bound)
    elif op == "leaky_relu":
        draft.op(op, x, slope=0.125, bound=bound)
    elif op == "elu":
        draft.op(op, x, alpha=1.5, scale=1.0, bound=bound + 1)
    elif op == "clamp":
        draft.op(op, x, low=draft.one_of((None, -1.0)), high=draft.one_of((None, 2.0)), bound=bound)
    else:
        draft.op(op, x, bound=bound**2 if op == "square" else max(bound, 6.0))


def softmax(draft: Draft) -> None:
    x = draft.pick(lambda v: _is_float(draft)(v) and len(draft.shape(v)) >= 1)
    if x is None:
        return
    dim = draft.integer(0, len(draft.shape(x)) - 1)
    op = draft.one_of(("softmax", "softmax", "log_softmax"))
    draft.op(op, x, dim=dim, bound=1.0 if op == "softmax" else 2 * draft.info(x).bound + 8)


def moment(draft: Draft) -> None:
    x = draft.pick(_is_float(draft))
    if x is None:
        return
    dims, bound = _some_dims(draft, x), draft.info(x).bound
    count = math.prod(draft.shape(x)[dim] for dim in dims)
    op = draft.one_of(("mean", "var", "std"))
    if op == "mean":
        draft.op(op, x, dims=dims, keepdim=draft.chance(2), bound=bound)
    elif count >= 2:
        x = draft.squashed(x)
        draft.op(
            op, x, dims=dims, keepdim=draft.chance(2), correction=draft.one_of((0, 1)), bound=2.0
        )


def norm(draft: Draft) -> None:
    x = draft.pick(lambda v: _is_float(draft)(v) and len(draft.shape(v)) >= 1)
    if x is None:
        return
    dtype, shape = draft.type(x).dtype, draft.shape(x)
    op = draft.one_of(("layer_norm", "rms_norm", "group_norm", "batch_norm"))
    weight, bias = draft.chance(2), draft.chance(2)
    if op in ("layer_norm", "rms_norm"):
        axes = draft.integer(1, len(shape))
        count = weight + (bias and op == "layer_norm")
        parameters = [draft.fresh_input(dtype, shape[-axes:]) for _ in range(count)]
        extra = {"bias": bias} if op == "layer_norm" else {}
        draft.op(op, x, *parameters, axes=axes, eps=0.125, weight=weight, **extra, bound=32.0)
    elif len(shape) >= 2 and shape[1]:
        _channel_norm(draft, op, x, weight=weight, bias=bias)


def _channel_norm(draft: Draft, op: str, x: int, *, weight: bool, bias: bool) -> None:
    dtype, channels = draft.type(x).dtype, draft.shape(x)[1]
    parameters = [draft.fresh_input(dtype, (channels,)) for _ in range(weight + bias)]
    if op == "group_norm":
        # Of a group's single element torch leaves rounding errors where the reference has zero.
        groups = draft.one_of([n for n in range(1, channels + 1) if channels % n == 0])
        if channels // groups * math.prod(draft.shape(x)[2:]) == 1:
            return
        draft.op(op, x, *parameters, groups=groups, eps=0.125, weight=weight, bias=bias, bound=32.0)
        return
    mean = draft.fresh_input(dtype, (channels,))
    variance = draft.op("abs", draft.fresh_input(dtype, (channels,)), bound=4.0, exact=True)
    bound = (draft.info(x).bound + 4) * 12 + 4
    draft.op(op, x, mean, variance, *parameters, eps=0.125, weight=weight, bias=bias, bound=bound)


def attention(draft: Draft) -> None:
    dtypes = [dtype for dtype in draft.dtypes if dtype.is_float]
    if not dtypes:
        return
    dtype, batch = draft.one_of(dtypes), draft.new_shape(draft.integer(0, 2), max_elems=8)
    s, t, d = draft.integer(1, 5), draft.integer(1, 5), draft.integer(1, 9)
    if draft.large:
        s, t, d = draft.one_of((1, 9, 33, 70)), draft.one_of(_WIDE), draft.one_of((8, 20, 64))
    q, k, v = (draft.fresh_input(dtype, (*batch, n, d)) for n in (s, t, t))
    mask: list[int] = []
    if draft.chance(2):
        mask = [draft.fresh_input(draft.one_of((DType.BOOL, dtype)), (s, t))]
    causal = not mask and draft.chance(2)
    draft.op(
        "attention", q, k, v, *mask, scale=draft.one_of((None, 0.25)), causal=causal,
        mask=bool(mask), bound=4.0,
    )  # fmt: skip


STEPS: dict[str, Callable[[Draft], None]] = {
    "smooth": smooth,
    "jump": jump,
    "cast": cast,
    "binary": binary,
    "compare": compare,
    "where": where,
    "reshape": reshape,
    "permute": permute,
    "expand": expand,
    "slice": slices,
    "flip": flip,
    "pad": pad,
    "concat": concat,
    "indexed": indexed,
    "iota": iota,
    "reduction": reduction,
    "position": position,
    "largest": largest,
    "matmul": matmul,
    "convolution": convolution,
    "activation": activation,
    "softmax": softmax,
    "moment": moment,
    "norm": norm,
    "attention": attention,
}

"""Further steps of random graphs: ops on floats of any size, and integers that no mask keeps small.

A wild value (denormal, huge, infinite, NaN) is as exact as its input; one op that rounds may
follow, whose relative error is that op's own, and then ops that only move or choose.
"""

from __future__ import annotations

from collections.abc import Callable

from kernel_gen.ir.dtype import DType
from tests.strategy_draft import LIMIT, Draft

_UNARY = (
    *("abs", "neg", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt"),
    *("reciprocal", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "erf"),
    *("erfc", "sigmoid", "relu", "sign", "floor", "ceil", "round", "trunc"),
    *("silu", "hardswish", "hardsigmoid", "relu6", "mish", "softplus", "logsigmoid", "square"),
    *("softmax", "log_softmax", "gelu", "leaky_relu", "elu", "clamp", "amax", "amin"),
)
_BINARY = (
    *("add", "sub", "mul", "div", "fmod", "remainder", "floor_div", "pow", "maximum", "minimum"),
    *("atan2", "copysign"),
)
_EXACT = frozenset(
    ("abs", "neg", "relu", "sign", "floor", "ceil", "round", "trunc", "maximum", "minimum",
     "copysign", "amax", "amin", "fmod")
)  # fmt: skip
_INTEGER_DIVISIONS = ("floor_div", "remainder", "fmod")


def _leaf(draft: Draft) -> int | None:
    """An exact wild value, often a new input."""
    found = draft.pick(lambda v: draft.info(v).wild and draft.info(v).exact, wild=True)
    if found is not None and not draft.chance(3):
        return found
    dtypes = [dtype for dtype in draft.dtypes if dtype.is_float]
    return draft.wild_input(draft.one_of(dtypes), draft.new_shape()) if dtypes else None


def wild_unary(draft: Draft) -> None:
    x = _leaf(draft)
    if x is None:
        return
    op, rank = draft.one_of(_UNARY), len(draft.shape(x))
    attrs: dict[str, object] = {}
    if op in ("softmax", "log_softmax"):
        if not rank:
            return
        attrs = {"dim": draft.integer(0, rank - 1)}
    elif op in ("amax", "amin"):
        dims = [dim for dim in range(rank) if draft.chance(2)]
        if any(draft.shape(x)[dim] == 0 for dim in dims):
            return
        attrs = {"dims": dims, "keepdim": draft.chance(2)}
    elif op == "gelu":
        attrs = {"approximate": draft.one_of(("none", "tanh"))}
    elif op == "leaky_relu":
        attrs = {"slope": 0.125}
    elif op == "elu":
        attrs = {"alpha": 1.5, "scale": 1.0}
    elif op == "clamp":
        attrs = {"low": draft.one_of((None, -1.0)), "high": draft.one_of((None, 2.0))}
    draft.op(op, x, bound=LIMIT, exact=op in _EXACT, **attrs)


def wild_binary(draft: Draft) -> None:
    x = _leaf(draft)
    if x is None:
        return
    shape = tuple(1 if draft.chance(4) else extent for extent in draft.shape(x))
    y = draft.wild_input(draft.type(x).dtype, shape[draft.integer(0, len(shape)) :])
    op = draft.one_of(_BINARY)
    draft.op(op, *((x, y) if draft.chance(2) else (y, x)), bound=LIMIT, exact=op in _EXACT)


def wild_cast(draft: Draft) -> None:
    """To another float type or bool; from integers of any size."""
    x = _leaf(draft) if draft.chance(2) else draft.pick(lambda v: draft.type(v).dtype.is_integer)
    targets = [t for t in draft.dtypes if t.is_float or t is DType.BOOL]
    if x is None or not targets:
        return
    source, target = draft.type(x).dtype, draft.one_of(targets)
    if source.is_integer and target.is_float:
        # goes on within bounds
        draft.op("tanh", draft.op("cast", x, dtype=target, bound=LIMIT), bound=1.0)
        return
    exact = source.compute is target or source is target
    draft.op("cast", x, dtype=target, bound=LIMIT, exact=exact)


def integer_division(draft: Draft) -> None:
    """By any odd number, -1 and the least ones too."""
    x = draft.pick(lambda v: draft.type(v).dtype.is_integer)
    if x is None:
        return
    dtype = draft.type(x).dtype
    y = draft.fresh_input(dtype, draft.shape(x)[draft.integer(0, len(draft.shape(x))) :])
    y = draft.op("bitwise_or", y, draft.scalar(1, dtype))
    draft.op(draft.one_of(_INTEGER_DIVISIONS), x, y)


WILD_STEPS: dict[str, Callable[[Draft], None]] = {
    "wild_unary": wild_unary,
    "wild_binary": wild_binary,
    "wild_cast": wild_cast,
    "integer_division": integer_division,
}

"""Expansion of attention: softmax(q · kᵀ · scale + mask) · v."""

from __future__ import annotations

import math

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.call import Call, shape_attr
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.emitter import Emitter
from kernel_gen.ir.types import Shape


def expand_attention(e: Emitter, call: Call, operands: tuple[int, ...]) -> int:
    """q (…, S, D), k (…, T, D), v (…, T, E)[, mask] -> (…, S, E).

    Scores stay in the compute type. A row with every score at -inf gives zeros, as in eager.
    """
    q, k, v = (e.widen(value) for value in operands[:3])
    rank = e.type(k).rank
    swapped = (*range(rank - 2), rank - 1, rank - 2)
    scores = e.op("matmul", q, e.op("permute", k, dims=swapped))
    scores = e.with_scalar("mul", scores, _scale(call))
    if call.flag("causal"):
        scores = _masked(e, scores, _causal_mask(e, scores))
    elif call.flag("mask"):
        scores = _apply_mask(e, scores, operands[3])
    return e.cast(e.op("matmul", _safe_softmax(e, scores), v), call.x.dtype)


def _scale(call: Call) -> float:
    if call.attrs["scale"] is not None:
        return call.number("scale")
    width = call.x.shape[-1]
    if not isinstance(width, int):
        raise InvalidGraph("attention: the default scale needs a static head size")
    return 1.0 / math.sqrt(width) if width else 1.0


def _apply_mask(e: Emitter, scores: int, mask: int) -> int:
    """A mask is added; a bool one as -inf where it is false: NaN stays NaN, as in eager."""
    if e.type(mask).dtype is DType.BOOL:
        mask = _masked(e, e.scalar(0.0, scores), mask)
        return e.op("add", scores, mask)
    return e.op("add", scores, e.cast(mask, e.type(scores).dtype))


def _masked(e: Emitter, scores: int, keep: int) -> int:
    return e.op("where", keep, scores, e.scalar(-math.inf, scores))


def _causal_mask(e: Emitter, scores: int) -> int:
    """Position t may be seen from s where t <= s, both counted from the first."""
    shape: Shape = e.type(scores).shape[-2:]
    source, target = (
        e.op("iota", shape=shape_attr(shape), dtype=DType.I64, dim=dim, start=0, step=1)
        for dim in (0, 1)
    )
    return e.op("le", target, source)


def _safe_softmax(e: Emitter, scores: int) -> int:
    last = (e.type(scores).rank - 1,)
    top = e.op("amax", scores, dims=last, keepdim=True)
    power = e.op("exp", e.op("sub", scores, top))
    weights = e.op("div", power, e.sum(power, last))
    empty = e.with_scalar("eq", top, -math.inf)
    return e.op("where", empty, e.scalar(0.0, scores), weights)

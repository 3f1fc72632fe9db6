"""The gradient of attention, from what its forward call kept: five products around one softmax."""

from __future__ import annotations

import math

from kernel_gen.frontend.lower.core import Args, Lowering, NotLowered, Result, Val, extent, lowers
from kernel_gen.ir.dtype import DType


@lowers("_scaled_dot_product_flash_attention_for_cpu_backward")
def attention_backward(c: Lowering, a: Args) -> Result:
    """Dao et al., FlashAttention (2022), appendix B.2, without its tiles.

    P = exp(scale · q kᵀ + mask - logsumexp); dV = Pᵀ dO; dS = P · (dO vᵀ - Σ dO · O) · scale;
    dQ = dS k; dK = dSᵀ q.
    """
    if a["dropout_p"] > 0:
        raise NotLowered(f"{c.name} with dropout", code="random", decompose=False)
    kept: Val = a["query"]
    wide = kept.dtype.compute
    names = ("query", "key", "value", "grad_out", "out", "logsumexp")
    q, k, v, gradient, out, total = (c.cast(a[name], wide) for name in names)
    scale = a["scale"]
    factor = c.number(1 / math.sqrt(extent(c, q, 3)) if scale is None else scale, wide)
    shares = c.op("exp", c.op("sub", _scores(c, a, q, k, factor), _column(c, total)))
    own = c.op("sum", c.op("mul", gradient, out), dims=(3,), keepdim=True)
    moved = c.op("sub", c.op("matmul", gradient, c.swap(v, 2, 3)), own)
    scores = c.op("mul", c.op("mul", shares, moved), factor)
    made = (
        c.op("matmul", scores, k),
        c.op("matmul", c.swap(scores, 2, 3), q),
        c.op("matmul", c.swap(shares, 2, 3), gradient),
    )
    return [c.cast(value, kept.dtype) for value in made]


def _column(c: Lowering, total: Val) -> Val:
    return c.reshape(total, (*total.shape, 1))


def _scores(c: Lowering, a: Args, q: Val, k: Val, factor: Val) -> Val:
    """Scaled products with the mask; what a causal mask hides is -inf."""
    scores = c.op("mul", c.op("matmul", q, c.swap(k, 2, 3)), factor)
    if a["attn_mask"] is not None:
        scores = c.op("add", scores, c.cast(a["attn_mask"], scores.dtype))
    if not a["is_causal"]:
        return scores
    shape = (extent(c, scores, 2), extent(c, scores, 3))
    row, column = (
        c.op("iota", shape=shape, dtype=str(DType.I64), dim=d, start=0, step=1) for d in (0, 1)
    )
    return c.op("where", c.op("le", column, row), scores, c.number(-math.inf, scores.dtype))

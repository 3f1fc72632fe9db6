"""Gradients of losses: what torch scatters into zeros is a comparison of positions here."""

from __future__ import annotations

from kernel_gen.frontend.lower.core import Args, Lowering, NotLowered, Result, Val, lowers
from kernel_gen.ir.dtype import DType

_MEAN = 1  # torch's code of the reduction


@lowers("nll_loss_backward nll_loss2d_backward")
def nll_loss_backward(c: Lowering, a: Args) -> Result:
    """-weight[t] · grad at the target t of each row (over dim 1), 0 elsewhere and in ignored rows.

    log_probs (N, C, …) or (C,), target (N, …) or (). The row's own log-probability is read, though
    its value is not used: a target outside is an error, as in eager.
    """
    log_probs: Val = a["self"]
    if log_probs.rank == 0 or not log_probs.dtype.is_float:
        raise NotLowered(f"{c.name} of {log_probs.dtype}, rank {log_probs.rank}")
    dim = min(log_probs.rank - 1, 1)
    rows = tuple(1 if d == dim else extent for d, extent in enumerate(log_probs.shape))
    target = c.cast(c.reshape(a["target"], rows), DType.I64)
    used = c.op("ne", target, c.number(a["ignore_index"], DType.I64))
    safe = c.op("where", used, target, c.number(0, DType.I64))
    grad = _row_gradient(c, a, safe)
    own = c.op("isnan", c.op("gather", log_probs, safe, dim=dim))
    zero = c.number(0.0, log_probs.dtype)
    row = c.op("where", used, c.op("neg", c.op("where", own, grad, grad)), zero)
    places = c.op("iota", shape=c.dims(log_probs.shape), dtype="i64", dim=dim, start=0, step=1)
    return c.op("where", c.op("eq", places, safe), row, zero)


def _row_gradient(c: Lowering, a: Args, safe: Val) -> Val:
    """What each row's target gets, before its sign."""
    grad: Val = a["grad_output"]
    if a["reduction"] == _MEAN:
        grad = c.op("div", grad, a["total_weight"])
    if grad.rank:
        grad = c.reshape(grad, safe.shape)
    if a.get("weight") is not None:
        grad = c.op("mul", grad, c.op("take", a["weight"], safe, dim=0))
    return grad

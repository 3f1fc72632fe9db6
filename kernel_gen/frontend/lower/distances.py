"""Distances between rows, and products of vectors in space."""

from __future__ import annotations

from kernel_gen.frontend.lower.contractions import matmul
from kernel_gen.frontend.lower.core import Args, Lowering, NotLowered, Result, Val, axis, lowers

_DIRECT = 25  # rows up to which torch subtracts them; of more it multiplies


@lowers("cdist")
def cdist(c: Lowering, a: Args) -> Result:
    """x (…, P, M), y (…, R, M) -> (…, P, R): the root of |x|² + |y|² - 2·x·y, as torch takes it."""
    x, y = a["x1"], a["x2"]
    rows = (x.shape[-2], y.shape[-2], x.shape[-1])
    if a["p"] != 2 or not all(isinstance(n, int) for n in rows) or 0 in rows:
        raise NotLowered(f"{c.name} of the norm {a['p']}", decompose=False)
    mode = a["compute_mode"] or 0
    if mode == 2 or (mode == 0 and max(x.shape[-2], y.shape[-2]) <= _DIRECT):
        return _subtracted(c, x, y)
    products = matmul(c, x, c.swap(y, y.rank - 2, y.rank - 1))
    ours, theirs = (_squares(c, value) for value in (x, y))
    sizes = c.op("add", ours, c.swap(theirs, y.rank - 2, y.rank - 1))
    both = c.op("mul", products, c.number(2.0, x.dtype))
    return c.op("sqrt", c.op("maximum", c.op("sub", sizes, both), c.number(0.0, x.dtype)))


def _squares(c: Lowering, value: Val) -> Val:
    return c.op("sum", c.op("mul", value, value), dims=(value.rank - 1,), keepdim=True)


def _subtracted(c: Lowering, x: Val, y: Val) -> Val:
    left = c.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))
    right = c.reshape(y, (*y.shape[:-2], 1, *y.shape[-2:]))
    apart = c.op("sub", left, right)
    last = apart.rank - 1
    return c.op("sqrt", c.op("sum", c.op("mul", apart, apart), dims=(last,), keepdim=False))


@lowers("linalg_cross")
def cross(c: Lowering, a: Args) -> Result:
    """out[i] = x[i + 1] · y[i + 2] - x[i + 2] · y[i + 1], counted modulo 3."""
    x, y = (c.expand(a[name], c.out_type.shape) for name in ("self", "other"))
    dim = axis(a["dim"], x.rank)

    def turned(value: Val, by: int) -> Val:
        parts = (c.slice(value, dim, by, 3), c.slice(value, dim, 0, by))
        return c.op("concat", *parts, dim=dim)

    ahead = c.op("mul", turned(x, 1), turned(y, 2))
    return c.op("sub", ahead, c.op("mul", turned(x, 2), turned(y, 1)))

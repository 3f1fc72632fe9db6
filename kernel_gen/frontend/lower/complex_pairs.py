"""Complex arithmetic and views, written on pairs of real numbers: (a, b) is a + b·i."""

from __future__ import annotations

from kernel_gen.frontend.lower.core import (
    Args,
    Lowering,
    NotLowered,
    Pair,
    Result,
    Val,
    axis,
    lowers,
)
from kernel_gen.frontend.lower.parts import narrow, select, slice_
from kernel_gen.frontend.lower.views import expand, permute, reshape, transpose


@lowers(
    "view_as_real view_as_complex clone contiguous detach detach_ alias lift lift_fresh "
    "lift_fresh_copy resolve_conj resolve_neg",
    pairs=True,
)
def same_numbers(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    return value


@lowers("real imag", pairs=True)
def part(c: Lowering, a: Args) -> Result:
    which = 1 if ".imag." in c.name else 0
    return c.reshape(_part(c, a["self"], which), c.out_type.shape)


def _part(c: Lowering, value: Val, which: int) -> Val:
    """Real (0) or imaginary (1) parts; the last dimension stays, with one element."""
    return c.slice(value, value.rank - 1, which, which + 1)


def _joined(c: Lowering, real: Val, imaginary: Val) -> Val:
    return c.op("concat", real, imaginary, dim=real.rank - 1)


def _with_last(c: Lowering, value: Val) -> Val:
    """x[s…] as x[s…, 1], beside the parts of a pair."""
    return c.reshape(value, (*value.shape, 1))


@lowers("complex", pairs=True)
def from_parts(c: Lowering, a: Args) -> Result:
    shape = c.out_type.shape[:-1]
    return _joined(c, *(_with_last(c, c.expand(a[name], shape)) for name in ("real", "imag")))


@lowers("polar", pairs=True)
def polar(c: Lowering, a: Args) -> Result:
    shape = c.out_type.shape[:-1]
    radius, angle = (_with_last(c, c.expand(a[name], shape)) for name in ("abs", "angle"))
    return _joined(c, *(c.op("mul", radius, c.op(function, angle)) for function in ("cos", "sin")))


@lowers("mul.Tensor", pairs=True)
def product(c: Lowering, a: Args) -> Result:
    """(a + bi) (c + di) = ac - bd + (ad + bc) i; a real factor scales both parts."""
    left, right = a["self"], a["other"]
    if not isinstance(left, Pair):
        left, right = right, left
    if not isinstance(left, Pair) or not isinstance(right, Val):
        raise NotLowered(f"{c.name} by a complex number of the program", decompose=False)
    if not isinstance(right, Pair):
        return c.op("mul", left, _with_last(c, c.cast(right, left.dtype)))
    (x, y), (u, v) = (tuple(_part(c, value, k) for k in (0, 1)) for value in (left, right))
    real = c.op("sub", c.op("mul", x, u), c.op("mul", y, v))
    imaginary = c.op("add", c.op("mul", x, v), c.op("mul", y, u))
    return _joined(c, real, imaginary)


@lowers("add.Tensor sub.Tensor", pairs=True)
def sum_or_difference(c: Lowering, a: Args) -> Result:
    left, right = a["self"], a["other"]
    if not isinstance(left, Pair) or not isinstance(right, Pair) or a["alpha"] != 1:
        raise NotLowered(f"{c.name} of complex and real numbers", decompose=False)
    return c.op("add" if ".add." in c.name else "sub", left, right)


@lowers("conj _conj conj_physical", pairs=True)
def conjugate(c: Lowering, a: Args) -> Result:
    value: Val = a["self"]
    return _joined(c, _part(c, value, 0), c.op("neg", _part(c, value, 1)))


lowers(
    "view.default reshape flatten unflatten squeeze unsqueeze view_as reshape_as _unsafe_view",
    pairs=True,
)(reshape)
lowers("expand expand_as broadcast_to", pairs=True)(expand)


def _counted(a: Args, *names: str) -> Args:
    """The arguments with dimensions counted from the front: the pairs' own does not count."""
    rank = a["self"].rank - 1
    return {**a, **{name: axis(a[name], rank) for name in names}}


lowers("slice.Tensor", pairs=True)(lambda c, a: slice_(c, _counted(a, "dim")))
lowers("select.int", pairs=True)(lambda c, a: select(c, _counted(a, "dim")))
lowers("narrow", pairs=True)(lambda c, a: narrow(c, _counted(a, "dim")))
lowers("transpose.int", pairs=True)(lambda c, a: transpose(c, _counted(a, "dim0", "dim1")))


@lowers("permute", pairs=True)
def permuted(c: Lowering, a: Args) -> Result:
    rank = a["self"].rank - 1
    return permute(c, {**a, "dims": [*(axis(dim, rank) for dim in a["dims"]), rank]})

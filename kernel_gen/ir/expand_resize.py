"""Expansion of `resize`: each new element as a weighted sum of a few old ones, axis by axis.

linear, 4 -> 8:  y[i] = (1 - t) · x[k] + t · x[k + 1],  k = (2·i - 1) // 4,  t = (2·i - 1) % 4 / 4

Places are whole numbers over a denominator: exact, where torch rounds a product.
"""

from __future__ import annotations

from fractions import Fraction

from kernel_gen.ir.call import Call
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.emitter import Emitter
from kernel_gen.ir.infer_resize import step_between
from kernel_gen.ir.types import static_shape

Operands = tuple[int, ...]
_CUBIC = -0.75  # torch's coefficient (Keys, 1981)


def expand_resize(e: Emitter, call: Call, operands: Operands) -> int:
    value = e.widen(operands[0])
    sizes, align = call.integers("sizes", 1), call.flag("align")
    first = call.x.rank - len(sizes)
    old = static_shape(call.x.shape[first:])
    scales = call.numbers("scales")
    for d in reversed(range(len(sizes))):
        step = step_between(old[d], sizes[d], scales[d], align=align)
        assert step is not None  # typing has refused it
        if old[d] == sizes[d] and step == 1:
            continue
        taps = _taps(e, value, sizes[d], step, align=align, mode=str(call.attrs["mode"]))
        value = _weighted(e, value, first + d, taps)
    return e.cast(value, call.x.dtype)


Tap = tuple[int, int]  # places in the old axis, of shape (new,), and weights


def _taps(e: Emitter, like: int, new: int, step: Fraction, *, align: bool, mode: str) -> list[Tap]:
    """The old elements around each new one; the places of some may lie outside."""
    over = step.denominator if align else 2 * step.denominator
    start = 0 if align else step.numerator - step.denominator
    each = step.numerator if align else 2 * step.numerator
    at = e.op("iota", shape=(new,), dtype=DType.I64, dim=0, start=start, step=each)
    base = e.with_scalar("floor_div", at, over)
    rest = e.cast(e.with_scalar("remainder", at, over), e.type(like).dtype)
    share = e.with_scalar("div", rest, over)
    other = e.op("sub", e.scalar(1.0, share), share)
    if mode == "linear":
        weights = {0: other, 1: share}
    else:
        weights = {-1: _far(e, share), 0: _near(e, share), 1: _near(e, other), 2: _far(e, other)}
    return [(e.with_scalar("add", base, offset), weight) for offset, weight in weights.items()]


def _near(e: Emitter, t: int) -> int:
    """((a + 2) · t - (a + 3)) · t² + 1: the weight of an element at distance t <= 1."""
    slope = e.with_scalar("sub", e.with_scalar("mul", t, _CUBIC + 2), _CUBIC + 3)
    return e.with_scalar("add", e.op("mul", e.op("mul", slope, t), t), 1.0)


def _far(e: Emitter, t: int) -> int:
    """((a · d - 5 · a) · d + 8 · a) · d - 4 · a at the distance d = 1 + t."""
    d = e.with_scalar("add", t, 1.0)
    total = e.with_scalar("sub", e.with_scalar("mul", d, _CUBIC), 5 * _CUBIC)
    total = e.with_scalar("add", e.op("mul", total, d), 8 * _CUBIC)
    return e.with_scalar("sub", e.op("mul", total, d), 4 * _CUBIC)


def _weighted(e: Emitter, value: int, dim: int, taps: list[Tap]) -> int:
    """Σ over the taps of value[place] · weight along `dim`; places outside are the nearest end."""
    shape = e.type(value).shape
    (last,) = (extent - 1 for extent in static_shape(shape[dim : dim + 1]))
    total: int | None = None
    for place, weight in taps:
        inside = e.with_scalar("minimum", e.with_scalar("maximum", place, 0), last)
        taken = e.op("take", value, inside, dim=dim)
        new = e.type(weight).shape
        part = e.op("mul", taken, e.reshape(weight, (*new, *(1 for _ in shape[dim + 1 :]))))
        total = part if total is None else e.op("add", total, part)
    assert total is not None
    return total

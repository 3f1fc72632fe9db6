"""Typing of `resize`."""

from __future__ import annotations

from fractions import Fraction

from kernel_gen.ir.call import Call
from kernel_gen.ir.types import TensorType, static_shape

_FINEST = 4096  # the largest denominator of a step between places


def step_between(old: int, new: int, scale: float, *, align: bool) -> Fraction | None:
    """How far apart in the old axis neighbours in the new one lie, as torch has it; None where it
    is no simple fraction. `scale` is what the caller asked for, 0 for the extents' quotient."""
    if align:
        return Fraction(old - 1, new - 1) if new > 1 else Fraction(0)
    if not scale:
        return Fraction(old, new)
    found = Fraction(1 / scale).limit_denominator(_FINEST)
    return found if abs(float(found) * scale - 1) < 1e-12 else None


def infer_resize(call: Call) -> TensorType:
    """The last dimensions of x become `sizes`, as torch's linear or cubic interpolation has it."""
    if not call.x.dtype.is_float:
        call.fail("takes a float operand")
    if call.attrs["mode"] not in ("linear", "cubic"):
        call.fail("mode must be linear or cubic")
    sizes, scales, align = call.integers("sizes", 1), call.numbers("scales"), call.flag("align")
    if not sizes or len(sizes) > call.x.rank or len(scales) != len(sizes):
        call.fail("sizes and scales need one value per resized dimension")
    first = call.x.rank - len(sizes)
    for extent, new, scale in zip(call.x.shape[first:], sizes, scales, strict=True):
        if not isinstance(extent, int) or extent < 1 or scale < 0:
            call.fail("resized extents are static and not 0, and scales not negative")
        if step_between(extent, new, scale, align=align) is None:
            call.fail(f"the scale {scale} is no simple fraction")
    return TensorType(call.x.dtype, (*call.x.shape[:first], *static_shape(sizes)))

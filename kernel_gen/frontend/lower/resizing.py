"""Images enlarged and reduced: by the nearest element as views, by weights as a composite."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from kernel_gen.frontend.lower.core import Args, Lowering, NotLowered, Result, Val, extent, lowers
from kernel_gen.frontend.lower.views import interleaved
from kernel_gen.ir.types import Dim, Sym

_MOST_REPEATED = 16  # copies of an element in the rows that nearest elements are taken from


@lowers("upsample_nearest1d upsample_nearest2d upsample_nearest3d")
def nearest(c: Lowering, a: Args) -> Result:
    return _nearest(c, a, 0.0)


@lowers("_upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d")
def nearest_exact(c: Lowering, a: Args) -> Result:
    return _nearest(c, a, 0.5)


def _nearest(c: Lowering, a: Args, centre: float) -> Val:
    """Element (step · i) // over, along each dimension: each element `over` times, and of that
    every `step`th."""
    value = _image(a)
    sizes = c.out_type.shape[2:]
    for dim, (size, scale) in enumerate(zip(sizes, _scales(a, len(sizes)), strict=True), 2):
        old, new = extent(c, value, dim), _static(c, size)
        found = _step(old, new, scale, centre)
        if found is None:
            raise NotLowered(f"{c.name} from {old} to {new}", decompose=False)
        step, over, start = found
        if over > 1:
            shape = (*value.shape[:dim], old * over, *value.shape[dim + 1 :])
            value = interleaved(c, value, dim, over, shape)
        value = c.slice(value, dim, start, start + (new - 1) * step + 1, step)
    return value


def _step(old: int, new: int, scale: float | None, centre: float) -> tuple[int, int, int] | None:
    """(step, over, start) such that torch takes element (start + step · i) // over, or None: it
    multiplies places by a rounded step, of fp32 or, for fp64, of its type."""
    if not old or not new:
        return None
    places = np.arange(new)
    ratio = (
        Fraction(1 / scale).limit_denominator(2 * _MOST_REPEATED) if scale else Fraction(old, new)
    )
    over = ratio.denominator * (1 + (centre > 0 and ratio.numerator % 2))
    step = int(ratio * over)
    start = int(step * centre)
    wanted = (start + step * places) // over
    if over > _MOST_REPEATED or wanted[-1] >= old:
        return None
    for real in ("f4", "f8"):
        torch_step = np.array(1 / scale if scale else old / new, real)
        found = np.floor((places.astype(real) + np.array(centre, real)) * torch_step)
        if (np.minimum(found, old - 1) != wanted).any():
            return None
    return step, over, start


@lowers("upsample_linear1d upsample_bilinear2d upsample_trilinear3d")
def linear(c: Lowering, a: Args) -> Result:
    return _weighted(c, a, "linear")


@lowers("upsample_bicubic2d")
def cubic(c: Lowering, a: Args) -> Result:
    return _weighted(c, a, "cubic")


def _weighted(c: Lowering, a: Args, mode: str) -> Val:
    sizes = tuple(_static(c, size) for size in c.out_type.shape[2:])
    scales = tuple(scale or 0.0 for scale in _scales(a, len(sizes)))
    value, align = _image(a), bool(a["align_corners"])
    return c.op("resize", value, sizes=sizes, scales=scales, mode=mode, align=align)


def _image(a: Args) -> Val:
    value: Val = a["input"] if "input" in a else a["self"]
    return value


def _static(c: Lowering, size: Dim) -> int:
    if isinstance(size, Sym):
        raise NotLowered(f"{c.name} to {size}", decompose=False)
    return size


def _scales(a: Args, count: int) -> Sequence[float | None]:
    """The factors that the caller gave; None where torch takes the quotient of the extents."""
    names = ("scales",) if count == 1 else ("scales_d", "scales_h", "scales_w")[-count:]
    found = a.get("scale_factors") or [a.get(name) for name in names]
    return list(found)

"""`Resize`: which elements of an axis each new element is made of, and with what weights.

Axes are independent, so each is resampled on its own: by one index per element (nearest), or by a
small matrix of weights (linear, cubic).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kernel_gen.frontend.onnx.values import Call, rule

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Axis:
    """One axis to resample: extents, scale, and the region of interest in shares of the axis."""

    old: int
    new: int
    scale: float
    roi: tuple[float, float]


@rule("Resize", "Upsample")
def resize(call: Call) -> Tensor:
    value = call.tensor(0)
    mode = call.attr("mode", b"nearest").decode()
    if call.attr("antialias", 0) and mode != "nearest":
        raise call.refuse("antialiasing")
    for axis, spec in _axes(call, value.shape).items():
        if mode == "nearest":
            value = _nearest(call, value, axis, spec)
        else:
            value = _weighted(call, value, axis, spec, mode)
    return value


def _axes(call: Call, shape: torch.Size) -> dict[int, _Axis]:
    axes = [a % len(shape) for a in call.attr("axes") or range(len(shape))]
    first_scales = 1 if call.op == "Upsample" else 2
    sizes = call.ints(3, "sizes") if call.has(3) else None
    if sizes is None:
        scales = [float(s) for s in call.known(first_scales, "scales").reshape(-1)]
        new = [math.floor(shape[a] * s) for a, s in zip(axes, scales, strict=True)]
    else:
        new, scales = _keep_aspect(call, [shape[a] for a in axes], sizes)
    roi = [float(r) for r in call.known(1, "roi").reshape(-1)] if _uses_roi(call) else []
    ends = [(roi[i], roi[i + len(axes)]) if roi else (0.0, 1.0) for i in range(len(axes))]
    specs = {a: _Axis(shape[a], new[i], scales[i], ends[i]) for i, a in enumerate(axes)}
    return {a: s for a, s in specs.items() if s.new != s.old or s.scale != 1.0 or roi}


def _uses_roi(call: Call) -> bool:
    return _coordinates(call) == "tf_crop_and_resize"


def _coordinates(call: Call) -> str:
    if call.op == "Upsample":
        return "asymmetric"
    return str(call.attr("coordinate_transformation_mode", b"half_pixel").decode())


def _keep_aspect(call: Call, old: list[int], sizes: list[int]) -> tuple[list[int], list[float]]:
    scales = [size / extent for size, extent in zip(sizes, old, strict=True)]
    policy = call.attr("keep_aspect_ratio_policy", b"stretch").decode()
    if policy == "stretch":
        return sizes, scales
    scale = min(scales) if policy == "not_larger" else max(scales)
    return [int(scale * extent + 0.5) for extent in old], [scale] * len(old)


def _source(call: Call, axis: _Axis) -> Floats:
    """The place in the old axis, in elements, that each new element looks at."""
    x = np.arange(axis.new, dtype=np.float64)
    mode = _coordinates(call)
    length = axis.scale * axis.old  # the exact new length, which may be fractional
    if mode == "align_corners":
        return x * (axis.old - 1) / (length - 1) if axis.new > 1 else np.zeros(axis.new)
    if mode == "asymmetric":
        return x / axis.scale
    if mode == "tf_crop_and_resize":
        start, end = axis.roi
        if axis.new == 1:
            return np.full(1, 0.5 * (start + end) * (axis.old - 1))
        return start * (axis.old - 1) + x * (end - start) * (axis.old - 1) / (axis.new - 1)
    if mode == "pytorch_half_pixel" and axis.new <= 1:
        return np.full(axis.new, 0.0)
    centred = (x + 0.5) / axis.scale - 0.5
    if mode == "half_pixel_symmetric":
        return centred + axis.old / 2 * (1 - axis.new / length)
    return centred


def _nearest(call: Call, value: Tensor, axis: int, spec: _Axis) -> Tensor:
    at = _source(call, spec)
    how = call.attr("nearest_mode", b"round_prefer_floor").decode()
    if call.op == "Upsample":
        how = "floor"
    if how == "ceil":
        index = np.ceil(at)
    elif how == "floor":
        index = np.floor(at)
    elif how == "round_prefer_ceil":
        index = np.floor(at + 0.5)
    else:
        index = np.ceil(at - 0.5)
    index = index.clip(0, spec.old - 1).astype(np.int64)
    return _outside(call, value.index_select(axis, torch.tensor(index)), axis, spec, at)


def _weighted(call: Call, value: Tensor, axis: int, spec: _Axis, mode: str) -> Tensor:
    at = _source(call, spec)
    taps = (0, 1) if mode == "linear" else (-1, 0, 1, 2)
    base = np.floor(at)
    share = at - base
    if mode == "linear":
        columns = [1 - share, share]
    else:
        columns = _cubic(share, call.attr("cubic_coeff_a", -0.75))
    matrix = np.zeros((spec.new, spec.old))
    dropped = bool(call.attr("exclude_outside", 0))
    for tap, weights in zip(taps, columns, strict=True):
        place = base + tap
        inside = (place >= 0) & (place < spec.old)
        kept = np.where(inside, weights, 0.0) if dropped else weights
        clipped = place.clip(0, spec.old - 1).astype(np.int64)
        np.add.at(matrix, (np.arange(spec.new), clipped), kept)
    if dropped:
        matrix /= matrix.sum(axis=1, keepdims=True)
    blend = torch.tensor(matrix, dtype=value.dtype if value.is_floating_point() else torch.float32)
    moved = value.to(blend.dtype).movedim(axis, -1) @ blend.t()
    resampled = moved.movedim(-1, axis)
    if not value.is_floating_point():
        info = torch.iinfo(value.dtype)
        resampled = torch.trunc(resampled).clamp(info.min, info.max).to(value.dtype)
    return _outside(call, resampled, axis, spec, at)


def _cubic(share: Floats, a: float) -> list[Floats]:
    """Weights of the four neighbours at distance `share` (Keys 1981)."""

    def near(d: Floats) -> Floats:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Floats) -> Floats:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(share + 1), near(share), near(1 - share), far(2 - share)]


def _outside(call: Call, value: Tensor, axis: int, spec: _Axis, at: Floats) -> Tensor:
    """Cropping gives a fill value where it looks past the ends of the axis."""
    if not _uses_roi(call):
        return value
    extents = [1] * value.ndim
    extents[axis] = -1
    inside = torch.tensor((at >= 0) & (at <= spec.old - 1)).reshape(extents)
    fill = torch.tensor(call.attr("extrapolation_value", 0.0), dtype=value.dtype)
    return torch.where(inside, value, fill)

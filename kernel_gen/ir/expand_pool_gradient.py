"""Expansions of a pooling's way back: places of windows as whole numbers, shares put back to them.

max_pool_gradient(g, at, kernel 2, stride 2)
  ->  where(at == place 0, g, 0) with a zero behind each element, plus the same of place 1, one on
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

from kernel_gen.ir.call import Call
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.emitter import Emitter
from kernel_gen.ir.expand_convolution import spread
from kernel_gen.ir.infer_composite import COMPOSITE_RULES
from kernel_gen.ir.types import Shape, static_shape

Operands = tuple[int, ...]
Sizes = tuple[int, ...]


def expand_argmax_pool(e: Emitter, call: Call, operands: Operands) -> int:
    """The flat place of each window's largest element: the first of equals, the last NaN."""
    count = COMPOSITE_RULES[call.op](call).shape
    windows = _windows(call, call.x.shape, count)
    none = (0,) * (call.x.rank - len(windows.image))
    low, high = ((*none, *call.integers(side)) for side in ("low", "high"))
    around = e.op("pad", operands[0], low=low, high=high, value=-math.inf)
    best, found = e.scalar(-math.inf, around), windows.first(e)
    for tap in windows.taps():
        seen = around
        for d, (start, step) in enumerate(zip(tap, windows.stride, strict=True)):
            stop = start + (windows.count[d] - 1) * step + 1
            seen = e.op("slice", seen, dim=len(none) + d, start=start, stop=stop, step=step)
        more = e.op("logical_or", e.op("gt", seen, best), e.op("isnan", seen))
        best = e.op("where", more, seen, best)
        found = e.op("where", more, windows.place(e, tap), found)
    return found


def expand_max_pool_gradient(e: Emitter, call: Call, operands: Operands) -> int:
    """Each window's gradient goes to the place that is named for it."""
    gradient, places = e.widen(operands[0]), operands[1]
    windows = _windows(call, call.integers("image"), call.x.shape)
    zero = e.scalar(0.0, gradient)
    own = (
        windows.back(
            e, e.op("where", e.op("eq", places, windows.place(e, tap)), gradient, zero), tap
        )
        for tap in windows.taps()
    )
    return e.cast(_total(e, own), call.x.dtype)


def expand_avg_pool_gradient(e: Emitter, call: Call, operands: Operands) -> int:
    """Each element of a window gets an equal share of the window's gradient."""
    windows = _windows(call, call.integers("image"), call.x.shape)
    share = e.with_scalar("div", e.widen(operands[0]), math.prod(windows.kernel))
    own = (windows.back(e, share, tap) for tap in windows.taps())
    return e.cast(_total(e, own), call.x.dtype)


def _total(e: Emitter, parts: Iterator[int]) -> int:
    return functools.reduce(lambda left, right: e.op("add", left, right), parts)


@dataclass(frozen=True, slots=True)
class _Windows:
    """Windows over the last dimensions: of an image of `image` extents, `count` of them."""

    image: Sizes
    count: Sizes
    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes

    def taps(self) -> Iterator[Sizes]:
        """Places within a window, from its start, in the order of memory."""
        for tap in itertools.product(*(range(k) for k in self.kernel)):
            yield tuple(t * gap for t, gap in zip(tap, self.dilation, strict=True))

    def place(self, e: Emitter, tap: Sizes) -> int:
        """Where in the flat image each window's tap lies, of shape `count`."""
        lines = []
        for d, (start, step) in enumerate(zip(tap, self.stride, strict=True)):
            flat = math.prod(self.image[d + 1 :])
            lines.append(self._line(e, d, (start - self.padding[d]) * flat, step * flat))
        return _total(e, iter(lines))

    def first(self, e: Emitter) -> int:
        """Where in the flat image the first element of each window lies that is inside."""
        lines = []
        for d, (step, gap) in enumerate(zip(self.stride, self.dilation, strict=True)):
            start = self._line(e, d, -self.padding[d], step)
            before = e.with_scalar("maximum", e.op("neg", start), 0)
            skipped = e.with_scalar("floor_div", e.with_scalar("add", before, gap - 1), gap)
            inside = e.op("add", start, e.with_scalar("mul", skipped, gap))
            lines.append(e.with_scalar("mul", inside, math.prod(self.image[d + 1 :])))
        return _total(e, iter(lines))

    def _line(self, e: Emitter, dim: int, start: int, step: int) -> int:
        return e.op("iota", shape=self.count, dtype=DType.I64, dim=dim, start=start, step=step)

    def back(self, e: Emitter, value: int, tap: Sizes) -> int:
        """What each window gives to its tap, at the tap's place in the image; 0 elsewhere."""
        lead = e.type(value).rank - len(tap)
        for d, (start, step) in enumerate(zip(tap, self.stride, strict=True)):
            value = spread(e, value, lead + d, step)
            value = _moved(e, value, lead + d, start - self.padding[d], self.image[d])
        return value


def _windows(call: Call, image: Shape, count: Shape) -> _Windows:
    kernel = call.integers("kernel", 1)
    dilation = call.integers("dilation", 1) if "dilation" in call.attrs else (1,) * len(kernel)
    extents = [static_shape(shape[-len(kernel) :]) for shape in (image, count)]
    stride, padding = call.integers("stride", 1), call.integers("low")
    return _Windows(extents[0], extents[1], kernel, stride, padding, dilation)


def _moved(e: Emitter, value: int, dim: int, start: int, size: int) -> int:
    """Element i of `dim` at start + i, in a dimension of `size`."""
    shape = e.type(value).shape
    (count,) = static_shape(shape[dim : dim + 1])
    first, last = max(-start, 0), min(count, size - start)
    if last <= first:
        first, last, start = 0, 0, 0
    if (first, last) != (0, count):
        value = e.op("slice", value, dim=dim, start=first, stop=last, step=1)
    before = max(start, 0)
    none = (0,) * len(shape)
    low, high = (
        (*none[:dim], n, *none[dim + 1 :]) for n in (before, size - before - (last - first))
    )
    if not any((*low, *high)):
        return value
    return e.op("pad", value, low=low, high=high, value=0.0)

"""Expansions of poolings: the elements of a window as strided slices of the padded image.

max_pool(x, kernel 2, stride 2)  ->  maximum(x[0::2], x[1::2])
"""

from __future__ import annotations

import math
from functools import reduce

from kernel_gen.ir.call import Call
from kernel_gen.ir.emitter import Emitter
from kernel_gen.ir.infer_composite import COMPOSITE_RULES
from kernel_gen.ir.types import static_shape

Operands = tuple[int, ...]


def expand_max_pool(e: Emitter, call: Call, operands: Operands) -> int:
    """The largest element of each window; NaN wins."""
    elements = _elements(e, call, operands[0], -math.inf)
    return reduce(lambda left, right: e.op("maximum", left, right), elements)


def expand_avg_pool(e: Emitter, call: Call, operands: Operands) -> int:
    """The mean of each window, padding counted as zeros."""
    elements = _elements(e, call, e.widen(operands[0]), 0.0)
    total = reduce(lambda left, right: e.op("add", left, right), elements)
    return e.cast(e.with_scalar("div", total, len(elements)), call.x.dtype)


def _elements(e: Emitter, call: Call, x: int, around: float) -> list[int]:
    """For each position in the window, the image of what stands there."""
    kernel, stride = call.integers("kernel", 1), call.integers("stride", 1)
    dilation = call.integers("dilation", 1) if "dilation" in call.attrs else (1,) * len(kernel)
    low, high = call.integers("low"), call.integers("high")
    first = call.x.rank - len(kernel)
    if any(low) or any(high):
        before = (0,) * first
        x = e.op("pad", x, low=(*before, *low), high=(*before, *high), value=around)
    out = static_shape(COMPOSITE_RULES[call.op](call).shape[first:])
    found = [x]
    for d, (k, s, gap, n) in enumerate(zip(kernel, stride, dilation, out, strict=True)):
        starts = [place * gap for place in range(k)]
        found = [
            e.op("slice", image, dim=first + d, start=a, stop=a + s * (n - 1) + 1, step=s)
            for image in found
            for a in starts
        ]
    return found

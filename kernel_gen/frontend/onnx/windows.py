"""Geometry that convolutions and pools share: kernel, strides, dilations, pads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from kernel_gen.frontend.onnx.values import Call


@dataclass(frozen=True, slots=True)
class Window:
    """One number per spatial axis in each field; pads may differ at the two ends."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @classmethod
    def of(cls, call: Call, extents: Sequence[int], kernel: Sequence[int] | None = None) -> Window:
        """The window of a node over axes of `extents`."""
        sizes = tuple(call.attr("kernel_shape") or kernel or ())
        ones = (1,) * len(sizes)
        strides = tuple(call.attr("strides") or ones)
        dilations = tuple(call.attr("dilations") or ones)
        reach = tuple(d * (k - 1) + 1 for d, k in zip(dilations, sizes, strict=True))
        before, after = _pads(call, extents, strides, reach)
        return cls(sizes, strides, dilations, before, after)

    @property
    def is_symmetric(self) -> bool:
        return self.before == self.after

    def padded(self, value: Tensor, fill: float) -> tuple[Tensor, list[int]]:
        """`value` and the padding that is left to the operator itself."""
        if self.is_symmetric and fill == 0.0:
            return value, list(self.before)
        return F.pad(value, self.flat_pads(), value=fill), [0] * len(self.kernel)

    def flat_pads(self, extra: Sequence[int] | None = None) -> list[int]:
        """As `F.pad` takes them, last axis first; `extra` is added at the back."""
        more = extra or [0] * len(self.kernel)
        sides = zip(self.before, self.after, more, strict=True)
        return [n for b, a, e in reversed(list(sides)) for n in (b, a + e)]

    def ceil_extra(self, extents: Sequence[int]) -> list[int]:
        """What to add at the back so that no element is left out, as `ceil_mode` asks for: a last
        window must start inside of the input or its front pad."""
        found = []
        for axis, extent in enumerate(extents):
            reach = self.dilations[axis] * (self.kernel[axis] - 1) + 1
            padded = extent + self.before[axis] + self.after[axis]
            steps = -(-(padded - reach) // self.strides[axis])
            if steps * self.strides[axis] >= extent + self.before[axis]:
                steps -= 1
            found.append(max(0, steps * self.strides[axis] + reach - padded))
        return found


def _pads(
    call: Call, extents: Sequence[int], strides: Sequence[int], reach: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    auto = call.attr("auto_pad", b"NOTSET").decode()
    rank = len(reach)
    if auto in ("NOTSET", ""):
        pads = tuple(call.attr("pads") or (0,) * 2 * rank)
        return pads[:rank], pads[rank:]
    if auto == "VALID":
        return (0,) * rank, (0,) * rank
    totals = [
        max(0, (-(-extent // stride) - 1) * stride + span - extent)
        for extent, stride, span in zip(extents, strides, reach, strict=True)
    ]
    small, large = tuple(n // 2 for n in totals), tuple(n - n // 2 for n in totals)
    return (large, small) if auto == "SAME_LOWER" else (small, large)

"""Whether a contender's results are right: close to the float64 results, or to eager's.

Close means within `RELATIVE` of the value plus as much of the output's root mean square. Where a
program jumps (rounding, comparisons), eager itself differs from float64 in some elements; a
contender may differ in four times as many, and no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

RELATIVE = {
    torch.float64: 1e-9,
    torch.float32: 1e-4,
    torch.float16: 4e-3,
    torch.bfloat16: 3e-2,
}
_FP64_RELATIVE = 1e-5  # of the oracle "fp64"
_MORE_JUMPS = 4


@dataclass(frozen=True, slots=True)
class Expected:
    """Results of eager, and of eager in float64; one entry per output, written inputs last."""

    eager: tuple[Tensor, ...]
    exact: tuple[Tensor, ...]
    oracle: str = "eager"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`max_error` is the largest absolute difference from float64; `wrong` says what is wrong."""

    max_error: float
    wrong: str = ""


def judge(got: Sequence[Tensor], expected: Expected) -> Verdict:
    """Compares all outputs; shapes and dtypes must be eager's."""
    if len(got) != len(expected.eager):
        return Verdict(float("inf"), f"{len(got)} outputs, not {len(expected.eager)}")
    worst, wrong = 0.0, ""
    for i, (one, eager, exact) in enumerate(zip(got, expected.eager, expected.exact, strict=True)):
        verdict = _judge_one(one, eager, exact, expected.oracle)
        worst = max(worst, verdict.max_error)
        wrong = wrong or (verdict.wrong and f"output {i}: {verdict.wrong}")
    return Verdict(worst, wrong)


def _judge_one(got: Tensor, eager: Tensor, exact: Tensor, oracle: str) -> Verdict:
    if got.shape != eager.shape or got.dtype != eager.dtype:
        have, want = (f"{t.dtype} {tuple(t.shape)}" for t in (got, eager))
        return Verdict(float("inf"), f"{have}, not {want}")
    if not got.numel():
        return Verdict(0.0)
    near_exact = _near(got, exact, _FP64_RELATIVE if oracle == "fp64" else None)
    off = ~near_exact if oracle == "fp64" else ~(near_exact | _near(got, eager))
    allowed = 0 if oracle == "fp64" else _MORE_JUMPS * int((~_near(eager, exact)).sum())
    count = int(off.sum())
    error = max_error(got, exact)
    if count > allowed:
        return Verdict(error, f"{count} of {got.numel()} elements are off, by up to {error:.3g}")
    return Verdict(error)


def _near(got: Tensor, want: Tensor, relative: float | None = None) -> Tensor:
    """Elementwise closeness; NaN is near NaN, integers and bools must be equal."""
    if relative is None:
        relative = RELATIVE.get(got.dtype, 0.0)
    if not got.is_floating_point() and got.dtype == want.dtype:
        return got == want
    a, b = got.double(), want.double()
    same = (a == b) | (a.isnan() & b.isnan())
    finite = b[b.isfinite()]
    scale = finite.square().mean().sqrt() if finite.numel() else torch.tensor(0.0)
    return same | ((a - b).abs() <= relative * (b.abs() + scale))


def max_error(got: Tensor, want: Tensor) -> float:
    """Largest absolute difference, NaN equal to NaN; infinite where the shapes differ."""
    if got.shape != want.shape:
        return float("inf")
    if not got.numel():
        return 0.0
    a, b = got.double(), want.double()
    gap = torch.where((a == b) | (a.isnan() & b.isnan()), 0.0, (a - b).abs())
    return float(gap.nan_to_num(float("inf")).max())

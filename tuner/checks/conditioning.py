"""What fp32 itself cannot say: elements of a result that hang on rounding, and how far rounding
moves the others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gen.executor.execute import execute
from kernel_gen.executor.noise import Noise
from kernel_gen.ir.loopnest import Contract, LoopNest
from tuner.checks.compare import Tolerance, differing, known_extent
from tuner.checks.reference import with_wide_outputs

Array = NDArray[Any]

_CONDITION = 8.0  # another order of rounding may err so many times more than NumPy's
_SHAKEN = 1.25  # by this the tolerance is above what put-in rounding errors may change
_SHAKES = 2  # of products; one may happen to leave an element where it is
_TYPICAL = 0.999  # quantile of ordinary elements whose rounding a tolerance covers
_MOST_WIDENED = 64.0  # times the usual tolerance: 2e-4 in fp32, about a program's
_SAMPLE = 20_011  # elements that the quantile is taken of


def ill_conditioned(
    nest: LoopNest, inputs: Sequence[Array], expected: Sequence[Array], allowed: Sequence[Tolerance]
) -> list[Array | None]:
    """Per output, the elements for which fp32 arithmetic itself (NumPy's) is not well within
    tolerance of float64: log(1 - sigmoid(30)) is -inf in the one and -30 in the other,
    log(exp(-100)) hangs on the few bits of a subnormal number.

    Also those that hang on a last bit, or on the order of a product's sums: 1 - b^t cancels for b
    near 1; where silu(gate) is multiplied by a large value, its slope at a gate of -20 turns a
    rounding of the sum into a wrong digit.
    """
    return hanging(nest, inputs, expected, allowed, shaken(nest, inputs))


def hanging(
    nest: LoopNest,
    inputs: Sequence[Array],
    expected: Sequence[Array],
    allowed: Sequence[Tolerance],
    moved: Sequence[Sequence[Array]],
) -> list[Array | None]:
    """As `ill_conditioned`, with the outputs as they are `shaken`."""
    with np.errstate(all="ignore"):
        narrow = execute(nest, inputs, precision="flushed")
        found = _beyond(narrow, expected, allowed, _CONDITION)
        for made in moved:
            found = either(found, _beyond(made, expected, allowed, _SHAKEN))
    return found


def shaken(nest: LoopNest, inputs: Sequence[Array]) -> list[list[Array]]:
    """The outputs with rounding errors put in, some times."""
    subject = with_wide_outputs(nest)
    draws = range(_SHAKES if multiplications(nest) else 1)
    return [execute(subject, inputs, precision="f64", noise=Noise(seed)) for seed in draws]


def widened(
    allowed: Sequence[Tolerance], expected: Sequence[Array], moved: Sequence[Sequence[Array]]
) -> list[Tolerance]:
    """Tolerances that cover what rounding does to ordinary elements of each output: all of Adam's
    update hangs on the few digits that 1 - b^t keeps."""
    return [
        limit.divided_by(1 / _loss(limit, want, [made[k] for made in moved]))
        for k, (limit, want) in enumerate(zip(allowed, expected, strict=True))
    ]


def _loss(limit: Tolerance, expected: Array, moved: Sequence[Array]) -> float:
    """How many times the tolerance rounding may take, with a reserve of two; at least 1."""
    if not limit.absolute or not expected.size:
        return 1.0
    step = max(1, expected.size // _SAMPLE)
    want = expected.reshape(-1)[::step].astype(np.float64)
    with np.errstate(all="ignore"):
        off = np.max([np.abs(made.reshape(-1)[::step] - want) for made in moved], axis=0)
        shares = off / (np.abs(want) * limit.relative + limit.absolute)
    known = shares[np.isfinite(shares)]
    typical = float(np.quantile(known, _TYPICAL)) if known.size else 0.0
    return min(max(1.0, 2 * typical), _MOST_WIDENED)


def _beyond(
    made: Sequence[Array], expected: Sequence[Array], allowed: Sequence[Tolerance], factor: float
) -> list[Array | None]:
    """Per output, where it differs by more than a share of the tolerance."""
    found: list[Array | None] = []
    for have, want, limit in zip(made, expected, allowed, strict=True):
        beyond = differing(have, want, limit.divided_by(factor))
        found.append(beyond if beyond.any() else None)
    return found


def either(left: Sequence[Array | None], right: Sequence[Array | None]) -> list[Array | None]:
    """Masks of elements that one of two masks holds, per output."""
    pairs = zip(left, right, strict=True)
    return [b if a is None else a if b is None else a | b for a, b in pairs]


def multiplications(nest: LoopNest) -> int:
    """Multiplications of the nest's matrix products."""
    live = nest.statement_axes()
    return sum(
        math.prod(
            known_extent(nest.axis(axis).extent) for axis in {*live[position], *statement.axes}
        )
        for position, statement in enumerate(nest.statements)
        if isinstance(statement, Contract)
    )

"""Divisions by a constant as products: a register of quotients takes ten cycles and more.

    x / 6   ->   x * 0.16666667

An ulp off at most, so not where a step of the nest jumps: floor(x / 49) of 49 is 1, floor of the
product 0.
"""

from __future__ import annotations

import math

from kernel_gen.codegen.cpu.statements.ops import COMPARE
from kernel_gen.codegen.flat.linear import FlatNest
from kernel_gen.ir.loopnest import Compute, Reduce

_JUMPS = frozenset((*COMPARE, "ceil", "floor", "floor_div", "fmod", "remainder", "round", "sign",
                    "trunc"))  # fmt: skip
_LARGE = 100  # exponents whose reciprocal is a normal number, with room for products


def is_smooth(nest: FlatNest) -> bool:
    """Whether no step turns a last bit into another whole number, position or truth."""
    return not any(
        (isinstance(s, Compute) and (s.op in _JUMPS or (s.op == "cast" and not s.dtype.is_float)))
        or (isinstance(s, Reduce) and s.op.startswith("arg"))
        for s in nest.statements
    )


def reciprocal(divisor: float | int | bool, *, smooth: bool) -> float | None:
    """The factor that stands for a division by a constant, None if none does."""
    number = float(divisor)
    if not math.isfinite(number) or number == 0:
        return None
    mantissa, exponent = math.frexp(number)
    exact = abs(mantissa) == 0.5
    return 1 / number if abs(exponent) < _LARGE and (exact or smooth) else None

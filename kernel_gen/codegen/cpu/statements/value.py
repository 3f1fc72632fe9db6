"""A computed statement as C text, and numbers as C literals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernel_gen.codegen.cpu.vectors.types import SCALAR_C
from kernel_gen.ir.dtype import DType


@dataclass(frozen=True, slots=True)
class Value:
    """A computed statement: C text (a name or literal), its dtype, one or all lanes.

    `const` is the number if the value is a literal.
    """

    text: str
    dtype: DType
    vector: bool
    const: float | int | bool | None = None


def literal_text(value: float | int | bool, dtype: DType) -> str:
    """A C literal of the compute type of `dtype`; infinities and NaN by builtins."""
    if dtype is DType.BOOL:
        return "1" if value else "0"
    if not dtype.is_float:
        return _integer_literal(int(value), dtype)
    suffix = "f" if dtype.compute is DType.F32 else ""
    number = float(value)
    if number != number:
        return f'__builtin_nan{suffix}("")'
    if number in (float("inf"), float("-inf")):
        return f"({'-' if number < 0 else ''}__builtin_inf{suffix}())"
    text = repr(_as_f32(number)) if suffix else repr(number)
    return f"{text}{suffix}" if number >= 0 and not text.startswith("-") else f"({text}{suffix})"


def _as_f32(number: float) -> float:
    with np.errstate(over="ignore"):
        return float(np.float32(number))


def _integer_literal(value: int, dtype: DType) -> str:
    bits = dtype.bytes * 8
    value &= (1 << bits) - 1
    if dtype is not DType.U8 and value >> (bits - 1):
        value -= 1 << bits
    if dtype is DType.I64:
        return "(-9223372036854775807LL - 1)" if value == -(1 << 63) else f"({value}LL)"
    return f"({SCALAR_C[dtype]})({value})"

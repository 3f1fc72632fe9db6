"""Element types of torch and of the IR, and torch's rules of promotion between them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from kernel_gen.errors import UnsupportedModel
from kernel_gen.ir.dtype import DType

TORCH_DTYPE: dict[DType, torch.dtype] = {
    DType.F64: torch.float64,
    DType.F32: torch.float32,
    DType.F16: torch.float16,
    DType.BF16: torch.bfloat16,
    DType.I64: torch.int64,
    DType.I32: torch.int32,
    DType.I16: torch.int16,
    DType.I8: torch.int8,
    DType.U8: torch.uint8,
    DType.BOOL: torch.bool,
}
_FROM_TORCH = {theirs: ours for ours, theirs in TORCH_DTYPE.items()}
_INTEGER_BITS = {DType.I64: 64, DType.I32: 32, DType.I16: 16, DType.I8: 8, DType.U8: 8}


def to_torch(dtype: DType) -> torch.dtype:
    """The torch type of `dtype`."""
    return TORCH_DTYPE[dtype]


def from_torch(dtype: torch.dtype) -> DType:
    """The IR's name of a torch type; raises UnsupportedModel for complex, quantised and others."""
    found = _FROM_TORCH.get(dtype)
    if found is None:
        raise UnsupportedModel(
            f"element type {dtype} is not supported; supported are "
            f"{', '.join(str(known) for known in _FROM_TORCH)}: convert the tensor, "
            "or leave this part of the model in eager mode"
        )
    return found


def is_supported(dtype: torch.dtype) -> bool:
    return dtype in _FROM_TORCH


@dataclass(frozen=True, slots=True)
class PromotionOperand:
    """What promotion looks at: element type, and whether the operand has dimensions."""

    dtype: DType
    has_dims: bool


def scalar_dtype(value: bool | int | float) -> DType:
    """The type that torch gives a Python number; floats have the default type."""
    if isinstance(value, bool):
        return DType.BOOL
    return DType.I64 if isinstance(value, int) else from_torch(torch.get_default_dtype())


def promote(operands: Iterable[PromotionOperand | bool | int | float]) -> DType:
    """The common type of the operands of an elementwise op, as `torch.result_type` gives it.

    Tensors with dimensions come first, 0-d tensors next, Python numbers last; a later group
    counts only when it is of a higher category (bool < integer < float).
    """
    groups: list[DType | None] = [None, None, None]
    for operand in operands:
        if isinstance(operand, PromotionOperand):
            place, dtype = (0 if operand.has_dims else 1), operand.dtype
        else:
            place, dtype = 2, scalar_dtype(operand)
        groups[place] = _join(groups[place], dtype)
    result: DType | None = None
    for group in groups:
        if group is not None and (result is None or _category(group) > _category(result)):
            result = _join(result, group)
    if result is None:
        raise UnsupportedModel("an elementwise op without operands has no type")
    return result


def _join(left: DType | None, right: DType) -> DType:
    if left is None:
        return right
    return from_torch(torch.promote_types(to_torch(left), to_torch(right)))


def _category(dtype: DType) -> int:
    if dtype is DType.BOOL:
        return 0
    return 2 if dtype.is_float else 1


def fits(value: bool | int | float, dtype: DType) -> bool:
    """Whether a Python number has a meaning in `dtype` (integers must be in range)."""
    if dtype.is_float or dtype is DType.BOOL:
        return True
    if not math.isfinite(value):
        return False
    bits = _INTEGER_BITS[dtype]
    low, high = (0, 2**bits - 1) if dtype is DType.U8 else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return bool(low <= value <= high)


def rounded(value: bool | int | float, dtype: DType) -> float:
    """A number as the nearest one of a float type: rounded(0.1, BF16) is 0.10009765625."""
    return float(torch.tensor(float(value), dtype=to_torch(dtype)).item())

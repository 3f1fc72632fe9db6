"""Ops whose torch function takes the operands and nothing else, and how numbers stand in them."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from kernel_gen.frontend.torch_calls.attrs import Call

DIRECT: dict[str, Call] = {
    **{
        name: getattr(torch, name)
        for name in [
            "abs",
            "neg",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log2",
            "log10",
            "log1p",
            "sqrt",
            "rsqrt",
            "reciprocal",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "erf",
            "erfc",
            "sigmoid",
            "relu",
            "sign",
            "floor",
            "ceil",
            "round",
            "trunc",
            "logical_not",
            "bitwise_not",
            "isnan",
            "isinf",
            "isfinite",
            "add",
            "sub",
            "mul",
            "div",
            "remainder",
            "fmod",
            "pow",
            "maximum",
            "minimum",
            "atan2",
            "copysign",
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "logical_and",
            "logical_or",
            "logical_xor",
            "eq",
            "ne",
            "lt",
            "le",
            "gt",
            "ge",
            "where",
            "matmul",
            "square",
        ]
    },
    **{
        name: getattr(F, name)
        for name in [
            "linear",
            "silu",
            "hardswish",
            "hardsigmoid",
            "relu6",
            "mish",
            "softplus",
            "logsigmoid",
        ]
    },
    "floor_div": torch.floor_divide,
    "shift_left": torch.bitwise_left_shift,
    "shift_right": torch.bitwise_right_shift,
}
SWAPPED = {
    "add": "add",
    "mul": "mul",
    "eq": "eq",
    "ne": "ne",
    "lt": "gt",
    "le": "ge",
    "gt": "lt",
    "ge": "le",
}
"""The function to call with the operands changed over."""

NUMBER_RIGHT = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "remainder",
        "fmod",
        "pow",
        "floor_div",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "shift_left",
        "shift_right",
    ]
)
"""Ops that torch takes with a Python number on the right."""

"""Typing rules: results, symbols that pass through, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from kernel_gen.errors import InvalidGraph
from kernel_gen.ir.broadcast import broadcast_shapes
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.infer import infer
from kernel_gen.ir.types import Shape, Sym, TensorType

N, M = Sym("s0"), Sym("s1")
F32, F64, I64, I32, BOOL = DType.F32, DType.F64, DType.I64, DType.I32, DType.BOOL


def result(op: str, *operands: tuple[DType, Shape], **attributes: Any) -> tuple[DType, Shape]:
    found = infer(op, [TensorType(*operand) for operand in operands], attrs(**attributes))
    assert found.strides is None
    return found.dtype, found.shape


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(2, 3), (3,)], (2, 3)),
        ([(2, 1), (1, 4)], (2, 4)),
        ([(), (5,)], (5,)),
        ([(0,), (1,)], (0,)),
        ([(N, 1), (1, M)], (N, M)),
        ([(N,), (N,)], (N,)),
        ([(N,), (4,)], None),
        ([(N,), (M,)], None),
        ([(2,), (3,)], None),
        ([(0,), (3,)], None),
    ],
)
def test_broadcasting(shapes: list[Shape], expected: Shape | None) -> None:
    assert broadcast_shapes(shapes) == expected
    assert broadcast_shapes(list(reversed(shapes))) == expected


def test_symbols_pass_through() -> None:
    x = (F32, (N, 4, M))
    assert result("exp", x) == x
    assert result("add", x, (F32, (M,))) == x
    assert result("lt", x, (F32, (1, 4, 1))) == (BOOL, (N, 4, M))
    assert result("cast", x, dtype="i64") == (I64, (N, 4, M))
    assert result("reshape", x, shape=("s0", 2, 2, "s1")) == (F32, (N, 2, 2, M))
    assert result("reshape", x, shape=("s1", 4, "s0")) == (F32, (M, 4, N))
    assert result("permute", x, dims=(2, 0, 1)) == (F32, (M, N, 4))
    assert result("expand", (F32, (1, 4)), shape=("s0", 4)) == (F32, (N, 4))
    assert result("slice", x, dim=1, start=0, stop=3, step=2) == (F32, (N, 2, M))
    assert result("slice", x, dim=0, start=0, stop="s0", step=1) == x
    assert result("flip", x, dims=(0,)) == x
    assert result("pad", x, low=(0, 1, 0), high=(0, 2, 0), value=0.0) == (F32, (N, 7, M))
    assert result("concat", x, x, dim=1) == (F32, (N, 8, M))
    assert result("take", (F32, (9, M)), (I64, (N, 3)), dim=0) == (F32, (N, 3, M))
    assert result("gather", (F32, (N, 9)), (I64, (N, 3)), dim=1) == (F32, (N, 3))
    assert result("full", shape=("s0", 2), dtype="f32", value=1.0) == (F32, (N, 2))
    assert result("iota", shape=("s0",), dtype="i64", dim=0, start=0, step=1) == (I64, (N,))
    assert result("sum", x, dims=(0,), keepdim=False) == (F32, (4, M))
    assert result("amax", x, dims=(0, 2), keepdim=True) == (F32, (1, 4, 1))
    assert result("argmax", x, dims=(2,), keepdim=False) == (I64, (N, 4))
    assert result("matmul", (F32, (N, 1, 3, M)), (F32, (5, M, 2))) == (F32, (N, 5, 3, 2))


REFUSED: list[tuple[str, list[tuple[DType, Shape]], dict[str, Any], str]] = [
    ("exp", [(I64, (2,))], {}, "takes float operands"),
    ("add", [(BOOL, (2,)), (BOOL, (2,))], {}, "takes integer or float"),
    ("add", [(F32, (2,)), (I64, (2,))], {}, "one dtype"),
    ("add", [(F32, (2,)), (F32, (3,))], {}, "do not broadcast"),
    ("add", [(F32, (N,)), (F32, (M,))], {}, "do not broadcast"),
    ("logical_and", [(I64, (2,)), (I64, (2,))], {}, "takes bool"),
    ("shift_left", [(BOOL, (2,)), (BOOL, (2,))], {}, "takes integer operands"),
    ("where", [(F32, (2,)), (F32, (2,)), (F32, (2,))], {}, "condition must be bool"),
    ("cast", [(F32, (2,))], {"dtype": "f8"}, "dtype must be one of"),
    ("reshape", [(F32, (2, 3))], {"shape": (4,)}, "cannot hold the same elements"),
    ("reshape", [(F32, (N, 3))], {"shape": ("s1", 3)}, "cannot hold the same elements"),
    ("reshape", [(F32, (4,))], {"shape": (2, -2)}, "extents"),
    ("reshape", [(F32, (4,))], {"shape": ("x", 2)}, "expected s0"),
    ("permute", [(F32, (2, 3))], {"dims": (0, 0)}, "permutation"),
    ("expand", [(F32, (2,))], {"shape": (3,)}, "only extents of 1"),
    ("slice", [(F32, (4,))], {"dim": 0, "start": 0, "stop": 5, "step": 1}, "stop <= 4"),
    ("slice", [(F32, (4,))], {"dim": 0, "start": 0, "stop": 4, "step": 0}, "at least 1"),
    ("slice", [(F32, (N,))], {"dim": 0, "start": 0, "stop": 2, "step": 1}, "symbolic"),
    ("slice", [(F32, (4,))], {"dim": 1, "start": 0, "stop": 1, "step": 1}, "below the rank"),
    ("flip", [(F32, (4,))], {"dims": (0, 0)}, "ascending, unique"),
    ("pad", [(F32, (4,))], {"low": (1,), "high": (-1,), "value": 0.0}, "at least 0"),
    ("pad", [(I32, (4,))], {"low": (1,), "high": (1,), "value": 2**31}, "integer of i32"),
    ("concat", [(F32, (2, 3)), (F32, (3, 3))], {"dim": 1}, "agree in all dimensions but 1"),
    ("concat", [], {"dim": 0}, "at least one"),
    ("gather", [(F32, (2, 3)), (F32, (2, 3))], {"dim": 0}, "i64 or i32"),
    ("gather", [(F32, (2, 3)), (I64, (2, 4))], {"dim": 0}, "larger than the operand"),
    ("full", [], {"shape": (), "dtype": "u8", "value": -1}, "integer of u8"),
    ("full", [], {"shape": (), "dtype": "f32", "value": True}, "must be a number"),
    ("iota", [], {"shape": (), "dtype": "i64", "dim": 0, "start": 0, "step": 1}, "below"),
    ("sum", [(BOOL, (2,))], {"dims": (0,), "keepdim": False}, "integer or float"),
    ("sum", [(F32, (2,))], {"dims": (1,), "keepdim": False}, "below the rank"),
    ("sum", [(F32, (2,))], {"dims": (0,), "keepdim": 1}, "true or false"),
    ("argmax", [(F32, (2, 0))], {"dims": (1,), "keepdim": False}, "zero elements"),
    ("argmax", [(F32, (2, 2, 2))], {"dims": (0, 1), "keepdim": False}, "or all of them"),
    ("matmul", [(F32, (2, 3)), (F32, (4, 2))], {}, "inner extents"),
    ("matmul", [(F32, (3,)), (F32, (3, 2))], {}, "rank 2"),
    ("softmax", [(F32, (2,))], {"dim": 1}, "below the rank"),
    ("gelu", [(F32, (2,))], {"approximate": "fast"}, "none or tanh"),
    ("clamp", [(I64, (2,))], {"low": 0.5, "high": None}, "integer for i64"),
    ("framework", [], {"target": "", "args": "", "code": "", "sentence": ""}, "no typing rule"),
]


@pytest.mark.parametrize(("op", "operands", "attributes", "message"), REFUSED)
def test_refused(
    op: str, operands: list[tuple[DType, Shape]], attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidGraph, match=message):
        result(op, *operands, **attributes)


def test_convolution() -> None:
    same = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    x, w = (F32, (N, 4, 9, 9)), (F32, (8, 4, 3, 3))
    assert result("convolution", x, w, **same) == (F32, (N, 8, 9, 9))
    strided = {"stride": (2, 2), "padding": (0, 1), "dilation": (2, 1), "groups": 2}
    assert result("convolution", x, (F32, (8, 2, 3, 3)), **strided) == (F32, (N, 8, 3, 5))
    with pytest.raises(InvalidGraph, match="larger than the padded input"):
        result("convolution", (F32, (1, 4, 2, 2)), w, **{**same, "padding": (0, 0)})
    with pytest.raises(InvalidGraph, match="do not split into 3 groups"):
        result("convolution", x, w, **{**same, "groups": 3})

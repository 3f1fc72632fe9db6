"""Narrow floats: every bf16 and f16 is widened exactly, fp32 is rounded to nearest even."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors.moves import load_function, store_function
from kernel_gen.codegen.cpu.vectors.types import Lanes, vector_type
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler

NUMPY = {DType.BF16: np.dtype(ml_dtypes.bfloat16), DType.F16: np.dtype(np.float16)}
Convert = Callable[[DType, str, np.ndarray], np.ndarray]


@pytest.fixture(scope="module")
def convert(compiler: Compiler, level: Target) -> Convert:
    n, unit = level.vector_bytes // 4, Unit()
    lanes = Lanes(n)
    f32 = vector_type(unit, DType.F32, n)
    for dtype in NUMPY:
        load = load_function(unit, dtype, lanes, partial=False)
        store = store_function(unit, dtype, lanes)
        half = "unsigned short"
        unit.function(
            f'extern "C" void widen_{dtype}(const {half} *x, float *y, gaf_i64 n) {{\n'
            f"  for (gaf_i64 i = 0; i < n; i += {n}) *({f32}u *)(y + i) = {load}(x + i);\n}}\n"
            f'extern "C" void narrow_{dtype}(const float *x, {half} *y, gaf_i64 n) {{\n'
            f"  for (gaf_i64 i = 0; i < n; i += {n}) {store}(y + i, *(const {f32}u *)(x + i));\n}}"
        )
    built = compiler.compile_texts([("convert.cpp", unit.text())], level)
    assert not isinstance(built, Failure), built.message
    library = ctypes.CDLL(str(compiler.path_of(built)))

    def call(dtype: DType, direction: str, x: np.ndarray) -> np.ndarray:
        y = np.empty(len(x), np.float32 if direction == "widen" else np.uint16)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, y)]
        getattr(library, f"{direction}_{dtype}")(*pointers, ctypes.c_longlong(len(x)))
        return y

    return call


@pytest.mark.parametrize("dtype", NUMPY)
def test_every_narrow_float_widens_exactly(convert: Convert, dtype: DType) -> None:
    bits = np.arange(65536, dtype=np.uint16)
    want = bits.view(NUMPY[dtype]).astype(np.float32)
    np.testing.assert_array_equal(convert(dtype, "widen", bits), want)


@pytest.mark.parametrize("dtype", NUMPY)
def test_rounds_to_nearest_even(convert: Convert, dtype: DType) -> None:
    sampled = np.arange(0, 2**32, 4001, dtype=np.uint64).astype(np.uint32)
    halves = np.arange(65536, dtype=np.uint16).view(NUMPY[dtype]).astype(np.float32)
    finite = halves[np.isfinite(halves)]
    ties = ((finite[:-1].astype(np.float64) + finite[1:]) / 2).astype(np.float32)
    x = np.concatenate([sampled.view(np.float32), ties, np.nextafter(ties, np.float32(0))])
    x = np.resize(x, len(x) // 64 * 64)
    got = convert(dtype, "narrow", x).view(NUMPY[dtype])
    with np.errstate(all="ignore"):
        want = x.astype(NUMPY[dtype])
    np.testing.assert_array_equal(got.astype(np.float32), want.astype(np.float32))

"""Vector math against float64: at most 2 ulp over sampled bit patterns of the whole range."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest
from scipy import special

from kernel_gen.codegen.cpu.unit import Unit
from kernel_gen.codegen.cpu.vectors import math as vecmath
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.target import Target
from kernel_gen.records import Failure
from kernel_gen.runtime.build import Compiler

STEP = 4099  # one bit pattern in so many, about a million
SPECIALS = (0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 1, 0x80000001,
            0x7FFFFF, 0x807FFFFF, 0x800000, 0x80800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000,
            0xBF800000)  # fmt: skip
REFERENCE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "tanh": np.tanh,
    "erf": special.erf,
    "sigmoid": special.expit,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "abs": np.abs,
}


@pytest.fixture(scope="module")
def functions(compiler: Compiler, level: Target) -> Callable[[str, np.ndarray], np.ndarray]:
    """Calls a function on an array of a multiple of 64 elements, by the level's vectors."""
    lanes, unit = level.vector_bytes // 4, Unit()
    for op in (*REFERENCE, "exp_falling"):
        name = vecmath.vector_function(unit, op, DType.F32, lanes)
        unit.function(
            f'extern "C" void test_{op}(const float *x, float *y, gaf_i64 n) {{\n'
            f"  for (gaf_i64 i = 0; i < n; i += {lanes})\n"
            f"    *(gaf_f32x{lanes}u *)(y + i) = {name}(*(const gaf_f32x{lanes}u *)(x + i));\n}}"
        )
    built = compiler.compile_texts([("math.cpp", unit.text())], level)
    assert not isinstance(built, Failure), built.message
    library = ctypes.CDLL(str(compiler.path_of(built)))

    def call(op: str, x: np.ndarray) -> np.ndarray:
        y = np.empty_like(x)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (x, y)]
        getattr(library, f"test_{op}")(*pointers, ctypes.c_longlong(len(x)))
        return y

    return call


def samples() -> np.ndarray:
    bits = np.arange(0, 2**32, STEP, dtype=np.uint64).astype(np.uint32)
    bits = bits[: len(bits) // 64 * 64]
    bits[: len(SPECIALS)] = SPECIALS
    return bits.view(np.float32)


@pytest.mark.parametrize("op", REFERENCE)
def test_within_two_ulp(functions: Callable[[str, np.ndarray], np.ndarray], op: str) -> None:
    x = samples()
    got = functions(op, x)
    with np.errstate(all="ignore"):
        want = REFERENCE[op](x.astype(np.float64))
        rounded = want.astype(np.float32)
    special_value = ~np.isfinite(rounded) | ~np.isfinite(got)
    np.testing.assert_array_equal(got[special_value], rounded[special_value])
    plain = ~special_value
    with np.errstate(over="ignore"):
        ulp = np.spacing(np.abs(rounded[plain])).astype(np.float64)
    ulp[~np.isfinite(ulp)] = 2.0**104  # above the largest float
    error = np.abs(got[plain].astype(np.float64) - want[plain]) / ulp
    worst = int(error.argmax())
    assert error[worst] <= 2, f"{op}({x[plain][worst]!r}): {error[worst]:.2f} ulp"


@pytest.mark.parametrize("op", ["tanh", "erf", "sin", "expm1", "log1p", "floor", "trunc"])
def test_zero_keeps_its_sign(functions: Callable[[str, np.ndarray], np.ndarray], op: str) -> None:
    x = np.array([0.0, -0.0] * 32, np.float32)
    np.testing.assert_array_equal(np.signbit(functions(op, x)), np.signbit(x))


def test_the_exponential_of_a_softmax(
    functions: Callable[[str, np.ndarray], np.ndarray],
) -> None:
    """For x <= 0: within 2 ulp, 0 where the result would be subnormal, NaN from NaN."""
    x = -np.abs(samples())
    got = functions("exp_falling", x)
    plain = x >= -87
    want = np.exp(x[plain].astype(np.float64))
    np.testing.assert_allclose(got[plain], want, rtol=2 * 2.0**-23)
    np.testing.assert_array_equal(got[x < -88], 0)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(x))

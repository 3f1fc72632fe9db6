"""Every elementwise operator against eager, over element types, numbers and 0-d tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tests.frontend.as_eager import assert_as_eager, ops, targets

INF, NAN = float("inf"), float("nan")
FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def floats(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    special = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 3.0, -2.0])
    noise = torch.randn(12, generator=torch.Generator().manual_seed(5))
    return torch.stack([special, noise]).to(dtype)


def integers(dtype: torch.dtype = torch.int32) -> torch.Tensor:
    low = 0 if dtype is torch.uint8 else -5
    values = torch.randint(low, 7, (2, 12), generator=torch.Generator().manual_seed(6))
    return values.to(dtype)


UNARY = (  # noqa: SIM905
    "abs neg exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan "
    "sinh cosh tanh erf erfc sigmoid relu sign floor ceil round trunc isnan isinf isfinite square "
    "logical_not arcsin arccos arctan absolute negative positive fix sgn"
).split()


@pytest.mark.parametrize("name", UNARY)
def test_unary_of_floats(name: str) -> None:
    function = getattr(torch, name)
    captured = assert_as_eager(
        lambda x, y: (function(x), function(y)), (floats(), floats().bfloat16())
    )
    assert not targets(captured)


@pytest.mark.parametrize("name", [n for n in UNARY if n != "fix"])
def test_unary_of_integers(name: str) -> None:
    function = getattr(torch, name)
    captured = assert_as_eager(function, (integers(),))
    assert not targets(captured)


@pytest.mark.parametrize(
    "function",
    [
        torch.exp,
        torch.sigmoid,
        torch.logical_not,
        torch.bitwise_not,
        torch.isnan,
        torch.sign,
        torch.sqrt,
    ],
)
def test_unary_of_bool(function: Callable[..., Any]) -> None:
    assert not targets(assert_as_eager(function, (torch.tensor([True, False]),)))


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "hardswish": F.hardswish,
    "hardsigmoid": F.hardsigmoid,
    "relu6": F.relu6,
    "mish": F.mish,
    "softplus": F.softplus,
    "logsigmoid": F.logsigmoid,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "elu": lambda x: F.elu(x, 0.7),
    "selu": F.selu,
    "hardtanh": lambda x: F.hardtanh(x, -0.3, 0.9),
    "clamp": lambda x: x.clamp(-0.4, 0.6),
    "clamp_low": lambda x: x.clamp(min=0.1),
    "clip": lambda x: torch.clip(x, max=0.3),
    "dropout_in_eval": lambda x: F.dropout(x, 0.5, training=False) + 1,
}


@pytest.mark.parametrize("dtype", FLOATS)
def test_activations_are_one_node_each(dtype: torch.dtype) -> None:
    x = torch.randn(3, 5, generator=torch.Generator().manual_seed(1)).to(dtype) * 3
    captured = assert_as_eager(lambda x: [f(x) for f in ACTIVATIONS.values()], (x,))
    assert not targets(captured)
    assert sum(ops(captured).values()) == len(ACTIVATIONS)


DECOMPOSED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "celu": lambda x: F.celu(x, 0.7),
    "glu": F.glu,
    "hardshrink": F.hardshrink,
    "softshrink": F.softshrink,
    "tanhshrink": F.tanhshrink,
    "softsign": F.softsign,
    "threshold": lambda x: F.threshold(x, 0.1, 0.2),
    "prelu": lambda x: F.prelu(x, torch.tensor([0.2])),
    "softplus_beta": lambda x: F.softplus(x, 2.0),
    "nan_to_num": torch.nan_to_num,
    "frac": torch.frac,
    "logit": lambda x: torch.logit(x.sigmoid(), 1e-3),
    "sinc": torch.sinc,
    "lerp": lambda x: torch.lerp(x, x[:1] + 1, 0.3),
    "lerp_far": lambda x: torch.lerp(x, x + 1, 0.7),
    "addcmul": lambda x: torch.addcmul(x, x, x, value=0.5),
    "addcdiv": lambda x: torch.addcdiv(x, x, x + 4, value=0.5),
    "logaddexp": lambda x: torch.logaddexp(x, x * 2),
    "xlogy": lambda x: torch.xlogy(x.abs(), x.abs() + 1),
    "rad2deg": torch.rad2deg,
    "heaviside": lambda x: torch.heaviside(x, torch.tensor(0.5)),
    "rsub": lambda x: torch.rsub(x, 2.0, alpha=0.5),
}


def test_decomposed_by_torch() -> None:
    x = torch.randn(3, 6, generator=torch.Generator().manual_seed(1))
    captured = assert_as_eager(lambda x: [f(x) for f in DECOMPOSED.values()], (x,), exact=False)
    assert not targets(captured)


ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "truncated": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "floor_divide": torch.floor_divide,
    "remainder": torch.remainder,
    "fmod": torch.fmod,
    "eq": torch.eq,
    "ne": torch.ne,
    "lt": torch.lt,
    "le": torch.le,
    "gt": torch.gt,
    "ge": torch.ge,
}
# Eager multiplies and adds with one rounding.
SCALED: dict[str, Callable[[Any, Any], Any]] = {
    "add_alpha": lambda x, y: torch.add(x, y, alpha=3),
    "sub_alpha": lambda x, y: torch.sub(x, y, alpha=2),
}
TENSORS_ONLY = [
    torch.maximum,
    torch.minimum,
    torch.atan2,
    torch.copysign,
    torch.logical_and,
    torch.logical_or,
    torch.fmax,
    torch.fmin,
]
NUMBERS = (3, 2.5, 0.1, True)


def _nonzero(dtype: torch.dtype) -> torch.Tensor:
    x = floats(dtype) if dtype.is_floating_point else integers(dtype)
    return torch.where(x == 0, torch.ones_like(x), x)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32, torch.uint8])
def test_arithmetic_with_numbers(number: float, dtype: torch.dtype) -> None:
    x = _nonzero(dtype)
    functions = [f for name, f in ARITHMETIC.items() if number is not True or name != "sub"]
    assert not targets(assert_as_eager(lambda x: [f(x, number) for f in functions], (x,)))
    add = SCALED["add_alpha"]
    assert not targets(assert_as_eager(lambda x: add(x, number), (x,), exact=False))


PAIRS = [
    (torch.float32, torch.float32),
    (torch.bfloat16, torch.float32),
    (torch.bfloat16, torch.float16),
    (torch.int32, torch.int64),
    (torch.uint8, torch.int8),
    (torch.int64, torch.float16),
    (torch.float64, torch.float32),
]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_arithmetic_promotes(left: torch.dtype, right: torch.dtype) -> None:
    x, y = _nonzero(left), _nonzero(right).flip(1)
    functions = [*ARITHMETIC.values(), *TENSORS_ONLY]
    assert not targets(assert_as_eager(lambda x, y: [f(x, y) for f in functions], (x, y)))
    scaled = list(SCALED.values())
    captured = assert_as_eager(lambda x, y: [f(x, y) for f in scaled], (x, y), exact=False)
    assert not targets(captured)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.int32])
@pytest.mark.parametrize("scalar", [torch.float64, torch.float32, torch.int64, torch.bfloat16])
def test_tensors_without_dims_do_not_promote(dtype: torch.dtype, scalar: torch.dtype) -> None:
    functions = [ARITHMETIC[name] for name in ("add", "sub", "mul", "div", "remainder", "eq", "lt")]
    x, s = _nonzero(dtype), torch.tensor(0.3 if scalar.is_floating_point else 3, dtype=scalar)
    captured = assert_as_eager(lambda x, s: [(f(x, s), f(s, x)) for f in functions], (x, s))
    assert not targets(captured)


@pytest.mark.parametrize("name", ["add", "mul", "maximum", "minimum"])
def test_bool_arithmetic_is_logic(name: str) -> None:
    x = torch.tensor([True, True, False, False])
    y = torch.tensor([True, False, True, False])
    assert not targets(assert_as_eager(getattr(torch, name), (x, y)))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8, torch.bool])
def test_bitwise(dtype: torch.dtype) -> None:
    x = integers(torch.int64).abs().to(dtype)
    captured = assert_as_eager(lambda x, y: (x & y, x | y, x ^ y, ~x), (x, x.flip(1)))
    assert not targets(captured)


def test_shifts() -> None:
    captured = assert_as_eager(lambda x: (x << 2, x >> 1), (integers(torch.int32),))
    assert not targets(captured)


@pytest.mark.parametrize("exponent", [0.5, 1, 2, 3, -1, -0.5, 1.7, 4, 0])
def test_power_of_a_number(exponent: float) -> None:
    x = torch.rand(4, 5, generator=torch.Generator().manual_seed(2)) + 0.5
    assert not targets(assert_as_eager(lambda x: x**exponent, (x,), exact=False))


def test_powers_of_integers() -> None:
    captured = assert_as_eager(lambda x: (x**2, x**3, x**1), (integers(),))
    assert not targets(captured)
    assert targets(assert_as_eager(lambda x: x**7, (integers(),))) == ["aten.pow.Tensor_Scalar"]


def test_power_of_tensors() -> None:
    x = torch.rand(4, 5) + 0.5
    captured = assert_as_eager(lambda x, y: (x**y, 2.0**x), (x, x.flip(0)), exact=False)
    assert not targets(captured)


@pytest.mark.parametrize("source", [*FLOATS, *INTEGERS, torch.bool])
def test_casts(source: torch.dtype) -> None:
    x = torch.tensor([0.0, 1.0, 2.7, 3.2, 100.0]).to(source)
    dtypes = [t for t in (*FLOATS, *INTEGERS, torch.bool) if t is not source]
    captured = assert_as_eager(lambda x: [x.to(t) for t in dtypes], (x,))
    assert ops(captured) == {"cast": len(dtypes)}


def test_where_and_masked_fill() -> None:
    def program(x: torch.Tensor, m: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.where(m, x, 0.5),
            torch.where(m, 1.0, x),
            x.masked_fill(m, -INF),
            torch.where(m, x, x.double()),
        )

    assert not targets(assert_as_eager(program, (floats(), floats() > 0)))


def test_clamp_by_tensors_and_of_integers() -> None:
    def program(x: torch.Tensor, i: torch.Tensor, low: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.clamp(min=low), x.clamp(low, low + 1), i.clamp(-1, 2), i.clamp(min=0.5)

    assert not targets(assert_as_eager(program, (floats(), integers(), floats().flip(1))))


def test_a_number_out_of_range_is_left_to_torch() -> None:
    captured = assert_as_eager(lambda x: x == 300, (integers(torch.int8),))
    assert targets(captured) == ["aten.eq.Scalar"]

"""What is known of values from how a program uses them."""

from __future__ import annotations

from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import InputKind
from kernel_gen.ir.types import TensorType, ValueDomain
from tuner.checks.domains import FREE, value_domains


def test_integers_are_not_divided_by_zero() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.I32, (4, 5)))
    y = b.input(TensorType(DType.I8, (5,)))
    wide = b.op("cast", y, dtype="i32")
    b.output(b.op("remainder", x, b.op("expand", wide, shape=(4, 5))))
    domains = value_domains(b.build())
    assert domains[x] == FREE
    assert domains[y] == domains[wide] == ValueDomain(low=1.0)


def test_floats_may_be() -> None:
    b = GraphBuilder()
    x, y = (b.input(TensorType(DType.F32, (4,))) for _ in range(2))
    b.output(b.op("fmod", x, y))
    assert set(value_domains(b.build())) == {FREE}


def test_positions_lie_inside_what_they_address() -> None:
    b = GraphBuilder()
    table = b.input(TensorType(DType.F32, (7, 3)))
    at = b.input(TensorType(DType.I64, (4,)))
    b.output(b.op("take", table, at, dim=0))
    domain = value_domains(b.build())[at]
    assert (domain.low, domain.high) == (0, 6)


def test_variances_are_such_that_norms_have_results() -> None:
    """Else half of all channels hold NaN, behind a few layers all elements, and no fault shows."""
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (2, 3, 4)))
    mean, var = (b.input(TensorType(DType.BF16, (3,)), InputKind.BUFFER) for _ in range(2))
    wide = [b.op("cast", value, dtype="f32") for value in (mean, var)]
    b.output(b.op("batch_norm", x, *wide, eps=1e-5, weight=False, bias=False))
    domains = value_domains(b.build())
    assert domains[mean] == FREE
    assert domains[var] == domains[wide[1]] == ValueDomain(low=0.5)


def test_weights_under_a_root_are_not_negative_and_users_values_may_be() -> None:
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (3,)))
    var = b.input(TensorType(DType.F32, (3,)), InputKind.BUFFER)
    eps = b.op("full", shape=(), dtype=DType.F32, value=1e-5)
    b.output(b.op("mul", b.op("sqrt", x), b.op("rsqrt", b.op("add", var, eps))))
    domains = value_domains(b.build())
    assert domains[x] == FREE
    assert domains[var] == ValueDomain(low=0.5)

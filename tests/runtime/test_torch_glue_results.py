"""Aliases and mutation: a plan's results share memory exactly where eager's do."""

from __future__ import annotations

import pytest
import torch

from kernel_gen.errors import InvalidInput
from kernel_gen.frontend.torch_run import TorchProgram, copy_with_strides
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import InputKind
from kernel_gen.ir.types import TensorType
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.plan import Plan
from kernel_gen.runtime.torch_glue import BoundPlan, TorchPlan
from tests.runtime.small_plans import f32, plan_of


def bind(plan: Plan, *constants: torch.Tensor) -> BoundPlan:
    return TorchPlan(plan).bind(constants)


def shares(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def test_view_of_an_input(compiler: Compiler) -> None:
    b = GraphBuilder()
    x = b.input(f32(4, 6))
    part = b.op("slice", x, dim=0, start=1, stop=3, step=1)
    b.output(b.op("permute", part, dims=(1, 0)), alias_of=0)
    b.output(b.op("add", x, x))
    value = torch.randn(4, 6)
    view, double = bind(plan_of(b.build(), compiler, left_out=(0, 1)))([value], 1)
    assert torch.equal(view, value[1:3].t())
    assert shares(view, value)
    assert view.stride() == value[1:3].t().stride()
    assert torch.equal(double, value + value)
    assert not shares(double, value)


def test_the_input_itself(compiler: Compiler) -> None:
    b = GraphBuilder()
    x = b.input(f32(4, 6))
    b.output(x, alias_of=0)
    b.output(b.op("neg", x))
    value = torch.randn(4, 6)
    same, _ = bind(plan_of(b.build(), compiler))([value], 1)
    assert same is value


def test_input_returned_without_alias_is_a_copy(compiler: Compiler) -> None:
    b = GraphBuilder()
    x = b.input(f32(4, 6))
    w = b.input(f32(4, 6), InputKind.PARAMETER)
    b.output(x)
    b.output(w)
    b.output(b.op("add", x, w))
    value, weight = torch.randn(2, 4, 6)
    bound = bind(plan_of(b.build(), compiler), weight)
    copy, weights, _ = bound([value], 1)
    assert torch.equal(copy, value)
    assert torch.equal(weights, weight)
    assert not shares(copy, value)
    assert not shares(weights, weight)


def test_an_input_that_repeats_its_elements_is_copied(compiler: Compiler) -> None:
    """Constants laid out anew as well; a tensor with more elements than its type is refused."""
    rows = TensorType(DType.F32, (4, 6), (0, 1))
    b = GraphBuilder()
    x, w = b.input(rows), b.input(rows, InputKind.PARAMETER)
    for value in (x, w):
        b.output(value)
    graph = b.build()
    value, weight = torch.randn(6).expand(4, 6), torch.randn(6).expand(4, 6)
    for copies in (
        bind(plan_of(graph, compiler), weight)([value], 1),
        TorchProgram(graph)(value, weight),
    ):
        for copy, given in zip(copies, (value, weight), strict=True):
            assert torch.equal(copy, given)
            assert copy.stride() == (0, 1)
            assert not shares(copy, given)
    with pytest.raises(InvalidInput, match="repeated"):
        copy_with_strides(torch.randn(4, 6), (0, 1))


def test_mutated_input_is_written_last(compiler: Compiler) -> None:
    """x.add_(y); return x - y, x.t(): the view sees the write, kernels read the old value."""
    b = GraphBuilder()
    x, y = b.input(f32(4, 6)), b.input(f32(4, 6))
    after = b.op("add", x, y)
    b.output(after, mutates=0)
    b.output(b.op("sub", after, x))
    b.output(b.op("permute", after, dims=(1, 0)), alias_of=0)
    first, second = torch.randn(2, 4, 6)
    old = first.clone()
    version = first._version
    bound = bind(plan_of(b.build(), compiler, left_out=(2,)))
    written, difference, view = bound([first, second], 1)
    assert written is first
    assert torch.equal(first, old + second)
    assert first._version > version
    assert torch.equal(difference, (old + second) - old)
    assert torch.equal(view, first.t())
    assert shares(view, first)


def test_old_value_survives_the_write(compiler: Compiler) -> None:
    """old = x.clone(); x.neg_(); return old: functional form returns the input's value."""
    b = GraphBuilder()
    x = b.input(f32(4, 6))
    b.output(b.op("neg", x), mutates=0)
    b.output(x)
    value = torch.randn(4, 6)
    before = value.clone()
    _, old = bind(plan_of(b.build(), compiler))([value], 1)
    assert torch.equal(value, -before)
    assert torch.equal(old, before)


def test_swapped_inputs(compiler: Compiler) -> None:
    b = GraphBuilder()
    x, y = b.input(f32(4, 6)), b.input(f32(4, 6))
    b.output(y, mutates=0)
    b.output(x, mutates=1)
    b.output(b.op("add", x, y))
    first, second = torch.randn(2, 4, 6)
    a, c = first.clone(), second.clone()
    bind(plan_of(b.build(), compiler))([first, second], 1)
    assert torch.equal(first, c)
    assert torch.equal(second, a)


def test_buffer_that_counts(compiler: Compiler) -> None:
    """A bound buffer that each run adds to is read anew each time."""
    b = GraphBuilder()
    x = b.input(f32(2, 2))
    state = b.input(f32(2, 2), InputKind.BUFFER)
    after = b.op("add", state, x)
    b.output(after, mutates=1)
    b.output(b.op("neg", after))
    plan = plan_of(b.build(), compiler)
    total, one = torch.zeros(2, 2), torch.ones(2, 2)
    bound = bind(plan, total)
    for count in range(1, 4):
        _, result = bound([one], 1)
        assert torch.equal(result, -count * one)
    assert torch.equal(total, 3 * one)
    assert bound.snapshots == frozenset()


def test_view_that_torch_makes_is_not_handed_out(compiler: Compiler) -> None:
    """x.t().clone() whose copy was optimised away, run by torch: still no alias."""
    b = GraphBuilder()
    x = b.input(f32(4, 6))
    b.output(b.op("permute", x, dims=(1, 0)))
    value = torch.randn(4, 6)
    (result,) = bind(plan_of(b.build(), compiler, framework=(0,)))([value], 1)
    assert torch.equal(result, value.t())
    assert not shares(result, value)


def test_one_value_returned_twice_is_one_tensor(compiler: Compiler) -> None:
    b = GraphBuilder()
    x = b.input(f32(4, 6))
    y = b.op("neg", x)
    b.output(y)
    b.output(y)
    first, second = bind(plan_of(b.build(), compiler))([torch.randn(4, 6)], 1)
    assert first is second

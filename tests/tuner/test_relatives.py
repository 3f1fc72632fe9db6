"""Nests of one product, and what moves through memory in a program."""

from __future__ import annotations

import pytest

from kernel_gen.codegen.registry import templates
from kernel_gen.errors import Refusal
from kernel_gen.fusion.candidates import candidates
from kernel_gen.fusion.library import framework_group
from kernel_gen.fusion.lower import Lowered, lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.ir.types import TensorType
from tuner.covers.traffic import Traffic
from tuner.nests.costs import outputs_over_inputs
from tuner.nests.relatives import relatives

TARGET = Target(DeviceKind.CPU, "x86-f1m1", "x86-64-v4", cores=2, vector_bytes=64)
MB = 1 << 20


def product_and_more() -> Graph:
    """relu(x @ w) + r, and a product of another weight."""
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (64, 64)))
    w = b.input(TensorType(DType.F32, (64, 64)), kind=InputKind.PARAMETER)
    v = b.input(TensorType(DType.F32, (64, 32)), kind=InputKind.PARAMETER)
    r = b.input(TensorType(DType.F32, (64, 64)))
    b.output(b.op("add", b.op("relu", b.op("matmul", x, w)), r))
    b.output(b.op("matmul", x, v))
    return b.build()


def test_relatives_make_the_same_product_whatever_stands_behind_it() -> None:
    found = candidates(product_and_more(), templates(TARGET), TARGET).groups
    nests = {candidate.task: candidate.lowered.nest for candidate in found}
    by_nodes = {candidate.group.nodes: candidate.task for candidate in found}
    kin = relatives(nests)
    assert set(kin[by_nodes[0,]]) == {by_nodes[0, 1], by_nodes[0, 1, 2]}
    assert kin[by_nodes[1,]] == kin[by_nodes[3,]] == ()


def chain(elems: int) -> Graph:
    """Three elementwise ops one after another."""
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (elems,)))
    b.output(b.op("tanh", b.op("exp", b.op("relu", x))))
    return b.build()


@pytest.mark.parametrize(
    ("cache_bytes", "moved"),
    [(64 * MB, 0), (17 * MB, 4 * MB), (2 * MB, 8 * MB)],
    ids=["the program fits", "neighbours fit", "nothing fits"],
)
def test_what_the_caches_do_not_hold_until_it_is_used_moves_through_memory(
    cache_bytes: int, moved: int
) -> None:
    program = chain(MB)  # values of 4 MB
    traffic = Traffic(program, cache_bytes, 1e6)
    group = framework_group(program, (0,), Refusal("library", "by the library"))
    assert traffic.us(group) == moved
    assert traffic.is_cached == (moved == 0)


def test_of_a_table_as_much_moves_as_is_read() -> None:
    b = GraphBuilder()
    table = b.input(TensorType(DType.F32, (4 * MB, 4)), kind=InputKind.PARAMETER)
    index = b.input(TensorType(DType.I64, (16,)))
    b.output(b.op("take", table, index, dim=0))
    program = b.build()
    group = framework_group(program, (0,), Refusal("library", "by the library"))
    assert Traffic(program, 64.0, 1e6).us(group) == 16 * (8 + 2 * 16)


def test_results_that_no_kernel_makes_over_their_inputs_are_copied() -> None:
    """x = x - sum(x): only a kernel without the sum can write over x."""
    b = GraphBuilder()
    x = b.input(TensorType(DType.F32, (MB,)))
    b.output(b.op("sub", x, b.op("sum", x, dims=(0,), keepdim=False)), mutates=0)
    program = b.build()
    whole, alone = (make_group(program, nodes) for nodes in ((0, 1), (1,)))
    over = []
    for group in (whole, alone):
        lowered = lower(program, group)
        assert isinstance(lowered, Lowered)
        over.append([lowered.operands[n] for n in outputs_over_inputs(lowered.nest)])
    assert over == [[], list(alone.outputs)]
    traffic = Traffic(program, 64 * MB, 1e6)
    assert [traffic.back_us(g, there) for g, there in zip((whole, alone), over, strict=True)] == [
        2 * 4 * MB,
        0,
    ]

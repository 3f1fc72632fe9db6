"""What the fusion rate counts."""

from __future__ import annotations

from kernel_gen.fusion.apply_rules import apply_rules
from kernel_gen.fusion.group import FrameworkGroup, Group
from kernel_gen.fusion.region import constant_nodes, make_group
from kernel_gen.fusion.rules import load_rules
from kernel_gen.fusion.sharing import Sharing
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.ir.types import TensorType


def _input(b: GraphBuilder, *shape: int, kind: InputKind = InputKind.USER) -> int:
    return b.input(TensorType(DType.F32, shape), kind=kind)


def _library(program: Graph, *nodes: int) -> FrameworkGroup:
    group = make_group(program, nodes)
    return FrameworkGroup(group.nodes, group.inputs, group.outputs, "library", "")


def test_ops_alone_do_not_count_and_views_are_no_ops() -> None:
    b = GraphBuilder()
    y = b.op("relu", _input(b, 4, 6))
    b.output(b.op("reshape", y, shape=(24,)))
    program = b.build()
    assert Sharing(program).rate([make_group(program, (0, 1))]) == 0.0
    assert Sharing(program).rate([_library(program, 0, 1)]) == 0.0


def test_ops_of_one_generated_kernel_count_those_of_a_framework_group_do_not() -> None:
    b = GraphBuilder()
    b.output(b.op("exp", b.op("neg", b.op("relu", _input(b, 4)))))
    program = b.build()
    groups: list[Group] = [make_group(program, (0, 1)), _library(program, 2)]
    assert Sharing(program).rate(groups) == 2 / 3
    assert Sharing(program).rate([_library(program, 0, 1), make_group(program, (2,))]) == 0.0


def test_products_that_a_rule_joined_count_as_what_they_were() -> None:
    b = GraphBuilder()
    x = _input(b, 2, 4, 6)
    for _ in range(3):
        w = _input(b, 6, 6, kind=InputKind.PARAMETER)
        heads = b.op("reshape", b.op("linear", x, w), shape=(2, 4, 2, 3))
        b.output(b.op("exp", heads))
    program = apply_rules(b.build(), load_rules(None)).program
    folded = constant_nodes(program)
    (product,) = [i for i, node in enumerate(program.nodes) if node.op == "linear"]
    alone = [make_group(program, (i,)) for i, n in enumerate(program.nodes) if n.op == "exp"]
    assert Sharing(program, folded).rate([_library(program, product), *alone]) == 3 / 6


def test_a_generated_attention_is_fused_a_library_one_is_not() -> None:
    b = GraphBuilder()
    q, k, v = (_input(b, 1, 2, 5, 4) for _ in range(3))
    b.output(b.op("attention", q, k, v, scale=0.5, causal=False, mask=False))
    program = b.build()
    assert Sharing(program).rate([make_group(program, (0,))]) == 1.0
    assert Sharing(program).rate([_library(program, 0)]) == 0.0


def test_what_is_left_alone_is_what_does_not_count() -> None:
    b = GraphBuilder()
    y = b.op("exp", b.op("neg", b.op("relu", _input(b, 4))))
    b.output(b.op("reshape", y, shape=(2, 2)))
    program = b.build()
    sharing = Sharing(program)
    assert sharing.alone(make_group(program, (0, 1))) == ()
    assert sharing.alone(make_group(program, (2, 3))) == (2,)
    assert sharing.alone(_library(program, 0, 1)) == (0, 1)
    assert Sharing(program, folded=(0,)).alone(_library(program, 0, 1)) == (1,)
    again, last = make_group(program, (1,)), make_group(program, (2, 3))
    both: list[Group] = [make_group(program, (0, 1)), again, last]
    assert sharing.left_alone(both) == [(2, last)]  # neg is computed again, and shares elsewhere
    assert sharing.rate(both) == 2 / 3

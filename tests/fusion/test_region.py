"""Groups of nodes: what they read and write, and what it takes to say so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kernel_gen.errors import Refusal
from kernel_gen.fusion.group import FusionGroup
from kernel_gen.fusion.lower import lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, Node
from kernel_gen.ir.types import TensorType


class Watched(tuple[Node, ...]):
    """Nodes that count how often somebody walks over all of them."""

    walks = 0

    def __iter__(self) -> Iterator[Node]:
        Watched.walks += 1
        return super().__iter__()


def chain(length: int) -> Graph:
    """x, exp(x), exp(exp(x)), …; the second value is returned, too."""
    b = GraphBuilder()
    values = [b.input(TensorType(DType.F32, (4,)))]
    for _ in range(length):
        values.append(b.op("exp", values[-1]))
    b.output(values[1])
    b.output(values[-1])
    return b.build()


def test_a_group_writes_what_others_or_the_caller_need() -> None:
    program = chain(4)
    assert make_group(program, (1, 0)) == FusionGroup((0, 1), (0,), (1, 2))
    assert make_group(program, (1, 2, 3)) == FusionGroup((1, 2, 3), (1,), (4,))
    assert make_group(program, (0, 3)) == FusionGroup((0, 3), (0, 3), (1, 4))


def test_groups_of_one_program_walk_over_it_once() -> None:
    program = chain(50)
    watched = replace(program, nodes=Watched(program.nodes))
    Watched.walks = 0
    groups = [make_group(watched, (i,)) for i in range(50)]
    assert groups == [make_group(program, (i,)) for i in range(50)]
    assert Watched.walks == 1


def test_windows_over_windows_end_before_a_compiler_is_kept_busy_by_them() -> None:
    b = GraphBuilder()
    value = b.input(TensorType(DType.F32, (1, 1, 40, 40)))
    square = {"kernel": (5, 5), "stride": (3, 3), "low": (1, 1), "high": (1, 1)}
    for _ in range(3):
        value = b.op("avg_pool", value, **square)
    b.output(value)
    program = b.build()
    found = lower(program, make_group(program, (0, 1, 2)))
    assert isinstance(found, Refusal)
    assert found.code == "group-too-large"
    assert not isinstance(lower(program, make_group(program, (2,))), Refusal)

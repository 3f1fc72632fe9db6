"""Why two groups of a cover are two."""

from __future__ import annotations

import pytest
from fusion_cases import parameter, tensor

from kernel_gen.fusion.candidates import Constraints, candidates
from kernel_gen.fusion.group import FrameworkGroup, FusionPlan
from kernel_gen.fusion.neighbours import Union, neighbours, union_of
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.target import DeviceKind, Target

TARGET = Target(DeviceKind.CPU, "x86-f1m1", "x86-64-v4", cores=2, vector_bytes=64)


class TakesAll:
    name = "all"

    def refuse(self, nest, target):
        return None


def two_layers():
    """relu(x @ w) @ v, then relu: 0 linear, 1 relu, 2 linear, 3 relu."""
    b = GraphBuilder()
    x = b.input(tensor(4, 6))
    for _ in range(2):
        x = b.op("relu", b.op("linear", x, parameter(b, 6, 6)))
    b.output(x)
    return b.build()


def asked(program, first, second, constraints=None) -> Union:
    groups = make_group(program, first), make_group(program, second)
    return union_of(program, *groups, (TakesAll(),), TARGET, constraints or Constraints(), "fast")


def test_two_that_may_share_a_kernel_name_the_task_of_the_search():
    program = two_layers()
    union = asked(program, (0,), (1,))
    assert union.refusal is None
    tasks = candidates(program, (TakesAll(),), TARGET).tasks()
    assert union.task in tasks


@pytest.mark.parametrize(
    ("first", "second", "code"),
    [((0,), (2,), "two-products"), ((0, 1), (2, 3), "two-products"), ((1,), (3,), "not-convex")],
)
def test_what_forbids_it_is_said(first, second, code):
    union = asked(two_layers(), first, second)
    assert union.refusal is not None
    assert (union.refusal.code, union.task) == (code, None)


def test_a_users_rule_is_named():
    constraints = Constraints(apart=frozenset({frozenset({0, 1})}))
    union = asked(two_layers(), (0,), (1,), constraints)
    assert union.refusal is not None
    assert union.refusal.code == "rule-never-fuse"


def test_neighbours_read_from_each_other():
    program = two_layers()
    once = FrameworkGroup((), (), make_group(program, (0,)).inputs, "constant", "runs once")
    cover = FusionPlan((*(make_group(program, (n,)) for n in range(4)), once))
    assert neighbours(cover, 1) == (0, 2)
    assert neighbours(cover, 0) == (1,)

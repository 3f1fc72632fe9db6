"""The cover solver against brute force, and what every cover must satisfy."""

from __future__ import annotations

import itertools
import random

import pytest

from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.dag import Dag, bits, mask_of
from kernel_gen.fusion.group import FrameworkGroup, FusionGroup
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.ir.types import TensorType
from tuner.covers.problem import Problem, for_sharing
from tuner.covers.sections import by_sections
from tuner.covers.solver import CoverOption, Overheads, _choice, _Solver, best_covers

T = TensorType(DType.F32, (4,))
FREE = Overheads(0.0, 0.0, 0.0)


def random_program(rng: random.Random, count: int) -> Graph:
    b = GraphBuilder()
    values = [b.input(T), b.input(T)]
    for _ in range(count):
        if rng.random() < 0.5:
            values.append(b.op("exp", rng.choice(values[-4:])))
        else:
            values.append(b.op("add", rng.choice(values[-4:]), rng.choice(values[-4:])))
    b.output(values[-1])
    if rng.random() < 0.5:
        b.output(values[-2])
    return b.build()


def random_options(rng: random.Random, program: Graph) -> list[CoverOption]:
    """Single nodes, and convex sets with random costs, some without their cheap outputs."""
    dag, count = Dag(program), len(program.nodes)
    sets = {1 << i for i in range(count)}
    while len(sets) < count + 6:
        sets.add(dag.closure(mask_of(rng.sample(range(count), rng.randint(2, 3)))))
    options = []
    for mask in sorted(sets):
        group = make_group(program, tuple(bits(mask)))
        if not group.outputs:
            continue
        options.append(CoverOption(group, float(rng.randint(1, 30))))
        if len(group.outputs) > 1 and rng.random() < 0.5:
            less = FusionGroup(group.nodes, group.inputs, group.outputs[-1:])
            options.append(CoverOption(less, float(rng.randint(1, 30))))
    return options


def is_cover(program: Graph, groups) -> bool:
    """Whether the groups can run in some order, each value made once, each one read by somebody."""
    made = [v for group in groups for v in group.outputs]
    if len(made) != len(set(made)):
        return False
    read = {v for group in groups for v in group.inputs} | {o.value for o in program.outputs}
    if any(not read & set(group.outputs) for group in groups):
        return False
    have, waiting = {i.value for i in program.inputs}, list(groups)
    while waiting:
        ready = [g for g in waiting if have >= set(g.inputs)]
        if not ready:
            return False
        have |= {v for g in ready for v in g.outputs}
        waiting = [g for g in waiting if g not in ready]
    return have >= {o.value for o in program.outputs}


def brute_force(program: Graph, options: list[CoverOption]) -> list[float]:
    """Costs of all covers, ascending."""
    found = []
    for size in range(1, len(program.nodes) + 1):
        for chosen in itertools.combinations(options, size):
            if is_cover(program, [option.group for option in chosen]):
                found.append(sum(option.cost_us for option in chosen))
    return sorted(found)


@pytest.mark.parametrize("seed", range(12))
def test_best_covers_equal_brute_force(seed):
    rng = random.Random(seed)
    program = random_program(rng, 5)
    options = random_options(rng, program)
    expected = brute_force(program, options)[:4]
    covers = best_covers(program, options, k=4, overheads=FREE)
    assert [cover.cost_us for cover in covers] == pytest.approx(expected)
    for cover in covers:
        have = {i.value for i in program.inputs}
        assert is_cover(program, cover.plan.groups)
        for group in cover.plan.groups:
            assert have >= set(group.inputs)
            have |= set(group.outputs)


def crossing() -> tuple[Graph, list[CoverOption]]:
    """Two groups that are convex alone and wait for each other together."""
    b = GraphBuilder()
    x, y = b.input(T), b.input(T)
    a1, b1 = b.op("exp", x), b.op("exp", y)
    b.output(b.op("add", a1, b1))
    b.output(b.op("mul", b1, a1))
    program = b.build()
    cheap = [make_group(program, (0, 2)), make_group(program, (1, 3))]
    singles = [make_group(program, (i,)) for i in range(4)]
    return program, [CoverOption(g, 1.0) for g in cheap] + [CoverOption(g, 5.0) for g in singles]


def test_groups_that_wait_for_each_other_are_no_cover():
    program, options = crossing()
    (cover,) = best_covers(program, options)
    assert [group.nodes for group in cover.plan.groups] in (
        [(0,), (1, 3), (2,)],
        [(1,), (0, 2), (3,)],
    )


def test_forbidden_groups_and_overheads_change_the_choice():
    b = GraphBuilder()
    x = b.input(T)
    b.output(b.op("exp", b.op("exp", x)))
    program = b.build()
    fused, first, second = (make_group(program, nodes) for nodes in ((0, 1), (0,), (1,)))
    options = [CoverOption(fused, 5.0), CoverOption(first, 2.0), CoverOption(second, 2.0)]
    assert best_covers(program, options, overheads=FREE)[0].chosen == (1, 2)
    assert best_covers(program, options, overheads=Overheads(2.0, 0.0))[0].chosen == (0,)
    (cover,) = best_covers(program, options, forbidden=[first])
    assert cover.plan.groups == (fused,)
    with pytest.raises(InvalidInput, match="no option produces value"):
        best_covers(program, options, forbidden=[first, fused])


def test_a_short_op_shares_where_that_costs_little() -> None:
    """Its own time is too short for a share of it to count."""
    b = GraphBuilder()
    x = b.op("exp", b.input(T))
    b.output(b.op("exp", b.op("exp", b.op("exp", x))))
    program = b.build()
    options = [
        CoverOption(make_group(program, nodes), cost)
        for nodes, cost in [((0, 1, 2), 100.0), ((3,), 0.1), ((0, 1), 70.0), ((2, 3), 31.0)]
    ]
    assert best_covers(program, options)[0].chosen == (0, 1)
    assert best_covers(program, options, overheads=for_sharing(100.0, 4))[0].chosen == (2, 3)
    dear = [*options[:3], CoverOption(options[3].group, 32.0)]
    assert best_covers(program, dear, overheads=for_sharing(100.0, 4))[0].chosen == (0, 1)


def test_constant_nodes_come_first_and_cost_nothing():
    b = GraphBuilder()
    x = b.input(T)
    w = b.input(T, kind=InputKind.PARAMETER)
    b.output(b.op("add", x, b.op("exp", w)))
    program = b.build()
    group = FusionGroup((1,), (0, 2), (3,))
    (cover,) = best_covers(program, [CoverOption(group, 1.0)], overheads=FREE)
    constant, kernel = cover.plan.groups
    assert isinstance(constant, FrameworkGroup)
    assert constant.is_constant
    assert (constant.nodes, constant.outputs) == ((0,), (2,))
    assert kernel == group
    assert cover.cost_us == 1.0


def test_framework_nodes_without_readers_still_run_in_order():
    b = GraphBuilder()
    x = b.input(T)
    given = {"out_types": (T,), "target": "aten.rand", "args": (), "code": "c", "sentence": "s"}
    b.op("framework", x, **given)
    b.op("framework", x, **given)
    b.output(b.op("exp", x))
    program = b.build()
    options = [CoverOption(FrameworkGroup((i,), (0,), (i + 1,), "c", "s"), 1.0) for i in (1, 0)] + [
        CoverOption(make_group(program, (2,)), 1.0)
    ]
    (cover,) = best_covers(program, options)
    assert [group.nodes for group in cover.plan.groups] == [(0,), (1,), (2,)]


def test_a_program_without_nodes_is_covered_by_no_groups():
    b = GraphBuilder()
    b.output(b.input(T))
    (cover,) = best_covers(b.build(), [], k=3)
    assert (cover.plan.groups, cover.cost_us, cover.chosen) == ((), 0.0, ())


def test_nothing_is_printed(capfd):
    program, options = crossing()
    best_covers(program, options, k=3)
    assert capfd.readouterr().out == ""


def test_a_long_program_has_a_cover_before_the_solver_has_thought() -> None:
    b = GraphBuilder()
    value = b.input(T)
    for number in range(400):
        value = b.op(("exp", "relu", "neg")[number % 3], value)
    b.output(value)
    program = b.build()
    options = [
        CoverOption(make_group(program, tuple(range(first, min(first + size, 400)))), 1.0 * size)
        for size in (1, 2, 3)
        for first in range(400)
    ]
    start = Problem(program, options, (), FREE).start()
    assert start is not None
    assert is_cover(program, [options[p].group for p in start])
    assert len(start) <= 400 / 3 + 1  # three nodes cost a node as little as one, and are fewer
    (found,) = best_covers(program, options, seconds=0.0)
    assert is_cover(program, found.plan.groups)


def test_a_start_runs_each_framework_node_once() -> None:
    rng = random.Random(5)
    for _ in range(20):
        program = random_program(rng, 8)
        options = random_options(rng, program)
        start = Problem(program, options, (), FREE).start()
        if start is not None:
            assert is_cover(program, [options[p].group for p in start])


def test_what_is_chosen_by_sections_is_a_cover() -> None:
    rng = random.Random(6)
    solved = 0
    for _ in range(40):
        program = random_program(rng, 16)
        problem = Problem(program, random_options(rng, program), (), FREE)
        chosen = by_sections(problem, 10.0, _choice, nodes=5)
        if chosen is None:
            continue  # a section whose values only an option across its cut makes
        solved += 1
        found = problem.cover(chosen)
        assert is_cover(program, found.plan.groups)
        (best,) = best_covers(program, problem.options, overheads=FREE)
        assert best.cost_us <= found.cost_us
    assert solved > 30


def test_equal_sections_are_solved_once() -> None:
    b = GraphBuilder()
    value = b.input(T)
    for number in range(400):
        value = b.op(("exp", "relu", "neg", "abs")[number % 4], value)
    b.output(value)
    program = b.build()
    options = [
        CoverOption(make_group(program, tuple(range(first, min(first + size, 400)))), 2.0 + size)
        for size in (1, 2, 3)
        for first in range(400)
    ]
    problem, calls = Problem(program, options, (), FREE), []

    def solve(part: Problem, seconds: float) -> list[int] | None:
        calls.append(part)
        return _choice(part, seconds)

    chosen = by_sections(problem, 60.0, solve, nodes=16)
    assert chosen is not None
    assert is_cover(program, [problem.options[p].group for p in chosen])
    assert len(calls) <= 3
    assert len(chosen) <= 160


def test_a_choice_to_begin_with_is_bettered() -> None:
    program = random_program(random.Random(7), 12)
    problem = Problem(program, random_options(random.Random(7), program), (), FREE)
    (best,) = best_covers(program, problem.options, overheads=FREE)
    solver = _Solver(problem, 10.0)
    solver.begin_with([*range(len(program.nodes))])
    found = solver.next_cover(required=True)
    assert found is not None
    assert problem.cover(found).cost_us == pytest.approx(best.cost_us)

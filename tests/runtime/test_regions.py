"""Kernels that share a team of threads: where they wait for each other, and what comes out."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from kernel_gen.errors import InvalidValues
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.ir.types import TensorType, ValueDomain
from kernel_gen.runtime import driver_source, regions
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.plan import ArenaSlot, Kernel, Layout, Plan
from kernel_gen.runtime.regions import Memory, Region, Turn
from kernel_gen.runtime.torch_glue import TorchPlan
from tests.runtime.small_plans import f32, groups_of
from tests.runtime.test_assembled_programs import unfused_plan

I64 = DType.I64


@pytest.fixture(params=["functions", "tables"])
def form(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "tables":
        monkeypatch.setattr(driver_source, "_LONG", 0)


def sums(*pairs: tuple[int, int], inputs: int = 2) -> Graph:
    """Sums of two earlier values each; the last one is the result."""
    b = GraphBuilder()
    values = [b.input(f32(4, 6)) for _ in range(inputs)]
    for first, second in pairs:
        values.append(b.op("add", values[first], values[second]))
    b.output(values[-1])
    return b.build()


def teams(graph: Graph, alone: Sequence[int] = (), **source: object) -> list[Kernel]:
    """A kernel per node, for a team but for those `alone`."""
    _, kernels = groups_of(graph)
    return [
        replace(k, source=replace(k.source, team=None if i in alone else "t", **source))
        for i, k in enumerate(kernels)
    ]


def cut(kernels: Sequence[Kernel], layout: Layout | None = None) -> tuple[Region, ...]:
    memory = Memory.of(layout or Layout(buffers=tuple(range(2, 999))))
    return regions.regions(kernels, range(len(kernels)), memory)


def waits(found: Sequence[Region]) -> list[int]:
    """The kernels that the one team waits before."""
    (region,) = (region for region in found if region.team)
    return [turn.kernel for turn in region.turns if turn.waits]


def test_a_kernel_waits_for_what_it_reads() -> None:
    graph = sums((0, 1), (2, 0), (0, 1), (1, 1), (3, 4))
    assert waits(cut(teams(graph))) == [1, 4]


def test_the_ends_are_left_to_the_caller() -> None:
    graph = sums((0, 1), (2, 1), (3, 1), (4, 1), (5, 1))
    found = cut(teams(graph, alone=(0, 2, 4)))
    assert found == (
        Region((Turn(0),), team=False),
        Region((Turn(1), Turn(2, waits=True), Turn(3, waits=True)), team=True),
        Region((Turn(4),), team=False),
    )
    assert not any(region.team for region in cut(teams(graph, alone=range(5))))


def test_the_first_thread_does_not_wait_for_itself() -> None:
    graph = sums((0, 1), (0, 1), (3, 1), (4, 1))
    assert waits(cut(teams(graph, alone=(1, 2)))) == [3]


def test_memory_that_is_used_again_is_waited_for() -> None:
    graph = sums((0, 1), (0, 1), (0, 1))
    slots = (ArenaSlot(2, 0, 96), ArenaSlot(3, 128, 96), ArenaSlot(4, 64, 96))
    apart = (*slots[:2], ArenaSlot(4, 256, 96))
    assert waits(cut(teams(graph), Layout(arena=apart))) == []
    assert waits(cut(teams(graph), Layout(arena=slots))) == [2]


def test_whoever_writes_over_an_input_waits() -> None:
    """Other inputs may be views of the one that is written."""
    graph = sums((0, 1), (0, 0), (1, 1))
    buffers = tuple(range(2, 5))
    assert waits(cut(teams(graph), Layout(buffers=buffers))) == []
    assert waits(cut(teams(graph), Layout(buffers=buffers, overwrites=((3, 0),)))) == [1, 2]


@pytest.mark.parametrize(
    ("shared", "own", "expected"), [(0, 64, []), (64, 0, [1, 2]), (64, 64, [1, 2])]
)
def test_threads_wait_before_they_share_scratch(shared: int, own: int, expected: list[int]) -> None:
    graph = sums((0, 1), (0, 0), (1, 1))
    kernels = teams(graph, shared_bytes=shared, scratch_bytes=own)
    assert waits(cut(kernels)) == expected
    none = replace(kernels[1], source=replace(kernels[1].source, shared_bytes=0, scratch_bytes=0))
    assert 1 not in waits(cut([kernels[0], none, kernels[2]]))


def test_other_scratch_may_be_another_thread_s() -> None:
    small, large = teams(sums((0, 1), (0, 0)), scratch_bytes=64)
    large = replace(large, source=replace(large.source, scratch_bytes=128))
    assert waits(cut([small, large])) == [1]


def test_long_runs_are_cut() -> None:
    length = regions._LONGEST_RUN
    found = cut(teams(sums(*[(0, 1)] * (2 * length + 1))))
    assert waits(found) == [length, 2 * length]


def layers() -> Graph:
    """Two layers of norm, product, activation and residual, and a softmax."""
    b = GraphBuilder()
    x = b.input(f32(24, 32))
    for _ in range(2):
        w = b.input(f32(32, 32), InputKind.PARAMETER)
        y = b.op("layer_norm", x, axes=1, eps=1e-5, weight=False, bias=False)
        x = b.op("add", x, b.op("relu", b.op("linear", y, w)))
    b.output(b.op("softmax", x, dim=1))
    return b.build()


def eager(x: torch.Tensor, weights: Sequence[torch.Tensor]) -> torch.Tensor:
    for w in weights:
        x = x + torch.relu(torch.nn.functional.layer_norm(x, (32,)) @ w.t())
    return torch.softmax(x, 1)


PATTERNS = {
    "all": "all " * 9,
    "one": "one " * 9,
    "alternating": "one all " * 5,
    "products on one": "all one all all all one all all all",
    "one at the end": "all all all all all all one one one",
}


def mixed(compiler: Compiler, pattern: str) -> Plan:
    return unfused_plan(layers(), compiler, threads=dict(enumerate(PATTERNS[pattern].split())))


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("pattern", PATTERNS)
def test_teams_of_changing_sizes(compiler: Compiler, pattern: str) -> None:
    bound = TorchPlan(mixed(compiler, pattern)).bind(weights := [torch.randn(32, 32)] * 2)
    for threads in (2, 1, 3, 2, 5, 1, 2):
        for _ in range(4):
            x = torch.randn(24, 32)
            (found,) = bound([x], threads)
            torch.testing.assert_close(found, eager(x, weights), rtol=1e-4, atol=1e-5)


def test_one_region_per_run_of_kernels(compiler: Compiler) -> None:
    plan = mixed(compiler, "alternating")
    assert [k.source.team is not None for k in plan.kernels] == [n % 2 == 1 for n in range(9)]
    source = driver_source.driver_source(plan.program, plan.kernels, plan.layout)
    assert source.files[0][1].count("gaf_in_team(gaf_share") == 1


def test_a_library_call_ends_the_region(compiler: Compiler) -> None:
    plan = unfused_plan(layers(), compiler, (3,), dict.fromkeys(range(9), "all"))
    assert len(plan.layout.segments) == 3
    bound = TorchPlan(plan).bind(weights := [torch.randn(32, 32)] * 2)
    for threads in (2, 1, 3):
        x = torch.randn(24, 32)
        torch.testing.assert_close(bound([x], threads)[0], eager(x, weights), rtol=1e-4, atol=1e-5)


def test_callers_do_not_share_a_team(compiler: Compiler) -> None:
    bound = TorchPlan(mixed(compiler, "products on one")).bind(weights := [torch.randn(32, 32)] * 2)

    def call(seed: int) -> None:
        x = torch.randn(24, 32, generator=torch.Generator().manual_seed(seed))
        for _ in range(10):
            (found,) = bound([x], 2)
            torch.testing.assert_close(found, eager(x, weights), rtol=1e-4, atol=1e-5)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, range(12)))


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_failing_kernel_leaves_the_team_whole(compiler: Compiler, threads: int) -> None:
    """Some threads of the second kernel meet a wrong position, the others do not."""
    b = GraphBuilder()
    x, table = b.input(f32(64, 16)), b.input(f32(9, 16))
    rows = b.input(TensorType(I64, (64,)), domain=ValueDomain(0, 8))
    y = b.op("take", b.op("neg", table), rows, dim=0)
    b.output(b.op("softmax", b.op("add", x, y), dim=1))
    graph = b.build()
    plan = unfused_plan(graph, compiler, threads=dict.fromkeys(range(len(graph.nodes)), "all"))
    bound = TorchPlan(plan).bind([])
    x, table = torch.randn(64, 16), torch.randn(9, 16)
    for place in range(0, 64, 7):
        rows = torch.randint(0, 9, (64,))
        wrong = rows.clone()
        wrong[place] = 9
        with pytest.raises(InvalidValues, match="outside"):
            bound([x, table, wrong], threads)
        (found,) = bound([x, table, rows], threads)
        torch.testing.assert_close(found, torch.softmax(x - table[rows], 1))

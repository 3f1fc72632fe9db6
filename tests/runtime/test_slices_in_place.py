"""Slices that a program writes into an input: a kernel over that input writes only them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_gen.codegen.cpu.changed import changed_part
from kernel_gen.codegen.flat.linear import flatten
from kernel_gen.codegen.flat.simplify import simplify
from kernel_gen.frontend import capture
from kernel_gen.frontend.captured import Captured
from kernel_gen.fusion.lower import Lowered, lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.graph import Graph
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.torch_glue import TorchPlan
from tests.runtime.test_in_place import plan_of

Tensor = torch.Tensor
SHAPE = (3, 151, 157)  # of small or even extents, slices are nests of many pieces


def only(function: Callable[..., Any], *args: Tensor) -> tuple[Captured, tuple[int, ...]]:
    """The program, and the nodes of its first output."""
    captured = capture(function, args)
    return captured, tuple(range(len(captured.graph.nodes)))


def box(graph: Graph, nodes: tuple[int, ...]) -> dict[str, object] | None:
    lowered = lower(graph, make_group(graph, nodes))
    assert isinstance(lowered, Lowered)
    nest = simplify(flatten(lowered.nest))
    outputs = [n for n, buffer in enumerate(nest.buffers) if buffer.replaces is not None]
    source = nest.buffers[outputs[0]].replaces
    assert source is not None
    part = changed_part(nest, source, outputs[0])
    return None if part is None else {axis.name: axis.extent for axis in part.axes}


def middle(x: Tensor, y: Tensor) -> None:
    x[:, 5:7] = y[:, :2]


def front(x: Tensor, y: Tensor) -> None:
    x[:, :3] = y[:, 1:4] * 2


def last(x: Tensor, y: Tensor) -> None:
    x[:, -1] = y[:, 0] + 1


def columns(x: Tensor, y: Tensor) -> None:
    x[..., 2:9] = y[..., 4:11]


def corner(x: Tensor, y: Tensor) -> None:
    x[:, 5:9, 2:9] = y[:, 5:9, 2:9]


def overlapping(x: Tensor, y: Tensor) -> None:
    x[:, 4:8] = y[:, 4:8]
    x[:, 6:11] = y[:, 1:6]


def apart(x: Tensor, y: Tensor) -> None:
    x[:, 2:4] = y[:, :2]
    x[:, 12:15] = 0.5


def all_of_it(x: Tensor, y: Tensor) -> None:
    x[:, :5] = y[:, :5]
    x[:, 5:] = x[:, 5:] + 1


WRITES = [middle, front, last, columns, corner, overlapping, apart, all_of_it]


def test_what_changes_is_found() -> None:
    given = torch.zeros(SHAPE), torch.zeros(SHAPE)
    sizes = {w.__name__: box(*unpacked(w, *given)) for w in WRITES}
    assert sorted(size for size in (sizes["middle"] or {}).values()) == [2, 3, 157]
    assert sorted(size for size in (sizes["front"] or {}).values()) == [3, 3, 157]
    assert 7 in (sizes["columns"] or {}).values()
    assert sizes["all_of_it"] is None


def unpacked(write: Callable[..., None], *given: Tensor) -> tuple[Graph, tuple[int, ...]]:
    captured, nodes = only(write, *given)
    return captured.graph, nodes


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("write", WRITES)
def test_slices_are_written_as_eager_does(
    write: Callable[..., None], dtype: torch.dtype, compiler: Compiler
) -> None:
    def draw() -> Tensor:
        return torch.randint(-9, 9, SHAPE).to(dtype)

    captured, _ = only(write, draw(), draw())
    plan = plan_of(captured.graph, compiler)
    assert plan.layout.overwrites
    bound = TorchPlan(plan).bind([])
    for threads in (1, 3):
        ours = draw()
        theirs, place, y = ours.clone(), ours.data_ptr(), draw()
        bound([ours, y], threads)
        write(theirs, y)
        assert torch.equal(ours, theirs)
        assert ours.data_ptr() == place


@pytest.mark.parametrize("write", WRITES[:-1])
def test_elements_outside_are_not_touched(write: Callable[..., None], compiler: Compiler) -> None:
    """Bits of a NaN would change on their way through a register of another type."""
    captured, _ = only(write, torch.randn(SHAPE), torch.randn(SHAPE))
    bound = TorchPlan(plan_of(captured.graph, compiler)).bind([])
    ours = torch.full(SHAPE, 0x7F800001, dtype=torch.int32).view(torch.float32)
    theirs, y = ours.clone(), torch.randn(SHAPE)
    bound([ours, y], 2)
    write(theirs, y)
    assert torch.equal(ours.view(torch.int32), theirs.view(torch.int32))


SPANS = st.tuples(st.integers(0, 19), st.integers(1, 20)).map(
    lambda pair: (min(pair[0], pair[1] - 1), max(pair[0] + 1, pair[1]))
)


@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(spans=st.lists(SPANS, min_size=1, max_size=3))
def test_slices_in_any_order(spans: list[tuple[int, int]], compiler: Compiler) -> None:
    def write(x: Tensor, y: Tensor) -> None:
        for number, (low, high) in enumerate(spans):
            x[:, low:high] = y[:, low:high] * (number + 1)

    captured, _ = only(write, torch.randn(SHAPE), torch.randn(SHAPE))
    bound = TorchPlan(plan_of(captured.graph, compiler)).bind([])
    ours, y = torch.randn(SHAPE), torch.randn(SHAPE)
    theirs = ours.clone()
    bound([ours, y], 2)
    write(theirs, y)
    assert torch.equal(ours, theirs)

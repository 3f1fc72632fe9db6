"""Preparing a search and laying out its plan take steps in proportion to the program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import kernel_gen
from kernel_gen.codegen.registry import templates
from kernel_gen.fusion.candidates import Limits, candidates
from kernel_gen.fusion.group import FusionPlan
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Graph, InputKind
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.ir.types import TensorType
from kernel_gen.runtime.layout import plan_layout
from tuner.covers.problem import Problem
from tuner.covers.sections import by_sections
from tuner.covers.solver import CoverOption, Overheads
from tuner.tasks import make_tasks

_OURS = str(Path(kernel_gen.__file__).parents[1])
T = TensorType(DType.F32, (8, 16))
ROW = TensorType(DType.F32, (16,))
TARGET = Target(DeviceKind.CPU, "x86-f1m1", "x86-64-v4", cores=2, vector_bytes=64)


def layers(count: int) -> Graph:
    b = GraphBuilder()
    x = b.input(T)
    for _ in range(count):
        y = b.op("mul", b.op("exp", x), b.input(ROW, InputKind.PARAMETER))
        x = b.op("add", b.op("neg", b.op("tanh", y)), x)
    b.output(x)
    return b.build()


def steps(work: Callable[[], object]) -> int:
    """Lines of our code that run, those of loops as often as they do."""
    count = 0

    def called(frame: FrameType, event: str, _: object) -> object:
        return line if frame.f_code.co_filename.startswith(_OURS) else None

    def line(frame: FrameType, event: str, _: object) -> object:
        nonlocal count
        count += event == "line"
        return line

    before = sys.gettrace()
    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def prepared(program: Graph) -> None:
    found = candidates(program, templates(TARGET), TARGET, limits=Limits(groups=10))
    tasks = make_tasks(program, found, strict=False)
    options = [CoverOption(c.group, 1.0) for c in found.groups]
    options += [CoverOption(group, 2.0) for group in found.library]
    problem = Problem(tasks.program, options, (), Overheads())
    chosen = by_sections(problem, 60.0, lambda part, seconds: part.start())
    assert chosen is not None
    problem.cover(chosen)
    plan_layout(program, FusionPlan(found.library), ())


@pytest.mark.slow
def test_four_times_the_program_takes_four_times_the_steps() -> None:
    prepared(layers(3))  # what is made at the first use
    few, many = layers(20), layers(80)
    small, large = steps(lambda: prepared(few)), steps(lambda: prepared(many))
    assert large < 4.6 * small

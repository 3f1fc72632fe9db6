"""What it costs to pack the operands in each call. What is packed at load costs nothing."""

from __future__ import annotations

import math

from cost_models.product.subject import Subject
from cost_models.product.vectors import (
    LOOP,
    STORE,
    cycles_per_vector,
    stride,
    unit_axis,
    vectors_along,
    vectors_of_columns,
)
from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.runs import runs_of
from kernel_gen.codegen.cpu.matmul.tiling import Operand
from kernel_gen.ir.loopnest import Axis, Load, Reduce

_LISTED = 4.0  # estimate: an address, its bounds, a store
_NARROW = 1.0  # estimate: two vectors of fp32 to one of bf16, or two of bf16 side by side


def left_cycles(subject: Subject) -> float:
    """Cycles to pack all rows of all products once, or to list their pointers; 0 where they are
    read in place."""
    p, t = subject.problem, subject.tiling
    if t.left is Operand.POINTERS:
        return p.b * p.m * runs_of(p) * _LISTED
    if t.left is not Operand.CALL:
        return 0.0
    across = _lies_across(p)
    own = cycles_per_vector(p, p.left, unit_axis(p.rows if across else p.depth), t.lanes)
    own += _stored(subject, across)
    across_rows = p.k * math.ceil(p.m / t.lanes)
    count = across_rows if across else p.m * vectors_along(p.depth, t.lanes)
    passes = 1 + sum(isinstance(p.nest.statements[s], Reduce) for s in p.left)
    return p.b * count * own * passes


def right_cycles(subject: Subject) -> float:
    """The same for the columns of all sections."""
    p, t = subject.problem, subject.tiling
    if t.right is not Operand.CALL:
        return 0.0
    return sum(_section_cycles(subject, section) for section in range(p.sections))


def _section_cycles(subject: Subject, section: int) -> float:
    p, t = subject.problem, subject.tiling
    along_depth = _runs_along(p, p.right[section], p.depth, p.cols)
    along_depth = along_depth and not _steps_of_two(subject, p.right[section])
    axis = unit_axis(p.depth if along_depth else p.cols)
    own = cycles_per_vector(p, p.right[section], axis, t.lanes) + _stored(subject, along_depth)
    by_columns = p.k * vectors_of_columns(p, t)
    return p.b * own * (p.n * vectors_along(p.depth, t.lanes) if along_depth else by_columns)


def _stored(subject: Subject, transposed: bool) -> float:
    """Cycles of a vector's way out: transposed in registers with its neighbours by one shuffle for
    each halving of the lanes, narrowed, stored."""
    t = subject.tiling
    shuffles = math.log2(t.lanes) if transposed else 0.0
    return STORE + LOOP + shuffles + (_NARROW if t.pairs else 0.0)


def _lies_across(problem: Problem) -> bool:
    reduced = any(isinstance(problem.nest.statements[s], Reduce) for s in problem.left)
    one = len(problem.rows) == 1
    return one and not reduced and _runs_along(problem, problem.left, problem.rows, problem.depth)


def _steps_of_two(subject: Subject, positions: tuple[int, ...]) -> bool:
    """Whether every second element along the columns is nearer than few along the depth."""
    p = subject.problem
    loads = [p.nest.statements[s] for s in positions]
    second = any(stride(load, unit_axis(p.cols)) == 2 for load in loads if isinstance(load, Load))
    return second and extent(p.depth[-1]) < subject.tiling.lanes


def _runs_along(
    problem: Problem, positions: tuple[int, ...], axes: tuple[Axis, ...], other: tuple[Axis, ...]
) -> bool:
    """Whether memory runs along the last of `axes` and of no `other` (as the generator asks)."""
    loads = [problem.nest.statements[s] for s in positions]
    steps = [
        (stride(load, unit_axis(axes)), stride(load, unit_axis(other)))
        for load in loads
        if isinstance(load, Load)
    ]
    return any(own == 1 for own, _ in steps) and not any(far == 1 for _, far in steps)

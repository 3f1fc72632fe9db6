"""Which results a plan makes in the memory of the input that they replace.

Nothing may read the input's old elements after that. Nor may a call fail then, in general: the
input would be half written, and the model, which runs instead of a plan that failed, would write it
once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kernel_gen.fusion.group import FrameworkGroup, FusionPlan
from kernel_gen.fusion.write_back import written_back, written_by_torch
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.loopnest import Compute, LoopNest, Statement, indices
from kernel_gen.runtime.plan import Kernel

_DIVISIONS = frozenset(("floor_div", "remainder", "fmod"))


@dataclass(frozen=True, slots=True)
class Step:
    """One group of the cover as the layout sees it: where it stands, what it reads and writes."""

    kernel: int | None
    framework: int | None
    reads: tuple[int, ...]
    writes: tuple[int, ...]


def overwrites(
    program: Graph, cover: FusionPlan, steps: Sequence[Step], kernels: Sequence[Kernel]
) -> tuple[tuple[int, int], ...]:
    """(value, input) pairs: results of torch's operators, then of kernels."""
    return (*_by_torch(program, cover, steps, kernels), *_by_kernels(program, steps, kernels))


def _by_torch(
    program: Graph, cover: FusionPlan, steps: Sequence[Step], kernels: Sequence[Kernel]
) -> list[tuple[int, int]]:
    """Elements written over may be written again by the model. But what eager does before, and
    fails at, must not come after: then they would not be written at all."""
    found = written_by_torch(program)
    made: list[int] = []
    for position, step in enumerate(steps):
        for node in _framework_nodes(cover, step):
            values = [value for value in program.nodes[node].outputs if value in found]
            if values and _fails_first(cover, steps[position + 1 :], kernels, node):
                return []
            made += values
    return [(value, found[value]) for value in made]


def _framework_nodes(cover: FusionPlan, step: Step) -> tuple[int, ...]:
    group = None if step.framework is None else cover.groups[step.framework]
    return group.nodes if isinstance(group, FrameworkGroup) else ()


def _fails_first(
    cover: FusionPlan, later: Sequence[Step], kernels: Sequence[Kernel], node: int
) -> bool:
    """Whether a later step may fail at something that eager does before `node`."""
    for step in later:
        nodes = _framework_nodes(cover, step)
        if step.kernel is not None and may_fail(kernels[step.kernel].nest):
            nodes = kernels[step.kernel].group.nodes
        if any(other < node for other in nodes):
            return True
    return False


def _by_kernels(
    program: Graph, steps: Sequence[Step], kernels: Sequence[Kernel]
) -> list[tuple[int, int]]:
    """Results of kernels that nothing of torch's follows, in plans whose kernels cannot fail."""
    if any(may_fail(kernel.nest) for kernel in kernels):
        return []
    back = written_back(program)
    found: list[tuple[int, int]] = []
    later: set[int] = set()  # what the steps after this one read
    for step in reversed(steps):
        if step.kernel is None:
            break
        kernel = kernels[step.kernel]
        pairs = [(kernel.operands[o], kernel.operands[s]) for s, o in kernel.source.in_place]
        found[:0] = [
            (value, target)
            for value, target in pairs
            if back.get(value) == target and target not in later
        ]
        later.update(step.reads)
    return found


def may_fail(nest: LoopNest) -> bool:
    """Whether the kernel checks positions that come as values, or divides integers by values."""
    statements = nest.statements
    return any(
        any(index.values() for index in indices(s)) or _may_divide_by_zero(statements, s)
        for s in statements
    )


def _may_divide_by_zero(statements: Sequence[Statement], statement: Statement) -> bool:
    if not isinstance(statement, Compute) or statement.op not in _DIVISIONS:
        return False
    if statement.dtype.is_float:
        return False
    match statements[statement.args[1]]:
        case Compute(op="const", attrs=attrs):
            return not dict(attrs).get("value")
    return True

"""Structural check of a plan that was read: every number names something that exists.

A plan that passes runs without an index error; whether it computes the right thing is the
signature's promise.
"""

from __future__ import annotations

from collections.abc import Iterable

from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.group import FrameworkGroup, FusionGroup
from kernel_gen.ir.target import DeviceKind
from kernel_gen.runtime.plan import Plan, Segment


def check_plan(plan: Plan) -> None:
    """Raises InvalidInput naming the place of the first number that is out of range."""
    n_nodes, n_values = len(plan.program.nodes), len(plan.program.values)
    for position, group in enumerate(plan.cover.groups):
        _within(f"cover.groups[{position}].nodes", group.nodes, n_nodes)
        _within(f"cover.groups[{position}]", (*group.inputs, *group.outputs), n_values)
    fused = [group for group in plan.cover.groups if isinstance(group, FusionGroup)]
    if fused != [kernel.group for kernel in plan.kernels]:
        raise InvalidInput("plan: the kernels are not those of the cover")
    for position, kernel in enumerate(plan.kernels):
        place = f"kernels[{position}]"
        _within(f"{place}.operands", kernel.operands, n_values)
        packs = [pack.operand for pack in kernel.source.packs]
        _within(f"{place}.source.packs", packs, len(kernel.operands))
    _check_layout(plan, n_nodes, n_values)


def _check_layout(plan: Plan, n_nodes: int, n_values: int) -> None:
    layout = plan.layout
    _within("layout.folded", layout.folded, n_nodes)
    _within("layout.constants", layout.constants, n_values)
    _within("layout.buffers", layout.buffers, n_values)
    _within("layout.overwrites", (v for pair in layout.overwrites for v in pair), n_values)
    _within("layout.arena", (slot.value for slot in layout.arena), n_values)
    for position, segment in enumerate(layout.segments):
        _check_segment(f"layout.segments[{position}]", plan, segment)
    if len(plan.artifacts) != _objects(plan):
        raise InvalidInput(f"plan: {len(plan.kernels)} kernels, {len(plan.artifacts)} objects")


def _objects(plan: Plan) -> int:
    """Objects that the plan should have: one of all kernels on a CPU, one per kernel on an NPU."""
    if plan.target.kind is DeviceKind.CPU:
        return int(bool(plan.kernels))
    return len({kernel.source.digest for kernel in plan.kernels})


def _check_segment(place: str, plan: Plan, segment: Segment) -> None:
    _within(f"{place}.kernels", segment.kernels, len(plan.kernels))
    if (segment.framework is None) != bool(segment.kernels):
        raise InvalidInput(f"plan: {place} has kernels and a framework group, or neither")
    if segment.framework is not None:
        _within(f"{place}.framework", (segment.framework,), len(plan.cover.groups))
        if not isinstance(plan.cover.groups[segment.framework], FrameworkGroup):
            raise InvalidInput(f"plan: {place}.framework is a fused group")


def _within(place: str, numbers: Iterable[int], limit: int) -> None:
    for number in numbers:
        if not 0 <= number < limit:
            raise InvalidInput(f"plan: {place} names {number}, of {limit}")

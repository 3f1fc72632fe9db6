"""The template "attention": two products around a softmax in one kernel."""

from __future__ import annotations

from kernel_gen.codegen.cpu.attention.generate import generate
from kernel_gen.codegen.cpu.attention.problem import Problem, analyse
from kernel_gen.codegen.cpu.attention.scratch import scratch
from kernel_gen.codegen.cpu.attention.space import (
    attention_space,
    key_modes,
    lanes_of,
    tiling_of,
    value_modes,
)
from kernel_gen.codegen.cpu.attention.tiling import NAME, from_schedule, to_schedule
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidGraph, Refusal
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.schedule.schedule import Point, Schedule, Space

_MOST_SCRATCH_BYTES = 64 << 20  # of one thread


class AttentionTemplate:
    """Attention with an online softmax for CPUs (see the package's docstring)."""

    @property
    def name(self) -> str:
        return NAME

    def refuse(self, nest: LoopNest, target: Target) -> Refusal | None:
        if target.kind is not DeviceKind.CPU:
            return Refusal("wrong-device", f"no attention kernel is generated for {target.kind}")
        found = analyse(nest)
        return found if isinstance(found, Refusal) else None

    def space(self, nest: LoopNest, target: Target) -> Space:
        return attention_space(self._problem(nest), target)

    def schedule(self, nest: LoopNest, target: Target, point: Point) -> Schedule | Refusal:
        problem = self._problem(nest)
        tiling = tiling_of(problem, target, point)
        if tiling.key not in key_modes(problem) or tiling.value not in value_modes(problem, target):
            return Refusal("operand-layout", f"keys read {tiling.key}, values {tiling.value}")
        nbytes = scratch(problem, tiling).own * problem.dtype.bytes
        if nbytes > _MOST_SCRATCH_BYTES:
            return Refusal("scratch-too-large", f"a thread would need {nbytes} bytes of scratch")
        return to_schedule(tiling)

    def generate(
        self, nest: LoopNest, target: Target, schedule: Schedule, symbol: str
    ) -> KernelSource:
        problem = self._problem(nest)
        return generate(problem, from_schedule(schedule, lanes_of(problem, target)), symbol)

    def _problem(self, nest: LoopNest) -> Problem:
        found = analyse(nest)
        if isinstance(found, Refusal):
            raise InvalidGraph(f"attention template: {found.sentence}")
        return found

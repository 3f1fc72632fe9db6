"""What the templates share: a kernel is planned whole before it is text, and a point stands where
its plan fits the device."""

from __future__ import annotations

from abc import ABC, abstractmethod

from kernel_gen.codegen.ascend.instructions.writer import UnfitError
from kernel_gen.codegen.ascend.kernel.files import delivered
from kernel_gen.codegen.ascend.kernel.kernel_plan import KernelPlan
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidGraph, Refusal
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Point, Schedule
from kernel_gen.schedule.words import decisions


class PlannedTemplate(ABC):
    """Schedules and sources of a template, from its plans. Stateless."""

    __slots__ = ()
    name: str

    @abstractmethod
    def planned(self, nest: LoopNest, schedule: Schedule, target: Target) -> KernelPlan:
        """The kernel before it is text; raises UnfitError where it does not fit the device."""

    def schedule(self, nest: LoopNest, target: Target, point: Point) -> Schedule | Refusal:
        schedule = Schedule(self.name, decisions(point))
        try:
            self.planned(nest, schedule, target)
        except UnfitError as unfit:
            return unfit.refusal
        return schedule

    def generate(
        self, nest: LoopNest, target: Target, schedule: Schedule, symbol: str
    ) -> KernelSource:
        try:
            plan = self.planned(nest, schedule, target)
        except UnfitError as unfit:
            raise InvalidGraph(unfit.refusal.sentence) from unfit
        return delivered(plan, self.name, symbol, schedule, target)

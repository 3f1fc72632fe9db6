"""A template whose cost is known, for tests of the search without a compiler."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import Refusal
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.records import Failure, Measurement, Protocol, Stage, Trial
from kernel_gen.schedule.schedule import Decision, Parameter, Point, Schedule, Space
from tuner.nests.search import Proposal

TARGET = Target(DeviceKind.CPU, "x86-test", "x86-64-v3", cores=2)


@dataclass(frozen=True, slots=True)
class GridTemplate:
    """`axes` parameters a0, a1, … of `choices` values 0 … choices-1."""

    name: str = "grid"
    axes: int = 3
    choices: int = 12
    refuses: bool = False

    def refuse(self, nest: LoopNest, target: Target) -> Refusal | None:
        return Refusal("test", "refused") if self.refuses else None

    def space(self, nest: LoopNest, target: Target) -> Space:
        names = [f"a{i}" for i in range(self.axes)]
        seed = tuple((name, 0) for name in names)
        return Space(tuple(Parameter(n, tuple(range(self.choices))) for n in names), (seed,))

    def schedule(self, nest: LoopNest, target: Target, point: Point) -> Schedule | Refusal:
        if point["a0"] == 1:
            return Refusal("odd", "a0 = 1 goes with nothing")
        return Schedule(
            self.name, tuple(Decision("tile", attrs(**{k: v})) for k, v in point.items())
        )

    def generate(
        self, nest: LoopNest, target: Target, schedule: Schedule, symbol: str
    ) -> KernelSource:
        return KernelSource(symbol, ((f"{symbol}.cpp", f"// {schedule}"),))


@dataclass(frozen=True, slots=True)
class SeededTemplate(GridTemplate):
    """The same with three starting points, the best of them in the middle."""

    def space(self, nest: LoopNest, target: Target) -> Space:
        parameters = GridTemplate.space(self, nest, target).parameters
        seeds = tuple(tuple((p.name, value) for p in parameters) for value in (3, 6, 0))
        return Space(parameters, seeds)


def cost_us(schedule: Schedule) -> float:
    """Lowest, 10, at 7 for each parameter."""
    values = [int(str(value)) for d in schedule.decisions for _, value in d.args]
    return 10.0 + sum((value - 7) ** 2 for value in values)


def flat(nest: LoopNest, schedule: Schedule, target: Target) -> float:
    """A cost model that knows nothing."""
    return 1.0


def trial_of(proposal: Proposal, group: str = "g", *, failed: bool = False) -> Trial:
    result: Measurement | Failure = Measurement(
        (cost_us(proposal.schedule),), Protocol(2, 1, 1, "warm")
    )
    if failed:
        result = Failure(Stage.BUILD, "does-not-compile", "planted")
    return Trial(
        group, proposal.number, proposal.template, proposal.point, result, proposal.predicted_us
    )

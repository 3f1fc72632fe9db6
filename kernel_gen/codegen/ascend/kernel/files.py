"""The files of a kernel, as they are delivered: kernel, tiling data, tiling function, launcher."""

from __future__ import annotations

from dataclasses import replace

from kernel_gen.codegen.ascend.kernel.kernel_plan import KernelPlan
from kernel_gen.codegen.ascend.kernel.kernel_text import kernel_text
from kernel_gen.codegen.ascend.kernel.sections import limits_of
from kernel_gen.codegen.ascend.kernel.tiling_text import (
    TunedPoint,
    launcher_text,
    struct_text,
    tiling_text,
)
from kernel_gen.codegen.source import KernelSource
from kernel_gen.ir.graph import attrs
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Decision, Schedule
from kernel_gen.schedule.words import choice


def delivered(
    plan: KernelPlan, template: str, symbol: str, schedule: Schedule, target: Target
) -> KernelSource:
    """All files; the first one is compiled for the device, the third one for the host."""
    limits = replace(limits_of(target), cores=int(str(choice(schedule, "cores"))))
    tuned = tuned_points(schedule)
    lanes = int(str(choice(schedule, "lanes")))
    return KernelSource(
        symbol,
        (
            (f"{symbol}.cpp", kernel_text(plan, template, symbol)),
            (f"{symbol}_tiling.h", struct_text(plan, symbol)),
            (f"{symbol}_tiling.cpp", tiling_text(plan, symbol, limits, lanes, tuned)),
            (f"{symbol}_launch.cpp", launcher_text(symbol, plan.buffers)),
        ),
    )


def tuned_points(schedule: Schedule) -> tuple[TunedPoint, ...]:
    """The tuned points that a schedule carries for its tiling function's table."""
    found = []
    for decision in schedule.find("tuned"):
        args = dict(decision.args)
        dims = args["dims"]
        assert isinstance(dims, tuple)
        found.append(
            TunedPoint(
                tuple(int(str(d)) for d in dims), int(str(args["lanes"])), int(str(args["cores"]))
            )
        )
    return tuple(found)


def with_tuned(schedule: Schedule, points: tuple[TunedPoint, ...]) -> Schedule:
    """The schedule with tuned points for its tiling function's table."""
    added = tuple(
        Decision("tuned", attrs(dims=p.dims, lanes=p.lanes, cores=p.cores)) for p in points
    )
    kept = tuple(d for d in schedule.decisions if d.kind != "tuned")
    return Schedule(schedule.template, kept + added)

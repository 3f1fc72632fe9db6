"""Measures a stored plan again: is it still right on this machine, and still faster?"""

from __future__ import annotations

import os
from dataclasses import dataclass

from kernel_gen.errors import InvalidInput
from kernel_gen.records import Failure, Measurement
from kernel_gen.runtime.device_names import is_simulated
from kernel_gen.runtime.plan import Plan
from tuner.devices.program_bench import PlanBench
from tuner.gain import times_us


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a plan shows now. `result` is the plan's time, or why its results are wrong or it did
    not run; `baseline` is torch running the captured program, interleaved with the plan."""

    plan: Plan
    baseline: Measurement | Failure
    result: Measurement | Failure

    @property
    def times_us(self) -> tuple[float | None, float | None]:
        """Of the plan and of the baseline; None for what was not measured."""
        plan, baseline = self.result, self.baseline
        if isinstance(plan, Measurement) and isinstance(baseline, Measurement):
            return times_us(plan, baseline)
        measured = [m.median_us if isinstance(m, Measurement) else None for m in (plan, baseline)]
        return measured[0], measured[1]

    @property
    def speedup(self) -> float | None:
        """Baseline over plan; None where one of them was not measured."""
        plan_us, baseline_us = self.times_us
        return None if plan_us is None or baseline_us is None else baseline_us / plan_us

    @property
    def holds(self) -> bool:
        """The plan is right, and if it was published as an improvement it is one here."""
        speedup = self.speedup
        return speedup is not None and (speedup > 1.0 or not self.plan.summary.improved)


def verify(plan: Plan, seconds: float = 5.0) -> Verdict:
    """Checks the plan's results on random inputs and times its own objects beside the baseline.

    `seconds` bounds the interleaved runs. Needs no compiler: the objects run as they are stored.
    Raises InvalidInput for a plan of a simulated device: runs here do not take its time.
    """
    if is_simulated(plan.target):
        raise InvalidInput(
            f"plan {plan.key} is for a simulated device: how long the simulator runs says nothing "
            "about the plan's time; tune it again, or load it and compare its results"
        )
    bench = PlanBench(sorted(os.sched_getaffinity(0)))
    try:
        compared = bench.compare(plan.graph, [plan], seconds=seconds)
    finally:
        bench.close()
    return Verdict(plan, compared.baseline, compared.contenders[0].result)

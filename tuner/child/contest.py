"""Messages of the whole-program stage: parts timed through torch, plans against the baseline.

They are performed in a child whose zygote has imported torch (`tuner.child.torch_parts`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernel_gen.fusion.group import FusionPlan
from kernel_gen.ir.graph import Graph
from kernel_gen.records import Failure, Measurement, Stage
from kernel_gen.runtime.key import PlanKey
from kernel_gen.runtime.plan import Kernel, Plan
from tuner.child.messages import Report
from tuner.child.protocol import QUICK, THOROUGH, Limits

HOST_ONLY = Failure(
    Stage.RUN, "host-only", "The framework runs on the host: it has no time on an NPU."
)


@dataclass(frozen=True, slots=True)
class GraphTask:
    """Time a graph as torch runs it, on random inputs within its domains."""

    graph: Graph
    limits: Limits = QUICK
    timeout_s: float = 20.0


@dataclass(frozen=True, slots=True)
class Entry:
    """One cover of the program with its kernels, to be built and run as a whole.

    `expected_us` is the sum of its groups' times alone.
    """

    cover: FusionPlan
    kernels: tuple[Kernel, ...]
    expected_us: float = 0.0


@dataclass(frozen=True, slots=True)
class ContestTask:
    """Build plans of `entries` and run them interleaved with the baseline (`graph` by torch).

    `program` is what the covers speak of. `seconds` bounds the interleaved runs, but for the few
    rounds that there always are while `most_seconds` last. `unfused` runs each op in a kernel of
    its own: the baseline of devices that have no framework.
    """

    key: PlanKey
    graph: Graph
    program: Graph
    entries: tuple[Entry, ...]
    unfused: Entry | None = None
    limits: Limits = THOROUGH
    seconds: float = 5.0
    most_seconds: float = math.inf
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Contender:
    """What came of an entry. `plan` (with an empty summary) is there if it was built and right."""

    plan: Plan | None
    result: Measurement | Failure


@dataclass(frozen=True, slots=True)
class ContestResult:
    """The baseline's time and one contender per entry, in order. All times are from one
    interleaved run; `baseline` is a Failure if torch itself could not run the program, HOST_ONLY
    if no entry has a kernel for the device and none therefore a time on it."""

    baseline: Measurement | Failure
    contenders: tuple[Contender, ...]


@dataclass(frozen=True, slots=True)
class TimeGraph:
    """To the child: time this graph by torch."""

    graph: Graph
    threads: int
    limits: Limits

    def perform(self, report: Report) -> Measurement | Failure:
        """Runs in the child."""
        from tuner.child.torch_parts import time_graph

        report(Stage.RUN)
        return time_graph(self.graph, self.threads, self.limits)


@dataclass(frozen=True, slots=True)
class CheckPlan:
    """To the child: does the plan give what the baseline does? `npu` is where an NPU plan runs."""

    graph: Graph
    plan: Plan
    threads: int
    npu: int = 0

    def perform(self, report: Report) -> Failure | None:
        """Runs in the child; None if the plan is right."""
        from tuner.child.torch_parts import check_plan

        return check_plan(self.graph, self.plan, self.threads, report, self.npu)


@dataclass(frozen=True, slots=True)
class Interleave:
    """To the child: baseline and plans in turn, round after round."""

    graph: Graph
    plans: tuple[Plan, ...]
    threads: int
    limits: Limits
    seconds: float
    most_seconds: float = math.inf

    def perform(self, report: Report) -> list[Measurement]:
        """Runs in the child; the baseline's time comes first."""
        from tuner.child.torch_parts import interleave

        report(Stage.RUN)
        seconds = (self.seconds, self.most_seconds)
        return interleave(self.graph, self.plans, self.threads, self.limits, seconds)

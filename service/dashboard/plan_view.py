"""A plan as its page shows it: groups with times and limits, the roofline, refusals by reason."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cost_models.roofline import Roofline, Work, roofline_of, work_of
from db.store import Store
from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.group import FrameworkGroup
from kernel_gen.records import Job, Trial
from kernel_gen.runtime.boxes import node_label
from kernel_gen.runtime.device_names import is_simulated
from kernel_gen.runtime.plan import Kernel, Plan
from service.dashboard.numbers import UNSTEADY, show_rate, show_times, show_us
from service.dashboard.plan_times import GroupTime, group_times, total
from service.dashboard.plot import Axis, Line, Mark, Plot, plot_of, scale_of
from tuner.tasks import computing_nodes

_RARE_GAIN = 50.0  # the framework seldom wastes that much on one group
_MUCH = 0.25  # of a program's time: that much beyond the sum of its groups needs an explanation


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group of a cover. `ops` are those that compute, or its views where nothing does, and
    `views` counts the others. `reach` is the share of the roofline that its kernel reaches, `bound`
    what holds it: a level of memory or "compute"; `doubt` says why its gain may be noise."""

    number: int
    ops: tuple[str, ...]
    views: int
    kernel: Kernel | None
    code: str
    sentence: str
    time: GroupTime
    work: Work | None = None
    floor_us: float | None = None
    bound: str = ""
    doubt: str = ""

    @property
    def runs_as(self) -> str:
        return self.kernel.schedule.template if self.kernel else "framework"

    @property
    def spread(self) -> float | None:
        measured = self.kernel.measurement if self.kernel else None
        return measured.spread if measured else None

    @property
    def is_unsteady(self) -> bool:
        return self.spread is not None and self.spread > UNSTEADY

    @property
    def reach(self) -> float | None:
        if not self.floor_us or not self.time.after_us:
            return None
        return self.floor_us / self.time.after_us

    @property
    def gain(self) -> float | None:
        return ratio(self.time)

    @property
    def kind(self) -> object:
        """Equal for groups that are the same work done the same way."""
        if self.kernel is None:
            return self.ops, self.code, self.time.after_us
        return self.kernel.nest, self.kernel.schedule


@dataclass(frozen=True, slots=True)
class Stack:
    """Groups that are one kernel run several times (equal layers), or equal framework parts."""

    rows: tuple[GroupRow, ...]

    @property
    def first(self) -> GroupRow:
        return self.rows[0]

    @property
    def time(self) -> GroupTime:
        """Of all of them together."""
        before = [row.time.before_us for row in self.rows]
        after = [row.time.after_us for row in self.rows]
        return GroupTime(total(before), total(after))

    @property
    def gain(self) -> float | None:
        return ratio(self.time)


@dataclass(frozen=True, slots=True)
class Refused:
    """Ops that share no kernel for one reason; `ops` with how often each occurs."""

    code: str
    sentence: str
    ops: tuple[tuple[str, int], ...]

    @property
    def count(self) -> int:
        return sum(count for _, count in self.ops)


@dataclass(frozen=True, slots=True)
class PlanView:
    """All that the page of a plan shows beside the plan itself. `job` is the one that found it,
    None for an imported plan; `rows` in execution order."""

    plan: Plan
    job: Job | None
    rows: tuple[GroupRow, ...]
    limits: Roofline
    roofline: Plot | None
    refused: tuple[Refused, ...]

    @property
    def simulated(self) -> bool:
        return is_simulated(self.plan.target)

    @property
    def slowest(self) -> list[Stack]:
        """What runs at each call, equal groups together, the slowest first; those without a time
        last."""
        stacks: dict[object, list[GroupRow]] = {}
        for row in self.rows:
            if row.code != "constant":
                stacks.setdefault(row.kind, []).append(row)
        found = [Stack(tuple(rows)) for rows in stacks.values()]
        return sorted(found, key=lambda stack: -(stack.time.after_us or -1.0))

    @property
    def longest_us(self) -> float:
        """The longest time in the table, before or after: the full width of a bar."""
        times = [t for s in self.slowest for t in (s.time.before_us, s.time.after_us) if t]
        return max(times, default=1.0)

    @property
    def total_us(self) -> float:
        """What all timed groups take together."""
        return sum(row.time.after_us or 0.0 for row in self.rows)

    @property
    def sums(self) -> GroupTime:
        """Sums over the groups that have both times, so that they compare."""
        both = [row.time for row in self.rows if row.gain is not None]
        if not both:
            return GroupTime(None, None)
        return GroupTime(sum(t.before_us or 0.0 for t in both), sum(t.after_us or 0 for t in both))

    @property
    def unexplained_us(self) -> float | None:
        """What the whole takes beyond its groups alone, if that is much and all were timed."""
        whole = self.plan.summary.measured_us
        rest = whole - self.total_us
        return rest if self.rows and not self.untimed and rest > _MUCH * whole else None

    @property
    def doubted(self) -> int:
        """Groups whose gain may be noise."""
        return sum(bool(row.doubt) for row in self.rows)

    @property
    def untimed(self) -> int:
        return sum(row.time.after_us is None for row in self.rows)


def ratio(time: GroupTime) -> float | None:
    """Before over after."""
    if not time.after_us or time.before_us is None:
        return None
    return time.before_us / time.after_us


def plan_view(store: Store, plan_id: str) -> PlanView:
    """The view of a stored plan; raises NotFound."""
    plan = store.plans.get(plan_id)
    job_id = store.plans.row(plan_id).job_id
    job = None if job_id is None else store.jobs.get(job_id)
    trials = [trial for _, trial in store.trials.of_job(job.id)] if job else []
    rows = _rows(plan, trials, job.request.numerics if job else "fast")
    limits = roofline_of(plan.target)
    return PlanView(plan, job, rows, limits, roofline(plan_id, rows, limits), refusals(plan))


def _rows(plan: Plan, trials: Sequence[Trial], numerics: str) -> tuple[GroupRow, ...]:
    limits = roofline_of(plan.target)
    kernels = iter(plan.kernels)
    rows: list[GroupRow] = []
    times = group_times(plan, trials, numerics)
    for number, (group, time) in enumerate(zip(plan.cover.groups, times, strict=True)):
        ops, views = _names(plan, group.nodes)
        if isinstance(group, FrameworkGroup):
            rows.append(GroupRow(number, ops, views, None, group.code, group.sentence, time))
        else:
            row = GroupRow(number, ops, views, next(kernels), "", "", time)
            row = dataclasses.replace(row, doubt=doubt_of(row, plan.summary.baseline_us))
            rows.append(_limited(row, limits))
    return tuple(rows)


def doubt_of(row: GroupRow, whole_us: float) -> str:
    """What speaks against a group's gain; empty if nothing does."""
    gain, time = row.gain, row.time
    measured = row.kernel.measurement if row.kernel else None
    if gain is None or measured is None or not measured.min_us or not time.least_before_us:
        return ""
    least = time.least_before_us / measured.min_us
    if not 0.5 < gain / least < 2:
        return f"by the fastest samples of both sides it is {show_times(least)}"
    if (time.before_us or 0.0) > 1.1 * whole_us:
        return "its ops one by one took longer than the whole program does"
    if gain > _RARE_GAIN:
        return "so much is rare: one side was timed at a bad moment, or has little to do here"
    return ""


def _names(plan: Plan, nodes: Sequence[int]) -> tuple[tuple[str, ...], int]:
    """The ops of a group by what people look for, and how many are left out."""
    computing = computing_nodes(plan.program, nodes) or tuple(nodes)
    names = tuple(node_label(plan.program.nodes[node]) for node in computing)
    return names, len(nodes) - len(computing)


def _limited(row: GroupRow, limits: Roofline) -> GroupRow:
    """The row of a kernel with what the device would allow it."""
    assert row.kernel is not None
    try:
        work = work_of(row.kernel.nest)
    except InvalidInput:  # an extent is symbolic: there is no one figure
        return row
    bound = limits.level(work).name if limits.is_memory_bound(work) else "compute"
    return dataclasses.replace(row, work=work, floor_us=limits.floor_us(work), bound=bound)


def refusals(plan: Plan) -> tuple[Refused, ...]:
    """What shares no kernel, equal reasons together, the most frequent first."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for item in plan.summary.unfused:
        found.setdefault((item.code, item.sentence), Counter())[item.op] += 1
    listed = [Refused(*reason, tuple(ops.most_common())) for reason, ops in found.items()]
    return tuple(sorted(listed, key=lambda refused: -refused.count))


def roofline(plan_id: str, rows: Sequence[GroupRow], limits: Roofline) -> Plot | None:
    """Operations per second over operations per byte; None if no kernel has both."""
    points = [(r, r.work, r.time.after_us) for r in rows if r.work and r.time.after_us]
    computing = [(row, work, time) for row, work, time in points if work.operations]
    if not computing:
        return None
    rates = [work.operations / time * 1e6 for _, work, time in computing]
    peak = max(limits.rate(work) for _, work, _ in computing)
    slowest, fastest = limits.levels[-1], limits.levels[0]
    intensities = [work.intensity for _, work, _ in computing]
    ridge = peak / slowest.bytes_per_second  # operations per byte from which memory does not bind
    x = scale_of([*intensities, ridge / 4, 2 * ridge], log=True)
    y = scale_of([*rates, peak, x.low * slowest.bytes_per_second], log=True)
    lines = [Line(x.low, peak, x.high, peak, "limit", f"peak {show_rate(peak)}op/s")]
    for level in dict.fromkeys((slowest, fastest)):
        start = max(x.low, y.low / level.bytes_per_second)
        corner = peak / level.bytes_per_second
        if start < corner:
            text = f"{level.name} {show_rate(level.bytes_per_second)}B/s"
            top = (corner, peak)
            foot = (start, start * level.bytes_per_second)
            lines.append(Line(*foot, *top, "limit", text, text_at_start=True))
    dearest_first = sorted(zip(computing, rates, strict=True), key=lambda found: -found[0][2])
    marks = [
        Mark(
            work.intensity,
            rate,
            _said(row, rate),
            "usual",
            f"/plans/{plan_id}/groups/{row.number}",
            str(row.number),
        )
        for (row, work, _), rate in dearest_first
    ]
    return plot_of(
        f"{len(marks)} kernels against the roofline",
        Axis(x, "operations per byte", lambda v: f"{v:g}"),
        Axis(y, "operations per second", show_rate),
        marks,
        lines,
    )


def _said(row: GroupRow, rate: float) -> str:
    ops = " + ".join(row.ops[:6]) + (" …" if len(row.ops) > 6 else "")
    reach = "" if row.reach is None else f", {row.reach:.0%} of its limit"
    return f"{row.number}: {ops}, {show_us(row.time.after_us)}, {show_rate(rate)}op/s{reach}"

"""Times of a plan's groups, before and after: what its kernels take, and what the same ops took
one by one.

`before` is the framework's time for each op alone, as the job timed it. A simulated device has no
framework: there it is our best kernel for each op alone. Both leave out what was never timed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernel_gen.codec import digest
from kernel_gen.errors import Refusal
from kernel_gen.fusion.group import FusionGroup, Group
from kernel_gen.fusion.lower import lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.ops import OpKind, spec
from kernel_gen.records import LIBRARY_TEMPLATE, Measurement, Trial
from kernel_gen.runtime.device_names import is_simulated
from kernel_gen.runtime.plan import Plan
from tuner.checks.domains import value_domains
from tuner.extract import Extraction

_FREE = (OpKind.VIEW, OpKind.SOURCE)


@dataclass(frozen=True, slots=True)
class GroupTime:
    """Microseconds of one group; None where something in it was not timed. `least_before_us` is
    what the fastest samples add up to."""

    before_us: float | None
    after_us: float | None
    least_before_us: float | None = None


def group_times(plan: Plan, trials: Iterable[Trial], numerics: str) -> tuple[GroupTime, ...]:
    """One entry per group of the plan's cover, from the trials of the job that found it."""
    book = _Book(plan, trials, numerics)
    kernels = iter(plan.kernels)
    taken: set[int] = set()
    found: list[GroupTime] = []
    for group in plan.cover.groups:
        measured = next(kernels).measurement if isinstance(group, FusionGroup) else None
        after = measured.median_us if measured else book.framework_us(group)
        own = [node for node in group.nodes if node not in taken]  # recomputed ones count once
        taken.update(own)
        before, least = book.alone(own)
        found.append(GroupTime(before, after, least))
    return tuple(found)


class _Book:
    """What the parts of a plan's program took by themselves."""

    def __init__(self, plan: Plan, trials: Iterable[Trial], numerics: str) -> None:
        self._plan, self._numerics = plan, numerics
        self._simulated = is_simulated(plan.target)
        self._parts = Extraction(plan.program, value_domains(plan.program))
        self._library, self._kernels = _best(trials)

    def framework_us(self, group: Group) -> float | None:
        """The framework's time for a group that it runs; 0 for what runs once, at bind time."""
        if getattr(group, "is_constant", False):
            return 0.0
        found = self._framework(group)
        return None if found is None else found.median_us

    def alone(self, nodes: Iterable[int]) -> tuple[float | None, float | None]:
        """Sums over the nodes, each alone: of medians, and of least samples. Views that nobody
        timed are free."""
        found: list[Measurement] = []
        for node in nodes:
            measured = self._node(node)
            if measured is not None:
                found.append(measured)
            elif spec(self._plan.program.nodes[node].op).kind not in _FREE:
                return None, None
        return sum(m.median_us for m in found), sum(m.min_us for m in found)

    def _framework(self, group: Group) -> Measurement | None:
        part = self._parts.part(group.nodes, group.inputs, group.outputs)
        return self._library.get(self._parts.digest(part))

    def _node(self, node: int) -> Measurement | None:
        group = make_group(self._plan.program, (node,))
        if not self._simulated:
            return self._framework(group)
        if not self._kernels:
            return None
        lowered = lower(self._plan.program, group, self._numerics)
        return None if isinstance(lowered, Refusal) else self._kernels.get(digest(lowered.nest))


def _best(trials: Iterable[Trial]) -> tuple[dict[str, Measurement], dict[str, Measurement]]:
    """The fastest measurements of framework parts and of kernels, by digest."""
    library: dict[str, Measurement] = {}
    kernels: dict[str, Measurement] = {}
    for trial in trials:
        if isinstance(trial.result, Measurement):
            times = library if trial.template == LIBRARY_TEMPLATE else kernels
            known = times.setdefault(trial.group, trial.result)
            if trial.result.median_us < known.median_us:
                times[trial.group] = trial.result
    return library, kernels


def total(times: Sequence[float | None]) -> float | None:
    """The sum; None where there are no times, or one is not known."""
    known = [time for time in times if time is not None]
    return sum(known) if known and len(known) == len(times) else None

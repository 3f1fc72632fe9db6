"""`FusionReport`: what became of a program, in numbers and sentences."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from kernel_gen.fusion.sharing import Sharing
from kernel_gen.ir.target import DeviceKind
from kernel_gen.runtime.boxes import node_label
from kernel_gen.runtime.plan import FrameworkGroup, Kernel, Plan, Unfused


@dataclass(frozen=True, slots=True)
class GroupReport:
    """One kernel (or framework segment): its ops, template and time in microseconds; on a simulated
    NPU also how busy its pipes were (shares of the time), and which one most."""

    ops: tuple[str, ...]
    template: str
    measured_us: float | None
    bounding_pipe: str | None = None
    pipes: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class FusionReport:
    """What `optimize` did. Times are microseconds per call.

    `cache`: "hit", "compatible", "pending", "tuned" or "fallback" (`reason` then says why).
    `fusion_rate`: ops that share a kernel with another, over all computing ops.
    `baseline_us`: the captured ops run by torch; `measured_us`: the plan, interleaved with it;
    `unfused_us`: our best kernel for each op alone; `speedup`: baseline over measured. `simulated`:
    all times are of a simulated device, and the baseline is `unfused_us`, as it has no torch.
    """

    cache: str
    reason: str = ""
    key: str = ""
    fusion_rate: float = 0.0
    groups: tuple[GroupReport, ...] = ()
    unfused: tuple[Unfused, ...] = ()
    measured_us: float | None = None
    baseline_us: float | None = None
    unfused_us: float | None = None
    improved: bool = False
    trials: int = 0
    failures: int = 0
    tuning_seconds: float = 0.0
    rules_fired: tuple[str, ...] = ()
    simulated: bool = False

    @property
    def speedup(self) -> float | None:
        """`baseline_us / measured_us`, None where nothing was measured."""
        if not self.measured_us or self.baseline_us is None:
            return None
        return self.baseline_us / self.measured_us

    @property
    def unfused_lines(self) -> tuple[str, ...]:
        """`unfused` for people: one line per reason, equal ops counted."""
        return unfused_lines((item.op, item.code, item.sentence) for item in self.unfused)

    def to_json(self) -> str:
        """All fields and `speedup` as JSON."""
        return json.dumps({**dataclasses.asdict(self), "speedup": self.speedup})


def unfused_lines(items: Iterable[tuple[str, str, str]]) -> tuple[str, ...]:
    """Lines for ops left alone, given as (op, code, sentence): "not fused: linear ×2, add: …"."""
    reasons: dict[tuple[str, str], Counter[str]] = {}
    for op, code, sentence in items:
        reasons.setdefault((code, sentence), Counter())[op] += 1
    return tuple(
        f"not fused: {_counted(ops)}: {sentence} [{code}]"
        for (code, sentence), ops in reasons.items()
    )


def _counted(ops: Counter[str]) -> str:
    return ", ".join(op if count == 1 else f"{op} ×{count}" for op, count in ops.items())


def report_of(plan: Plan, cache: str, *, tuned_now: bool = False, note: str = "") -> FusionReport:
    """The report of a plan that came from `cache`.

    Trials and tuning time are those of this process: 0 unless it has just tuned (`tuned_now`).
    `note` says what may have kept its search from a gain.
    """
    summary, why = plan.summary, why_unused(plan)
    if why:
        why = f"no gain, the model runs itself: {why}" + (f" ({note})" if note else "")
    return FusionReport(
        cache=cache,
        reason=why,
        key=str(plan.key),
        fusion_rate=Sharing(plan.program, plan.layout.folded).rate(plan.cover.groups),
        groups=_groups(plan),
        unfused=summary.unfused,
        measured_us=summary.measured_us,
        baseline_us=summary.baseline_us,
        unfused_us=summary.unfused_us,
        improved=summary.improved,
        trials=summary.trials if tuned_now else 0,
        failures=summary.failures if tuned_now else 0,
        tuning_seconds=summary.tuning_seconds if tuned_now else 0.0,
        rules_fired=summary.rules_fired,
        simulated=plan.target.kind is DeviceKind.ASCEND_SIM,
    )


def why_unused(plan: Plan) -> str:
    """Why the model runs itself though there is `plan`; empty for a plan that `optimize` runs."""
    summary = plan.summary
    if summary.improved:
        return ""
    if plan.is_unmeasured:
        return (
            f"no kernel was measured in {summary.tuning_seconds:.0f} s: search again with more "
            "seconds, on an idle machine"
        )
    if not plan.kernels:
        return "every group is the framework's"
    if summary.measured_us > summary.baseline_us:
        return "the plan is not faster than the framework"
    return ""


def generated_rate(plan: Plan) -> float:
    """The fusion rate of our kernels: what shares a call of the framework counts as unfused."""
    ours = [group for group in plan.cover.groups if not isinstance(group, FrameworkGroup)]
    return Sharing(plan.program, plan.layout.folded).rate(ours)


def fallback_report(reason: str, key: str = "", cache: str = "fallback") -> FusionReport:
    """The report of a program that the framework runs."""
    return FusionReport(cache=cache, reason=reason, key=key)


def _groups(plan: Plan) -> tuple[GroupReport, ...]:
    kernels = iter(plan.kernels)
    return tuple(
        _framework(plan, group) if isinstance(group, FrameworkGroup) else _kernel(next(kernels))
        for group in plan.cover.groups
    )


def _framework(plan: Plan, group: FrameworkGroup) -> GroupReport:
    ops = tuple(node_label(plan.program.nodes[i]) for i in group.nodes)
    return GroupReport(ops, f"framework ({group.code})", None)


def _kernel(kernel: Kernel) -> GroupReport:
    template, measured = kernel.schedule.template, kernel.measurement
    if measured is None:
        return GroupReport(kernel.ops, template, None)
    return GroupReport(
        kernel.ops, template, measured.median_us, measured.bounding_pipe, measured.pipes
    )

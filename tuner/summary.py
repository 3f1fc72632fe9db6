"""What a published plan says about its search."""

from __future__ import annotations

import dataclasses

from kernel_gen.errors import Refusal
from kernel_gen.fusion.group import FrameworkGroup
from kernel_gen.fusion.sharing import Sharing
from kernel_gen.runtime.boxes import node_label
from kernel_gen.runtime.plan import Plan, SearchSummary, Unfused
from tuner.meter import Meter
from tuner.prepare import Prepared
from tuner.programs.stage import Outcome

_NOT_FASTER = Refusal("not-faster", "No kernel that shares it with another op was faster.")


def published(outcome: Outcome, prepared: Prepared, meter: Meter, failures: int) -> Plan:
    """The outcome's plan with its summary filled in."""
    summary = SearchSummary(
        baseline_us=outcome.baseline_us,
        measured_us=outcome.measured_us,
        unfused_us=outcome.unfused_us,
        improved=outcome.improved,
        trials=meter.trials,
        failures=failures,
        tuning_seconds=meter.spent_seconds,
        budget_seconds=meter.budget.seconds,
        unfused=_unfused(outcome.plan, prepared),
        rules_fired=prepared.rules_fired,
        budget_trials=meter.budget.trials,
    )
    return dataclasses.replace(outcome.plan, summary=summary)


def _unfused(plan: Plan, prepared: Prepared) -> tuple[Unfused, ...]:
    """Every computing op that shares no kernel, with the reason."""
    program = prepared.tasks.program
    found: list[Unfused] = []
    for node, group in Sharing(program, plan.layout.folded).left_alone(plan.cover.groups):
        reason = group if isinstance(group, FrameworkGroup) else _why_alone(prepared, node)
        found.append(Unfused(node_label(program.nodes[node]), reason.code, reason.sentence))
    return tuple(found)


def _why_alone(prepared: Prepared, node: int) -> Refusal:
    """Why a kernel holds one op: others could have shared it and were not faster, or none could."""
    found = prepared.tasks.candidates
    if any(node in c.group.nodes and not prepared.tasks.is_single(c.group) for c in found.groups):
        return _NOT_FASTER
    pairs = (r for r in found.refusals if len(r.nodes) == 2 and node in r.nodes)
    return next((r.refusal for r in pairs), _NOT_FASTER)

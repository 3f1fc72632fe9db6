"""What a published plan says about its search."""

from __future__ import annotations

import dataclasses

from kernel_gen.fusion.group import FrameworkGroup, FusionGroup
from kernel_gen.runtime.dot import node_label
from kernel_gen.runtime.plan import Plan, SearchSummary, Unfused
from tuner.costs import CostBook
from tuner.meter import Meter
from tuner.prepare import Prepared
from tuner.program_stage import Outcome
from tuner.tasks import computing_nodes

_NOT_FASTER = "No kernel that shares it with another op was faster."


def published(
    outcome: Outcome, prepared: Prepared, costs: CostBook, meter: Meter, failures: int
) -> Plan:
    """The outcome's plan with its summary filled in."""
    summary = SearchSummary(
        baseline_us=outcome.baseline_us,
        measured_us=outcome.measured_us,
        unfused_us=outcome.unfused_us or _unfused_us(prepared, costs) or outcome.baseline_us,
        improved=outcome.improved,
        trials=meter.trials + outcome.trials,
        failures=failures + outcome.failures,
        tuning_seconds=meter.spent_seconds,
        budget_seconds=meter.budget.seconds,
        unfused=_unfused(outcome.plan, prepared),
        rules_fired=prepared.rules_fired,
        budget_trials=meter.budget.trials,
    )
    return dataclasses.replace(outcome.plan, summary=summary)


def _unfused_us(prepared: Prepared, costs: CostBook) -> float | None:
    """Sum over the ops of the best known time of each alone, where the whole was not run."""
    tasks = prepared.tasks
    best: dict[int, float] = {}
    for option in costs.options():
        nodes = computing_nodes(tasks.program, option.group.nodes)
        if len(nodes) == 1:
            best[nodes[0]] = min(best.get(nodes[0], option.cost_us), option.cost_us)
    return sum(best.values()) or None


def _unfused(plan: Plan, prepared: Prepared) -> tuple[Unfused, ...]:
    """Every computing op that shares no kernel, with the reason."""
    tasks = prepared.tasks
    program = tasks.program
    pairs = {r.nodes: r.refusal for r in tasks.candidates.refusals if len(r.nodes) == 2}
    found: list[Unfused] = []
    for group in plan.cover.groups:
        nodes = computing_nodes(program, group.nodes)
        if isinstance(group, FrameworkGroup) and not group.is_constant:
            found += [
                Unfused(node_label(program.nodes[n]), group.code, group.sentence) for n in nodes
            ]
        elif isinstance(group, FusionGroup) and len(nodes) == 1:
            refusal = next((r for pair, r in pairs.items() if nodes[0] in pair), None)
            code = refusal.code if refusal else "not-faster"
            sentence = refusal.sentence if refusal else _NOT_FASTER
            found.append(Unfused(node_label(program.nodes[nodes[0]]), code, sentence))
    return tuple(found)

"""Verification that a plan rebuilds: its sources follow from its nests and schedules.

Rebuilding a plan for another target, or auditing one from elsewhere, generates code anew and never
compiles shipped text. This module tells whether this version generates what was shipped.
"""

from __future__ import annotations

from kernel_gen.codegen.registry import templates
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import InvalidGraph, Refusal
from kernel_gen.runtime.plan import Kernel, Plan


def regenerate(plan: Plan, kernel: Kernel) -> KernelSource | Refusal:
    """The kernel's source as this version generates it from nest and schedule."""
    known = {template.name: template for template in templates(plan.target)}
    template = known.get(kernel.schedule.template)
    if template is None:
        return Refusal("no-template", f"This version has no template {kernel.schedule.template!r}.")
    try:
        return template.generate(kernel.nest, plan.target, kernel.schedule, kernel.source.entry)
    except (InvalidGraph, KeyError, ValueError) as error:
        return Refusal("schedule-rejected", f"{kernel.source.entry}: {error}")


def differences(plan: Plan) -> tuple[Refusal, ...]:
    """What this version would generate otherwise; empty if the plan rebuilds exactly."""
    found: list[Refusal] = []
    for kernel in {kernel.source.digest: kernel for kernel in plan.kernels}.values():
        again = regenerate(plan, kernel)
        if isinstance(again, Refusal):
            found.append(again)
        elif again != kernel.source:
            found.append(Refusal("source-differs", f"{kernel.source.entry} is generated anew."))
    return tuple(found)
